// On a line every list has a lane: what is in each, and the positions below.

/** Pixels between positions that are written, at least. */
const TICKS_APART = 90;
/** Lanes lower than this, in pixels, have no room for a name. */
const LANE_WITH_NAME = 11;

/** @param {CanvasRenderingContext2D} context @param {Data} data @param {View} view @param {string} ink @param {string} paper */
function drawLanes(context, data, view, ink, paper) {
  context.font = "12px system-ui, sans-serif";
  context.lineJoin = "round";
  context.strokeStyle = paper;
  context.fillStyle = ink;
  /** @param {string} text @param {number} x @param {number} y */
  const write = (text, x, y) => {
    context.lineWidth = 4;
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  };
  for (const [at, name] of (view.scaleY >= LANE_WITH_NAME ? data.lanes ?? [] : []).entries()) {
    const y = view.toScreen(0, -at - data.origin[1])[1];
    context.globalAlpha = 0.15;
    context.fillRect(0, Math.round(y + view.scaleY / 2), view.width, 1);
    context.globalAlpha = 1;
    write(name, 6, y - view.scaleY / 2 + 12);
  }
  drawTicks(context, data, view, write);
}

/** @param {CanvasRenderingContext2D} context @param {Data} data @param {View} view @param {(text: string, x: number, y: number) => void} write */
function drawTicks(context, data, view, write) {
  const [left, , right] = view.bounds();
  const wanted = TICKS_APART / view.scaleX;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = ([1, 2, 5].find((k) => k * power >= wanted) ?? 10) * power;
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const from = Math.ceil((left + data.origin[0]) / step);
  for (let k = from; k * step <= right + data.origin[0]; k++) {
    const x = view.toScreen(k * step - data.origin[0], 0)[0];
    context.fillRect(Math.round(x), view.height - 6, 1, 6);
    write((k * step).toFixed(digits), x + 3, view.height - 4);
  }
}
