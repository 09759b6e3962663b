// The map: every item as an outline to scale, or as a dot. Far out, where outlines would be specks on
// top of each other, one outline stands for each object, or a dot for each item.

/** Outlines in view beyond which detail gives way to speed. */
const MAX_OUTLINES = 16000;
/** Outlines in one path: the browser is slow at long paths and at many strokes. */
const OUTLINES_PER_PATH = 120;
/** Dashes cost time and only read when outlines are large. */
const MAX_DASHED = 1500;
/** Pixels that a cell of the grid is wide before words are put into it. */
const CELL_WITH_WORDS = 64;
/** The share of a cell's height that words may take, and the height of a line in pixels. */
const CELL_FOR_WORDS = 0.3;
const WORD_LINE = 14;
/** Pixels within which a rim or a dot is hit. */
const NEAR = 8;

/** @param {State} state @param {View} view @param {HTMLCanvasElement} canvas @returns {ExplorerMap} */
function makeMap(state, view, canvas) {
  const { data } = state;
  const context = penOf(canvas, { alpha: false });
  const { items, objects } = data;
  const sheet = makeSheet();
  const image = data.image ? loadImage(data.image.uri, () => map.draw()) : null;
  /** @type {ExplorerMap} */
  const map = {
    items, objects, passing: passingClusters(state), colours: colouring(state), detail: "outlines",
    refilter() {
      map.passing = passingClusters(state);
    },
    recolour() {
      map.colours = colouring(state);
    },
    /** What is drawn, in order: outlines, how strong each is, its colour, all colours, and the look. */
    layers() {
      const far = state.show !== "objects" ? items.grid.count(...view.bounds()) > MAX_OUTLINES : false;
      const asObjects = (state.show === "objects" && state.draw < 0) || (far && map.colours.ofCluster);
      map.detail = far ? (asObjects ? "objects" : "dots") : "outlines";
      /** @type {MapLayer[]} */
      const found = [];
      if (!asObjects) {
        /** @param {number} i */
        const level = (i) => (state.off.has(data.itemExpert[i]) ? 0 : map.passing[data.itemCluster[i]]);
        found.push([items, level, map.colours.ofItem, map.colours, { asDots: map.detail === "dots" }]);
      }
      if (asObjects || (state.show === "both" && state.draw < 0)) {
        const own = map.colours.ofCluster ? map.colours : objectInk(state);
        found.push([objects, (k) => map.passing[k], own.ofCluster ?? (() => 0), own, { weight: data.hasPlaces ? 2 : 1.2, hollow: true }]);
      }
      return found;
    },
    draw() {
      prepareCanvas(canvas, context, view, groundColour(state));
      if (data.image && image?.complete && state.showImage) drawImage(context, view, image, data.image.extent, data.origin);
      for (const [outlines, level, colourOf, look, options] of map.layers()) drawOutlines(context, view, sheet, outlines, level, colourOf, look, options);
      if (!data.hasPlaces) drawCellWords(context, state, view, map.passing);
    },
  };
  return map;
}

/** @param {State} state @returns {Pick<Colours, "colours" | "dashes"> & { ofCluster: (k: number) => number }} */
function objectInk(state) {
  return { colours: [isDark(state) ? "#FFFFFF" : "#1D2329"], dashes: [[]], ofCluster: () => 0 };
}

/** @param {State} state */
function groundColour(state) {
  return isDark(state) ? "#14181C" : "#FFFFFF";
}

/** @param {string} uri @param {() => void} then */
function loadImage(uri, then) {
  const image = new Image();
  image.onload = then;
  image.src = uri;
  return image;
}

/** Pixels of the screen for one of the page. */
function screenRatio() {
  return Math.min(window.devicePixelRatio || 1, 2);
}

/** Size the canvas to the screen's own pixels, and clear it. */
/** @param {HTMLCanvasElement} canvas @param {CanvasRenderingContext2D} context @param {View} view @param {string | null} ground */
function prepareCanvas(canvas, context, view, ground) {
  const ratio = view.ratio ?? screenRatio();
  const [width, height] = [Math.round(view.width * ratio), Math.round(view.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (ground) {
    context.fillStyle = ground;
    context.fillRect(0, 0, view.width, view.height);
  } else {
    context.clearRect(0, 0, view.width, view.height);
  }
}

/** @param {CanvasRenderingContext2D} context @param {View} view @param {HTMLImageElement} image @param {number[]} extent @param {Place} origin */
function drawImage(context, view, image, extent, origin) {
  const [left, right, bottom, top] = extent;
  const [x0, y0] = view.toScreen(left - origin[0], top - origin[1]);
  const [x1, y1] = view.toScreen(right - origin[0], bottom - origin[1]);
  context.drawImage(image, x0, y0, x1 - x0, y1 - y0);
}

/** Rows of the outlines in view by colour and by level, pale ones first; and how many they are. */
/** @param {View} view @param {Outlines} outlines @param {LevelOf} level @param {LevelOf} colourOf @param {number} count */
function inView(view, outlines, level, colourOf, count) {
  const [left, low, right, high] = view.bounds();
  const { x, y, wide, high: tall, turn, reach } = outlines;
  /** Pale ones, then the others, for each colour. */
  /** @type {[number[], number[]][]} */
  const buckets = Array.from({ length: count }, () => [[], []]);
  let total = 0;
  outlines.grid.visit(left, low, right, high, (i) => {
    const [across, up] = turn ? [reach[i] / 2, reach[i] / 2] : [wide[i] / 2, tall[i] / 2];
    if (x[i] + across < left || x[i] - across > right || y[i] + up < low || y[i] - up > high) return;
    const kind = level(i);
    if (!kind) return;
    total++;
    buckets[colourOf(i)][kind - 1].push(i);
  });
  return { buckets, total };
}

/** How thick lines are among so many. */
/** @param {number} total @param {number} weight */
function thickness(total, weight) {
  return Math.min(Math.max(50 / Math.sqrt(total + 1), 0.7), 1.4) * weight;
}

/** Draw outlines colour by colour; level 1 is pale, 0 is left out. */
/** @param {CanvasRenderingContext2D} context @param {View} view @param {Sheet} sheet @param {Outlines} outlines @param {LevelOf} level @param {LevelOf} colourOf @param {Pick<Colours, "colours" | "dashes">} given6 @param {LayerLook} given7 */
function drawOutlines(context, view, sheet, outlines, level, colourOf, { colours, dashes }, { asDots = false, weight = 1, hollow = false }) {
  const { buckets, total } = inView(view, outlines, level, colourOf, colours.length);
  const thin = thickness(total, weight);
  const dashed = total < MAX_DASHED;
  const ratio = context.getTransform().a;
  const dot = asDots ? 0.5 / ratio : dotRadius(total) * (hollow ? 1.8 : 1);
  sheet.clear(context.canvas.width, context.canvas.height);
  /** @type {[number[], Look][]} */
  const strokes = [];
  for (const kind of [0, 1]) {
    buckets.forEach((bucket, colour) => {
      const dash = dashed && outlines.shape !== "point" ? dashes[colour] : [];
      // Widths differ by steps, so that stamps are used again.
      const look = { colour: colours[colour], opacity: kind ? 0.9 : 0.22, width: Math.round(20 * thin) / 20, dash, dot, asDots, hollow };
      const large = dash.length ? bucket[kind] : stampSmall(view, sheet, ratio, outlines, bucket[kind], look);
      if (large.length) strokes.push([large, look]);
    });
  }
  sheet.layOver(context);
  for (const [rows, look] of strokes) strokeOutlines(context, view, outlines, rows, look);
}

/** What describes an object, at the bottom of its cell, once there is room for it. */
/** @param {CanvasRenderingContext2D} context @param {State} state @param {View} view @param {Uint8Array} passing */
function drawCellWords(context, state, view, passing) {
  const { data } = state;
  const side = data.objects.wide[0] * view.scale;
  if (side < CELL_WITH_WORDS) return;
  const fields = data.quantities.filter((quantity) => quantity.text);
  const most = Math.max(Math.floor((CELL_FOR_WORDS * side) / WORD_LINE), 1);
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = isDark(state) ? "#E4E8EC" : "#1D2329";
  data.objects.grid.visit(...view.bounds(), (k) => {
    if (!passing[k]) return;
    const said = fields.map((field) => valueInWords(data, field, k)).filter(Boolean);
    const [x, y] = view.toScreen(data.clusterX[k], data.clusterY[k]);
    const lines = linesOf(context, said.length ? said : [`c${data.clusterName[k]}`], side - 10, most);
    for (const [at, line] of lines.entries()) context.fillText(line, x - side / 2 + 5, y + side / 2 - 5 - WORD_LINE * (lines.length - 1 - at));
  });
}

/** Values in lines of at most this width; what has no room ends in "…". */
/** @param {CanvasRenderingContext2D} context @param {string[]} values @param {number} width @param {number} most */
function linesOf(context, values, width, most) {
  /** @param {string} text */
  const fits = (text) => context.measureText(text).width <= width;
  /** @type {string[]} */
  const lines = [];
  for (const value of values) {
    const longer = `${lines.at(-1)} ${value}`;
    if (lines.length && fits(longer)) lines[lines.length - 1] = longer;
    else lines.push(value);
  }
  const shown = lines.slice(0, most);
  if (lines.length > most) shown[most - 1] += " …";
  return shown.map((line) => {
    let end = line.length;
    while (end > 1 && !fits(end < line.length ? `${line.slice(0, end)}…` : line)) end--;
    return end < line.length ? `${line.slice(0, end).trimEnd()}…` : line;
  });
}

/** Radius, in pixels, of a dot among so many. */
/** @param {number} total */
function dotRadius(total) {
  return Math.min(Math.max(90 / Math.sqrt(total + 1), 1.3), 3.5);
}

/** Stamp what is small on the screen, or everything as dots; the rows of the others. */
/** @param {View} view @param {Sheet} sheet @param {number} ratio @param {Outlines} outlines @param {number[]} rows @param {Look} given5 */
function stampSmall(view, sheet, ratio, { shape, x, y, wide, high, turn }, rows, { colour, opacity, width, dot, asDots, hollow }) {
  const isDot = asDots || shape === "point";
  const stamp = !isDot ? shape : asDots || hollow ? "ellipse" : "dot";
  const put = sheet.stamper(stamp, width * ratio, channels(colour), opacity);
  const [scaleX, scaleY] = [view.scaleX * ratio, view.scaleY * ratio];
  // Where (0, 0) is, and which way y goes.
  const [left, top] = view.toScreen(0, 0).map((at) => at * ratio);
  const up = (view.toScreen(0, 1)[1] * ratio - top) / scaleY;
  /** @type {number[]} */
  const large = [];
  for (const i of rows) {
    const a = isDot ? dot * ratio : (wide[i] / 2) * scaleX;
    let b = isDot ? a : (high[i] / 2) * scaleY;
    if (a > MAX_STAMP || b > MAX_STAMP) {
      large.push(i);
      continue;
    }
    // On a sphere what is nearly round is drawn round.
    const round = stamp === "ellipse" && Math.abs(a - b) < 0.25;
    if (round) b = a;
    put(left + x[i] * scaleX, top + up * y[i] * scaleY, a, b, round || !turn ? 0 : turn[i]);
  }
  return large;
}

/** @param {CanvasRenderingContext2D} context @param {View} view @param {Outlines} outlines @param {number[]} rows @param {Look} given4 */
function strokeOutlines(context, view, { shape, x, y, wide, high, turn }, rows, { colour, opacity, width, dash }) {
  context.strokeStyle = colour;
  context.globalAlpha = opacity;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  rows.forEach((i, count) => {
    trace(context, shape, ...view.toScreen(x[i], y[i]), (wide[i] / 2) * view.scaleX, (high[i] / 2) * view.scaleY, turn ? turn[i] : 0);
    if (count % OUTLINES_PER_PATH === OUTLINES_PER_PATH - 1) {
      context.stroke();
      context.beginPath();
    }
  });
  context.stroke();
  context.globalAlpha = 1;
  context.setLineDash([]);
}

/** The object whose item's rim or centre is nearest to a point; -1 if none is near. */
/** @param {State} state @param {View} view @param {ExplorerMap} map @param {number} sx @param {number} sy */
function clusterAt(state, view, map, sx, sy) {
  const { data } = state;
  let [best, least] = [-1, Infinity];
  /** @param {Outlines} outlines @param {(i: number) => number} clusterOf @param {(i: number) => boolean} shown */
  const consider = (outlines, clusterOf, shown) => visitNear(view, outlines, sx, sy, (i, away, size) => {
    if (!shown(i)) return;
    // Of outlines within outlines the small one is meant, unless the rim of a large one is hit.
    const cost = Math.abs(away) < NEAR ? Math.abs(away) / NEAR : 1 + size;
    if (cost < least) [best, least] = [clusterOf(i), cost];
  });
  const alone = state.show === "objects" || map.detail === "objects";
  if (!alone) {
    /** @param {number} i */
    const shown = (i) => map.passing[data.itemCluster[i]] === 2 && !state.off.has(data.itemExpert[i]);
    consider(map.items, (i) => data.itemCluster[i], shown);
  }
  if (alone || state.show === "both" || !data.hasPlaces) consider(map.objects, (k) => k, (k) => map.passing[k] === 2);
  return best;
}

/** Call visit(i, pixels outside of the rim, size in pixels) for every outline that holds a point of the
 *  screen, or is near it. */
/** @param {View} view @param {Outlines} outlines @param {number} sx @param {number} sy @param {(i: number, away: number, size: number) => void} visit */
function visitNear(view, { shape, x, y, wide, high, turn, grid }, sx, sy, visit) {
  const [at, up] = view.toData(sx, sy);
  const [nearX, nearY] = [NEAR / view.scaleX, NEAR / view.scaleY];
  grid.visit(at - nearX, up - nearY, at + nearX, up + nearY, (i) => {
    const [cx, cy] = view.toScreen(x[i], y[i]);
    const [a, b] = [(wide[i] / 2) * view.scaleX, (high[i] / 2) * view.scaleY];
    const away = rimDistance(shape, sx - cx, sy - cy, a, b, turn ? turn[i] : 0);
    if (away <= NEAR) visit(i, away, Math.sqrt(a * b));
  });
}
