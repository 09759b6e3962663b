// From the coordinates of the data to those of the screen, and back. Positions in the data are
// relative to data.origin; only what is shown or typed is absolute.

const ZOOM_LIMIT = 400;

function makeView(data, canvas) {
  const frame = outerFrame(data);
  const flip = data.yDown ? 1 : -1;
  // Degrees of longitude are narrower, so that shapes are right in the middle of the data.
  const squeeze = 1 / data.ground.stretch((frame[1] + frame[3]) / 2);
  const view = {
    x: 0, y: 0, scale: 1, width: 1, height: 1,
    /** Pixels for a unit of x; `scale` has those for one of y. */
    get scaleX() {
      return view.scale * squeeze;
    },
    onMove: () => {},
    toScreen: (x, y) => [(x - view.x) * view.scaleX + view.width / 2, flip * (y - view.y) * view.scale + view.height / 2],
    toData: (sx, sy) => [(sx - view.width / 2) / view.scaleX + view.x, (flip * (sy - view.height / 2)) / view.scale + view.y],
    /** Left, low, right, high of what is seen. */
    bounds() {
      const [w, h] = [view.width / 2 / view.scaleX, view.height / 2 / view.scale];
      return [view.x - w, view.y - h, view.x + w, view.y + h];
    },
    resize() {
      const { clientWidth, clientHeight } = canvas;
      // Who saw everything before still does.
      const whole = view.width <= 1 || Math.abs(view.scale / view.fitScale() - 1) < 1e-6;
      [view.width, view.height] = [Math.max(clientWidth, 1), Math.max(clientHeight, 1)];
      if (whole) view.fit();
      view.onMove();
    },
    fitScale: () => Math.min(view.width / ((frame[2] - frame[0]) * squeeze), view.height / (frame[3] - frame[1])),
    fit() {
      view.go((frame[0] + frame[2]) / 2, (frame[1] + frame[3]) / 2, view.fitScale());
    },
    go(x, y, scale = view.scale) {
      const fit = view.fitScale();
      view.scale = Math.min(Math.max(scale, 0.5 * fit), ZOOM_LIMIT * fit);
      view.x = Math.min(Math.max(x, frame[0]), frame[2]);
      view.y = Math.min(Math.max(y, frame[1]), frame[3]);
      view.onMove();
    },
    pan(dx, dy) {
      view.go(view.x - dx / view.scaleX, view.y - (flip * dy) / view.scale);
    },
    /** Zoom about a point of the screen, which stays where it is. */
    zoom(factor, sx = view.width / 2, sy = view.height / 2) {
      const [x, y] = view.toData(sx, sy);
      view.go(view.x, view.y, view.scale * factor);
      const [x1, y1] = view.toData(sx, sy);
      view.go(view.x + x - x1, view.y + y - y1);
    },
    /** Centre a circle, large enough to be looked at. */
    goTo(x, y, diameter) {
      const high = diameter * data.ground.perLength;
      view.go(x, y, Math.max(view.scale, (0.25 * Math.min(view.width, view.height)) / high));
    },
  };
  return view;
}

/** The image, or a little more than all centres. */
function outerFrame(data) {
  if (data.image) {
    const [left, right, bottom, top] = data.image.extent;
    const [x, y] = data.origin;
    return [left - x, Math.min(bottom, top) - y, right - x, Math.max(bottom, top) - y];
  }
  const ends = (values, margin) => {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const space = Math.max(margin, 0.03 * (high - low));
    return [low - space, high + space];
  };
  const typical = quantile(Float32Array.from(data.markingDiameter).sort(), 0.5) * data.ground.perLength;
  const [left, right] = ends(data.markingX, 0.8 * typical);
  const [low, high] = ends(data.markingY, 0.8 * typical);
  return [left, low, right, high];
}
