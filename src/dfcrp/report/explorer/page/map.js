// The map: every marking as a circle to scale. Far out, where circles would be specks on top of
// each other, one circle stands for each object, or a dot for each marking.

/** Circles in view beyond which detail gives way to speed. */
const MAX_CIRCLES = 16000;
/** Arcs in one path: the browser is slow at long paths and at many strokes. */
const ARCS_PER_PATH = 120;
/** Dashes cost time and only read when circles are large. */
const MAX_DASHED = 1500;
/** Pixels by which width and height of a small ring may differ before it is drawn as an oval. */
const ROUND_ENOUGH = 1;

function makeMap(state, view, canvas) {
  const { data } = state;
  const context = canvas.getContext("2d", { alpha: false });
  const markings = circlesOf(data, data.markingX, data.markingY, data.markingDiameter);
  const objects = circlesOf(data, data.clusterX, data.clusterY, data.clusterDiameter);
  const sheet = makeSheet();
  const image = data.image ? loadImage(data.image.uri, () => map.draw()) : null;
  const map = {
    markings, objects, passing: passingClusters(state), colours: colouring(state), detail: "circles",
    refilter() {
      map.passing = passingClusters(state);
    },
    recolour() {
      map.colours = colouring(state);
    },
    draw() {
      prepareCanvas(canvas, context, view, groundColour(state));
      if (image?.complete && state.showImage) drawImage(context, view, image, data);
      const far = state.show !== "objects" ? countInView(view, markings) > MAX_CIRCLES : false;
      const asObjects = state.show === "objects" || (far && map.colours.ofCluster);
      map.detail = far ? (asObjects ? "objects" : "dots") : "circles";
      if (!asObjects) {
        const level = (i) => (state.off.has(data.markingExpert[i]) ? 0 : map.passing[data.markingCluster[i]]);
        drawCircles(context, view, sheet, markings, level, map.colours.ofMarking, map.colours, map.detail === "dots");
      }
      if (asObjects || state.show === "both") {
        const own = map.colours.ofCluster ? map.colours : objectInk(state);
        drawCircles(context, view, sheet, objects, (k) => map.passing[k], own.ofCluster, own, false, 2);
      }
    },
  };
  return map;
}

function objectInk(state) {
  return { colours: [isDark(state) ? "#FFFFFF" : "#1D2329"], dashes: [[]], ofCluster: () => 0 };
}

function groundColour(state) {
  return isDark(state) ? "#14181C" : "#FFFFFF";
}

function loadImage(uri, then) {
  const image = new Image();
  image.onload = then;
  image.src = uri;
  return image;
}

/** Size the canvas to the screen's own pixels, and clear it. */
function prepareCanvas(canvas, context, view, ground) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
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

function drawImage(context, view, image, data) {
  const [left, right, bottom, top] = data.image.extent;
  const [x0, y0] = view.toScreen(left - data.origin[0], top - data.origin[1]);
  const [x1, y1] = view.toScreen(right - data.origin[0], bottom - data.origin[1]);
  context.drawImage(image, x0, y0, x1 - x0, y1 - y0);
}

function countInView(view, circles) {
  const [left, low, right, high] = view.bounds();
  let count = 0;
  circles.grid.visit(left, low, right, high, () => count++);
  return count;
}

/** Draw circles colour by colour; level 1 is pale, 0 is left out. */
function drawCircles(context, view, sheet, circles, level, colourOf, { colours, dashes }, asDots, weight = 1) {
  const [left, low, right, high] = view.bounds();
  const buckets = colours.map(() => [[], []]);
  let total = 0;
  circles.grid.visit(left, low, right, high, (i) => {
    const [r, across] = [circles.diameter[i] / 2, circles.wide[i] / 2];
    if (circles.x[i] + across < left || circles.x[i] - across > right || circles.y[i] + r < low || circles.y[i] - r > high) return;
    const kind = level(i);
    if (!kind) return;
    total++;
    buckets[colourOf(i)][kind - 1].push(i);
  });
  const thin = Math.min(Math.max(50 / Math.sqrt(total + 1), 0.7), 1.4) * weight;
  const dashed = total < MAX_DASHED;
  const ratio = context.getTransform().a;
  sheet.clear(context.canvas.width, context.canvas.height);
  const strokes = [];
  for (const kind of [0, 1]) {
    buckets.forEach((bucket, colour) => {
      const dash = dashed ? dashes[colour] : [];
      const look = { colour: colours[colour], opacity: kind ? 0.9 : 0.22, width: thin, dash };
      const large = dash.length ? bucket[kind] : stampSmall(view, sheet, ratio, circles, bucket[kind], look, asDots);
      if (large.length) strokes.push([large, look]);
    });
  }
  sheet.layOver(context);
  for (const [rows, look] of strokes) strokeRings(context, view, circles, rows, look);
}

/** Stamp circles that are small on the screen, or all of them as dots; the rows of the others. */
function stampSmall(view, sheet, ratio, { x, y, diameter, wide }, rows, { colour, opacity, width }, asDots) {
  const shade = channels(colour);
  const large = [];
  for (const i of rows) {
    const radius = asDots ? 0.5 : (diameter[i] / 2) * view.scale * ratio;
    const across = asDots ? radius : (wide[i] / 2) * view.scaleX * ratio;
    if (radius > MAX_STAMP || Math.abs(across - radius) > ROUND_ENOUGH) {
      large.push(i);
      continue;
    }
    const [sx, sy] = view.toScreen(x[i], y[i]);
    sheet.ring(sx * ratio, sy * ratio, radius, width * ratio, shade, opacity);
  }
  return large;
}

function strokeRings(context, view, circles, rows, { colour, opacity, width, dash }) {
  context.strokeStyle = colour;
  context.globalAlpha = opacity;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  rows.forEach((i, count) => {
    const [x, y] = view.toScreen(circles.x[i], circles.y[i]);
    const across = (circles.wide[i] / 2) * view.scaleX;
    context.moveTo(x + across, y);
    context.ellipse(x, y, across, (circles.diameter[i] / 2) * view.scale, 0, 0, 2 * Math.PI);
    if (count % ARCS_PER_PATH === ARCS_PER_PATH - 1) {
      context.stroke();
      context.beginPath();
    }
  });
  context.stroke();
  context.globalAlpha = 1;
  context.setLineDash([]);
}

/** The object whose marking's rim or centre is nearest to a point; -1 if none is near. */
function clusterAt(state, view, map, sx, sy) {
  const [x, y] = view.toData(sx, sy);
  const near = 8 / view.scale;
  const nearX = 8 / view.scaleX;
  let [best, least] = [-1, Infinity];
  const consider = (circles, clusterOf, shown) => {
    circles.grid.visit(x - nearX, y - near, x + nearX, y + near, (i) => {
      if (!shown(i)) return;
      // As if the oval were the circle that it is on the ground.
      const away = Math.hypot(((circles.x[i] - x) * circles.diameter[i]) / circles.wide[i], circles.y[i] - y);
      const r = circles.diameter[i] / 2;
      if (away > r + near) return;
      // Of circles within circles the small one is meant, unless the rim of a large one is hit.
      const cost = Math.abs(away - r) < near ? Math.abs(away - r) / near : 1 + r;
      if (cost < least) [best, least] = [clusterOf(i), cost];
    });
  };
  if (state.show === "objects" || map.detail === "objects") {
    consider(map.objects, (k) => k, (k) => map.passing[k] === 2);
  } else {
    const { data } = state;
    const shown = (i) => map.passing[data.markingCluster[i]] === 2 && !state.off.has(data.markingExpert[i]);
    consider(map.markings, (i) => data.markingCluster[i], shown);
  }
  return best;
}
