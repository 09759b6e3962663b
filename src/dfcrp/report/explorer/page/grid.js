// A spatial index of outlines: one grid for each octave of size, so that a large one does not widen
// the search among small ones.

const PER_CELL = 8;

/** @param {Numbers} x @param {Numbers} y @param {Numbers} size @returns {Grid} */
function makeGrid(x, y, size) {
  const octave = new Uint8Array(x.length);
  let least = Infinity;
  for (const s of size) if (s > 0) least = Math.min(least, s);
  for (let i = 0; i < x.length; i++) octave[i] = size[i] > 0 ? Math.floor(Math.log2(size[i] / least)) : 0;
  const count = octave.reduce((a, b) => Math.max(a, b), 0) + 1;
  const lists = listsOf(octave, count);
  /** @type {Layer[]} */
  const layers = [];
  for (let k = 0; k < count; k++) {
    if (lists.of(k).length) layers.push(makeLayer(lists.of(k), x, y, size));
  }
  return {
    /** Call visit(i) for every outline that may touch the box; largest first. */
    visit(left, low, right, high, visit) {
      for (let k = layers.length - 1; k >= 0; k--) {
        const { outlines } = layers[k];
        visitCells(layers[k], left, low, right, high, (start, stop) => {
          for (let p = start; p < stop; p++) visit(outlines[p]);
        });
      }
    },
    /** How many may touch the box. */
    count(left, low, right, high) {
      let found = 0;
      for (const layer of layers) visitCells(layer, left, low, right, high, (start, stop) => (found += stop - start));
      return found;
    },
  };
}

/** @param {Uint32Array} rows @param {Numbers} x @param {Numbers} y @param {Numbers} size @returns {Layer} */
function makeLayer(rows, x, y, size) {
  const layer = {
    left: Infinity, low: Infinity, right: -Infinity, high: -Infinity, reach: 0, cell: 1, columns: 1, rows: 1,
    offsets: new Uint32Array(0), outlines: new Uint32Array(0),
  };
  for (const i of rows) {
    layer.left = Math.min(layer.left, x[i]);
    layer.right = Math.max(layer.right, x[i]);
    layer.low = Math.min(layer.low, y[i]);
    layer.high = Math.max(layer.high, y[i]);
    layer.reach = Math.max(layer.reach, size[i] / 2);
  }
  const width = layer.right - layer.left, height = layer.high - layer.low;
  layer.cell = Math.max(Math.sqrt((width * height * PER_CELL) / rows.length), (width + height) / 2000, 1e-9);
  layer.columns = Math.floor(width / layer.cell) + 1;
  layer.rows = Math.floor(height / layer.cell) + 1;
  const cellOf = (/** @type {number} */ i) =>
    Math.floor((y[i] - layer.low) / layer.cell) * layer.columns + Math.floor((x[i] - layer.left) / layer.cell);
  const lists = listsOf(Uint32Array.from(rows, cellOf), layer.columns * layer.rows);
  layer.offsets = lists.offsets;
  layer.outlines = lists.order.map((at) => rows[at]);
  return layer;
}

/** Call visit(start, stop) for the outlines of every row of cells that the box reaches. */
/** @param {Layer} layer @param {number} left @param {number} low @param {number} right @param {number} high @param {(start: number, stop: number) => void} visit */
function visitCells(layer, left, low, right, high, visit) {
  /** @param {number} value */
  const column = (value) => Math.floor((value - layer.left) / layer.cell);
  /** @param {number} value */
  const row = (value) => Math.floor((value - layer.low) / layer.cell);
  const first = Math.max(column(left - layer.reach), 0);
  const last = Math.min(column(right + layer.reach), layer.columns - 1);
  const top = Math.min(row(high + layer.reach), layer.rows - 1);
  if (first > last) return;
  for (let r = Math.max(row(low - layer.reach), 0); r <= top; r++) {
    visit(layer.offsets[r * layer.columns + first], layer.offsets[r * layer.columns + last + 1]);
  }
}
