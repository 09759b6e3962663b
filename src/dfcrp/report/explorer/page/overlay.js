// What lies over the map: the selected object with its uncertainty, the region, the scale bar.

/** Semi-axes of a 95 % ellipse in standard deviations: the root of -2 ln 0.05. */
const ELLIPSE = Math.sqrt(-2 * Math.log(0.05));

/** @param {State} state @param {View} view @param {HTMLCanvasElement} canvas @returns {Overlay} */
function makeOverlay(state, view, canvas) {
  const context = penOf(canvas);
  /** @type {Overlay} */
  const overlay = {
    hovered: -1,
    dragged: null,
    /** What the scale bar says, and its width in pixels. */
    bar: null,
    draw() {
      prepareCanvas(canvas, context, view, null);
      const ink = isDark(state) ? "#FFFFFF" : "#1D2329";
      if (state.data.lanes) drawLanes(context, state.data, view, ink, groundColour(state));
      if (state.region) drawRegion(context, view, state.region, ink);
      if (overlay.dragged) drawRegion(context, view, overlay.dragged, ink);
      if (state.selected >= 0) drawSelected(context, state, view, ink, overlay.hovered);
      const { ground, hasPlaces, equalScales } = state.data;
      overlay.bar = hasPlaces && equalScales ? drawScaleBar(context, view, ground, ink, groundColour(state)) : null;
    },
  };
  return overlay;
}

/** @param {CanvasRenderingContext2D} context @param {View} view @param {Box} given2 @param {string} ink */
function drawRegion(context, view, [left, low, right, high], ink) {
  const [x0, y0] = view.toScreen(left, low);
  const [x1, y1] = view.toScreen(right, high);
  context.setLineDash([6, 4]);
  context.lineWidth = 1.5;
  context.strokeStyle = ink;
  context.strokeRect(x0, y0, x1 - x0, y1 - y0);
  context.setLineDash([]);
}

/** @param {CanvasRenderingContext2D} context @param {State} state @param {View} view @param {string} ink @param {number} hovered */
function drawSelected(context, state, view, ink, hovered) {
  const { data } = state;
  const k = state.selected;
  const shade = DISTINCT[isDark(state) ? "dark" : "light"];
  if (state.ghosts && data.ghostDraws) drawGhosts(context, state, view, shade[0]);
  if (!data.hasPlaces) drawOutline(context, view, data.objects, k, shade[1], 2.5);
  if (data.clusterWidthHi) drawBand(context, data, view, k, shade[4]);
  for (const i of data.clusterMembers.of(k)) {
    if (state.off.has(data.itemExpert[i])) continue;
    drawOutline(context, view, data.items, i, ink, i === hovered ? 4 : 1.4);
  }
  if (!data.hasPlaces || data.lanes) return;
  const [x, y] = view.toScreen(data.clusterX[k], data.clusterY[k]);
  context.strokeStyle = context.fillStyle = shade[1];
  context.lineWidth = 2;
  context.beginPath();
  context.ellipse(x, y, ELLIPSE * data.placeSd(0, k) * view.scaleX, ELLIPSE * data.placeSd(1, k) * view.scaleY, 0, 0, 2 * Math.PI);
  context.stroke();
  context.fillRect(x - 1.5, y - 1.5, 3, 3);
}

/** Between the outlines at the ends of the 95 % intervals of the sides. */
/** @param {CanvasRenderingContext2D} context @param {Data} data @param {View} view @param {number} k @param {string} colour */
function drawBand(context, data, view, k, colour) {
  const [x, y] = view.toScreen(data.clusterX[k], data.clusterY[k]);
  const turn = data.objects.turn ? data.objects.turn[k] : 0;
  context.fillStyle = colour;
  context.globalAlpha = 0.3;
  context.beginPath();
  for (const end of ["Hi", "Lo"]) {
    const [width, height] = [data[`clusterWidth${end}`][k], data[`clusterHeight${end}`][k]];
    trace(context, data.objectShape, x, y, ...onScreen(data.ground, view, data.clusterY[k], width, height), turn);
  }
  context.fill("evenodd");
  context.globalAlpha = 1;
}

/** The clusters of some draws that hold any of the object's members. */
/** @param {CanvasRenderingContext2D} context @param {State} state @param {View} view @param {string} colour */
function drawGhosts(context, state, view, colour) {
  const { data } = state;
  const groups = new Set();
  for (const i of data.clusterMembers.of(state.selected)) for (const g of data.groupsOfItem(i)) groups.add(g);
  context.globalAlpha = 0.3;
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = 0.8;
  for (const g of groups) {
    /** @param {string} name @param {number} at */
    const value = (name, at) => data[`ghost${name}Low`][g] + ((data[`ghost${name}High`][g] - data[`ghost${name}Low`][g]) * data[`ghost${name}`][at]) / 255;
    let at = data.ghostOffsets[g];
    visitDraws(data, g, data.ghostBefore, () => {
      drawGhost(context, data, view, (name) => value(name, at));
      at++;
    });
  }
  context.globalAlpha = 1;
}

/** One draw of one cluster; `value` gives its place and its sides by name. */
/** @param {CanvasRenderingContext2D} context @param {Data} data @param {View} view @param {(name: string) => number} value */
function drawGhost(context, data, view, value) {
  const [x, y] = view.toScreen(value("X"), value("Y"));
  context.beginPath();
  if (!data.ghostWidth) {
    context.arc(x, y, 1.6, 0, 2 * Math.PI);
    return context.fill();
  }
  const width = value("Width");
  const sides = onScreen(data.ground, view, value("Y"), width, data.ghostHeight ? value("Height") : width);
  trace(context, data.objectShape, x, y, ...sides, data.ghostAngle ? turnOf(data, value("Angle")) : 0);
  context.stroke();
}

/** Half the width and half the height, in pixels, of what lies at y. */
/** @param {Ground} ground @param {View} view @param {number} y @param {number} width @param {number} height @returns {[number, number]} */
function onScreen(ground, view, y, width, height) {
  /** @param {number} length */
  const half = (length) => Math.max((length / 2) * ground.perLength, 0);
  return [half(width) * ground.stretch(y) * view.scaleX, half(height) * view.scaleY];
}

/** @param {CanvasRenderingContext2D} context @param {View} view @param {Outlines} outlines @param {number} i @param {string} colour @param {number} width */
function drawOutline(context, view, { shape, x, y, wide, high, turn }, i, colour, width) {
  const isPoint = shape === "point";
  const [a, b] = isPoint ? [5, 5] : [(wide[i] / 2) * view.scaleX, (high[i] / 2) * view.scaleY];
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  trace(context, shape, ...view.toScreen(x[i], y[i]), a, b, isPoint || !turn ? 0 : turn[i]);
  context.stroke();
}

/** A bar of 1, 2 or 5 times a power of ten, about an eighth of the width; on a sphere it holds for
 *  the middle of what is seen, from west to east. */
/** @param {CanvasRenderingContext2D} context @param {View} view @param {Ground} ground @param {string} ink @param {string} paper @returns {Bar} */
function drawScaleBar(context, view, ground, ink, paper) {
  const perLength = 2 * onScreen(ground, view, view.y, 1, 1)[0];
  const wanted = Math.max(view.width / 8, 60) / perLength;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const length = ([5, 2].find((k) => k * power <= wanted) ?? 1) * power;
  const width = length * perLength;
  const [x, y] = [14, view.height - 16];
  const text = `${Number(length.toPrecision(3)).toLocaleString("en-US")}${ground.unit}`;
  context.font = "12px system-ui, sans-serif";
  context.lineJoin = "round";
  for (const [colour, thick] of /** @type {[string, number][]} */ ([[paper, 5], [ink, 2]])) {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.beginPath();
    context.moveTo(x, y - 5);
    context.lineTo(x, y);
    context.lineTo(x + width, y);
    context.lineTo(x + width, y - 5);
    context.stroke();
    if (thick > 2) context.strokeText(text, x + 6, y - 6);
  }
  context.fillStyle = ink;
  context.fillText(text, x + 6, y - 6);
  return { length, width, text };
}
