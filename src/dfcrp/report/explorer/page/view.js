// From the coordinates of the data to those of the screen, and back. Positions in the data are
// relative to data.origin; only what is shown or typed is absolute.

const ZOOM_LIMIT = 400;
/** The same of recordings, which may be many hours long. */
const ZOOM_LIMIT_ON_LINE = 8000;

/** @param {Data} data @param {HTMLCanvasElement} canvas @returns {View} */
function makeView(data, canvas) {
  const frame = outerFrame(data);
  const flip = data.yDown ? 1 : -1;
  // Degrees of longitude are narrower, so that shapes are right in the middle of the data.
  const onGround = 1 / data.ground.stretch((frame[1] + frame[3]) / 2);
  const free = (frame[3] - frame[1]) / (frame[2] - frame[0]);
  /** @type {View} */
  const view = {
    x: 0, y: 0, scale: 1, width: 1, height: 1,
    /** Pixels for one of the page; null is what the screen has. */
    ratio: null,
    /** Pixels for a unit of x; `scale` has those for one of y. */
    get scaleX() {
      return view.scale * view.squeeze;
    },
    /** Lanes always fill the map from top to bottom. */
    get scaleY() {
      return data.lanes ? view.fitScale() : view.scale;
    },
    /** Quantities of different units have scales of their own, which fill the map. */
    get squeeze() {
      return data.equalScales ? onGround : (free * view.width) / view.height;
    },
    onMove: () => {},
    toScreen: (x, y) => [(x - view.x) * view.scaleX + view.width / 2, flip * (y - view.y) * view.scaleY + view.height / 2],
    toData: (sx, sy) => [(sx - view.width / 2) / view.scaleX + view.x, (flip * (sy - view.height / 2)) / view.scaleY + view.y],
    /** Left, low, right, high of what is seen. */
    bounds() {
      const [w, h] = [view.width / 2 / view.scaleX, view.height / 2 / view.scaleY];
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
    fitScale: () => Math.min(view.width / ((frame[2] - frame[0]) * view.squeeze), view.height / (frame[3] - frame[1])),
    fit() {
      view.go((frame[0] + frame[2]) / 2, (frame[1] + frame[3]) / 2, view.fitScale());
    },
    go(x, y, scale = view.scale) {
      const fit = view.fitScale();
      view.scale = Math.min(Math.max(scale, 0.5 * fit), (data.lanes ? ZOOM_LIMIT_ON_LINE : ZOOM_LIMIT) * fit);
      view.x = Math.min(Math.max(x, frame[0]), frame[2]);
      view.y = data.lanes ? (frame[1] + frame[3]) / 2 : Math.min(Math.max(y, frame[1]), frame[3]);
      view.onMove();
    },
    pan(dx, dy) {
      view.go(view.x - dx / view.scaleX, view.y - (flip * dy) / view.scaleY);
    },
    /** Zoom about a point of the screen, which stays where it is. */
    zoom(factor, sx = view.width / 2, sy = view.height / 2) {
      const [x, y] = view.toData(sx, sy);
      view.go(view.x, view.y, view.scale * factor);
      const [x1, y1] = view.toData(sx, sy);
      view.go(view.x + x - x1, view.y + y - y1);
    },
    /** Centre an object, large enough to be looked at. */
    goTo(k) {
      if (isLegible(data, view, k)) return;
      if (data.lanes) {
        const [around, half] = [Math.max(data.objects.wide[k], (frame[2] - frame[0]) / ZOOM_LIMIT_ON_LINE), view.width / 16];
        return view.go(data.clusterX[k], view.y, Math.max(view.scale, (2 * half) / around / view.squeeze));
      }
      const high = Math.max(data.objects.reach[k], spread(data, k)) || (frame[3] - frame[1]) / 10;
      view.go(data.clusterX[k], data.clusterY[k], Math.max(view.scale, (0.25 * Math.min(view.width, view.height)) / high));
    },
  };
  return view;
}

/** Whether an object's cell on the grid is in view, and large enough for words. */
/** @param {Data} data @param {View} view @param {number} k */
function isLegible(data, view, k) {
  const [left, low, right, high] = view.bounds();
  const [x, y, half] = [data.clusterX[k], data.clusterY[k], data.objects.wide[k] / 2];
  const inside = x - half >= left && x + half <= right && y - half >= low && y + half <= high;
  return !data.hasPlaces && inside && 2 * half * view.scale >= CELL_WITH_WORDS;
}

/** How far apart the members of an object lie that are points, seen from bottom to top of the map. */
/** @param {Data} data @param {number} k */
function spread({ items, itemShape, clusterMembers, hasPlaces }, k) {
  if (itemShape !== "point" || !hasPlaces) return 0;
  const y = Array.from(clusterMembers.of(k), (i) => items.y[i]);
  return Math.max(...y) - Math.min(...y);
}

/** The image, or a little more than the centres of all circles and the whole of other outlines. */
/** @param {Data} data @returns {Box} */
function outerFrame(data) {
  if (data.frame) {
    const [left, right, bottom, top] = data.frame;
    const [x, y] = data.origin;
    return [left - x, Math.min(bottom, top) - y, right - x, Math.max(bottom, top) - y];
  }
  const { x, y, wide, reach } = data.hasPlaces ? data.items : data.objects;
  /** @param {Numbers} values @param {Numbers} sides */
  const ends = (values, sides) => {
    let [low, high] = [Infinity, -Infinity];
    values.forEach((/** @type {number} */ value, /** @type {number} */ i) => {
      const half = data.round ? 0 : sides[i] / 2;
      low = Math.min(low, value - half);
      high = Math.max(high, value + half);
    });
    return [low, high];
  };
  // On a line the objects have the lane above those of the lists.
  const [left, right] = ends(x, data.lanes ? wide : reach);
  const top = data.objects.y[0] + 0.5;
  const [low, high] = data.lanes ? [top - data.lanes.length, top] : ends(y, reach);
  const around = data.round ? 0.8 * quantile(Float32Array.from(reach).sort(), 0.5) : 0;
  // What lies on a line, or in one place, has some room around it all the same.
  const room = 0.05 * Math.max(right - left, high - low) || 1;
  /** @param {number} width */
  const space = (width) => Math.max(around, 0.03 * width) || room;
  const [across, up] = [space(right - left), space(high - low)];
  // The legend and the note lie over the edges of a grid.
  const edge = data.hasPlaces ? 0 : 0.05 * (high - low);
  return [left - across, low - up - edge, right + across, high + up + edge];
}
