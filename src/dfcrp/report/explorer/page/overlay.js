// What lies over the map: the selected object with its uncertainty, the region, the scale bar.

/** Semi-axes of a 95 % ellipse in standard deviations: the root of -2 ln 0.05. */
const ELLIPSE = Math.sqrt(-2 * Math.log(0.05));

function makeOverlay(state, view, canvas) {
  const context = canvas.getContext("2d");
  const overlay = {
    hovered: -1,
    dragged: null,
    /** What the scale bar says, and its width in pixels. */
    bar: null,
    draw() {
      prepareCanvas(canvas, context, view, null);
      const ink = isDark(state) ? "#FFFFFF" : "#1D2329";
      if (state.region) drawRegion(context, view, state.region, ink);
      if (overlay.dragged) drawRegion(context, view, overlay.dragged, ink);
      if (state.selected >= 0) drawSelected(context, state, view, ink, overlay.hovered);
      overlay.bar = drawScaleBar(context, view, state.data.ground, ink, groundColour(state));
    },
  };
  return overlay;
}

function drawRegion(context, view, [left, low, right, high], ink) {
  const [x0, y0] = view.toScreen(left, low);
  const [x1, y1] = view.toScreen(right, high);
  context.setLineDash([6, 4]);
  context.lineWidth = 1.5;
  context.strokeStyle = ink;
  context.strokeRect(x0, y0, x1 - x0, y1 - y0);
  context.setLineDash([]);
}

function drawSelected(context, state, view, ink, hovered) {
  const { data } = state;
  const k = state.selected;
  const shade = DISTINCT[isDark(state) ? "dark" : "light"];
  if (state.ghosts) drawGhosts(context, state, view, shade[0]);
  const [x, y] = view.toScreen(data.clusterX[k], data.clusterY[k]);
  const radii = (diameter) => radiiOnScreen(data.ground, view, data.clusterY[k], Math.max(diameter, 0));
  context.fillStyle = shade[4];
  context.globalAlpha = 0.3;
  context.beginPath();
  context.ellipse(x, y, ...radii(data.clusterDiameterHi[k]), 0, 0, 2 * Math.PI);
  context.ellipse(x, y, ...radii(data.clusterDiameterLo[k]), 0, 0, 2 * Math.PI, true);
  context.fill();
  context.globalAlpha = 1;
  for (const i of data.clusterMembers.of(k)) {
    if (state.off.has(data.markingExpert[i])) continue;
    ring(context, view, data.ground, data.markingX[i], data.markingY[i], data.markingDiameter[i], ink, i === hovered ? 4 : 1.4);
  }
  context.strokeStyle = context.fillStyle = shade[1];
  context.lineWidth = 2;
  context.beginPath();
  context.ellipse(x, y, ELLIPSE * data.clusterXSd[k] * view.scaleX, ELLIPSE * data.clusterYSd[k] * view.scale, 0, 0, 2 * Math.PI);
  context.stroke();
  context.fillRect(x - 1.5, y - 1.5, 3, 3);
}

/** The clusters of some draws that hold any of the object's members. */
function drawGhosts(context, state, view, colour) {
  const { data } = state;
  const groups = new Set();
  for (const i of data.clusterMembers.of(state.selected)) data.groupsOfMarking(i).forEach((g) => groups.add(g));
  context.globalAlpha = 0.3;
  for (const g of groups) {
    const value = (name, at) => data[`ghost${name}Low`][g] + ((data[`ghost${name}High`][g] - data[`ghost${name}Low`][g]) * data[`ghost${name}`][at]) / 255;
    let at = data.ghostOffsets[g];
    visitDraws(data, g, data.ghostBefore, () => {
      ring(context, view, data.ground, value("X", at), value("Y", at), Math.exp(value("LogDiameter", at)), colour, 0.8);
      at++;
    });
  }
  context.globalAlpha = 1;
}

/** Half the width and half the height, in pixels, of a circle that lies at y. */
function radiiOnScreen(ground, view, y, diameter) {
  const radius = (diameter / 2) * ground.perLength;
  return [radius * ground.stretch(y) * view.scaleX, radius * view.scale];
}

function ring(context, view, ground, x, y, diameter, colour, width) {
  const [sx, sy] = view.toScreen(x, y);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.ellipse(sx, sy, ...radiiOnScreen(ground, view, y, diameter), 0, 0, 2 * Math.PI);
  context.stroke();
}

/** A bar of 1, 2 or 5 times a power of ten, about an eighth of the width; on a sphere it holds for
 *  the middle of what is seen, from west to east. */
function drawScaleBar(context, view, ground, ink, paper) {
  const perLength = 2 * radiiOnScreen(ground, view, view.y, 1)[0];
  const wanted = Math.max(view.width / 8, 60) / perLength;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const length = [5, 2, 1].find((k) => k * power <= wanted) * power;
  const width = length * perLength;
  const [x, y] = [14, view.height - 16];
  const text = `${Number(length.toPrecision(3)).toLocaleString("en-US")}${ground.unit}`;
  context.font = "12px system-ui, sans-serif";
  context.lineJoin = "round";
  for (const [colour, thick] of [[paper, 5], [ink, 2]]) {
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
