// Outlines: ellipses, boxes and points. On the map they have a width and a height, in pixels half of
// each (a and b) and a turn, in radians as the canvas counts.

/** Widths and heights as the map draws them: in the unit of x and in that of y, on a map of degrees
 *  wider by its stretch. */
/** @param {Data} data @param {"item" | "cluster"} name @param {Shape} shape @returns {Outlines} */
function outlinesOf(data, name, shape) {
  const { ground } = data;
  const [x, y] = [data[`${name}X`], data[`${name}Y`]];
  const width = data[`${name}Width`] ?? new Float32Array(x.length);
  const height = data[`${name}Height`] ?? width;
  const { degree, perLength, stretch } = ground;
  const wide = degree ? width.map((/** @type {number} */ length, /** @type {number} */ i) => length * perLength * stretch(y[i])) : width;
  const high = degree ? height.map((/** @type {number} */ length) => length * perLength) : height;
  const turn = data[`${name}Angle`]?.map((/** @type {number} */ angle) => turnOf(data, angle)) ?? null;
  const round = turn && shape === "box" ? Math.hypot : Math.max;
  const reach = wide.map((/** @type {number} */ length, /** @type {number} */ i) => round(length, high[i]));
  return { shape, x, y, wide, high, turn, reach, grid: makeGrid(x, y, reach) };
}

/** Angles are counterclockwise where y points up; the canvas counts clockwise. */
/** @param {Data} data @param {number} angle */
function turnOf(data, angle) {
  return ((data.yDown ? 1 : -1) * angle * Math.PI) / 180;
}

/** How far outside of the rim a point is, in pixels; negative inside. Of ellipses to first order. */
/** @param {StampShape} shape @param {number} dx @param {number} dy @param {number} a @param {number} b @param {number} turn */
function rimDistance(shape, dx, dy, a, b, turn) {
  if (shape === "point" || (shape === "ellipse" && a === b)) return Math.hypot(dx, dy) - a;
  const [cos, sin] = turn ? [Math.cos(turn), Math.sin(turn)] : [1, 0];
  const [u, v] = [dx * cos + dy * sin, dy * cos - dx * sin];
  if (shape === "box") {
    const [p, q] = [Math.abs(u) - a, Math.abs(v) - b];
    return Math.hypot(Math.max(p, 0), Math.max(q, 0)) + Math.min(Math.max(p, q), 0);
  }
  const f = Math.hypot(u / a, v / b);
  return f > 0 ? ((f - 1) * f) / Math.hypot(u / (a * a), v / (b * b)) : -Math.min(a, b);
}

/** Add an outline to the path. */
/** @param {CanvasRenderingContext2D} context @param {StampShape} shape @param {number} x @param {number} y @param {number} a @param {number} b @param {number} [turn] */
function trace(context, shape, x, y, a, b, turn = 0) {
  const [cos, sin] = turn ? [Math.cos(turn), Math.sin(turn)] : [1, 0];
  if (shape !== "box") {
    context.moveTo(x + a * cos, y + a * sin);
    context.ellipse(x, y, a, b, turn, 0, 2 * Math.PI);
  } else if (!turn) {
    context.rect(x - a, y - b, 2 * a, 2 * b);
  } else {
    const corners = [[a, b], [-a, b], [-a, -b], [a, -b]];
    for (const [k, [u, v]] of corners.entries()) context[k ? "lineTo" : "moveTo"](x + u * cos - v * sin, y + u * sin + v * cos);
    context.closePath();
  }
}
