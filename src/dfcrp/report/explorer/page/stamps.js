// Small outlines and dots by the thousand: stamped into pixels here, which without a GPU takes a tenth
// of the time that the browser takes to stroke them.

/** Half the longer side, in pixels, up to which outlines are stamped. */
const MAX_STAMP = 16;
/** Sizes of circles differ by a quarter of a pixel, sides of others by half of one. */
const STEPS = { circle: 4, other: 2 };
/** Turns differ by this part of half a turn. */
const TURNS = 16;

/** Where an outline covers pixels, relative to its centre, and how much of each; a dot is filled. */
/** @param {StampShape} shape @param {number} a @param {number} b @param {number} turn @param {number} width @returns {Stamp} */
function makeStamp(shape, a, b, turn, width) {
  const half = Math.ceil(Math.max(a, b) * (shape === "box" && turn ? Math.SQRT2 : 1) + width / 2 + 0.5);
  /** @type {number[][]} */
  const [across, down, cover] = [[], [], []];
  for (let dy = -half; dy <= half; dy++) {
    for (let dx = -half; dx <= half; dx++) {
      const away = rimDistance(shape === "dot" ? "point" : shape, dx, dy, a, b, turn);
      const share = shape === "dot" ? Math.min(0.5 - away, 1) : Math.min(width / 2 + 0.5 - Math.abs(away), 1, width);
      if (share < 0.02) continue;
      across.push(dx);
      down.push(dy);
      cover.push(share);
    }
  }
  return { half, across: Int16Array.from(across), down: Int16Array.from(down), cover: Float32Array.from(cover) };
}

/** Stamps by shape and line width, made when first asked for; those of other widths are forgotten. */
/** @returns {(shape: StampShape, width: number) => (a: number, b: number, turn: number) => Stamp} */
function makeStamps() {
  let [stamps, known] = [new Map(), 0];
  return (shape, width) => {
    if (width !== known) [stamps, known] = [new Map(), width];
    if (!stamps.has(shape)) stamps.set(shape, new Map());
    const made = stamps.get(shape);
    return (a, b, turn) => {
      const steps = a === b && shape !== "box" ? STEPS.circle : STEPS.other;
      const p = Math.max(Math.round(a * steps), 1), q = Math.max(Math.round(b * steps), 1);
      const t = turn ? ((Math.round((turn / Math.PI) * TURNS) % TURNS) + TURNS) % TURNS : 0;
      const key = ((p * 128 + q) * TURNS + t) * 8 + steps;
      let stamp = made.get(key);
      if (!stamp) {
        stamp = makeStamp(shape, p / steps, q / steps, (t * Math.PI) / TURNS, width);
        made.set(key, stamp);
      }
      return stamp;
    };
  };
}

/** A sheet of pixels over the map, as large as its canvas. */
/** @returns {Sheet} */
function makeSheet() {
  const canvas = element("canvas");
  const context = penOf(canvas, { willReadFrequently: true });
  const stampsOf = makeStamps();
  let image = context.createImageData(canvas.width, canvas.height);
  return {
    clear(width, height) {
      if (canvas.width !== width || canvas.height !== height) {
        [canvas.width, canvas.height] = [width, height];
        image = context.createImageData(width, height);
      } else {
        image.data.fill(0);
      }
    },
    /** A function that puts outlines or dots of one look at whole pixels, over what is there. */
    stamper(shape, width, colour, opacity) {
      const stampOf = stampsOf(shape, width);
      return (x, y, a, b, turn) => blend(image, stampOf(a, b, turn), Math.round(x), Math.round(y), colour, opacity);
    },
    layOver(target) {
      context.putImageData(image, 0, 0);
      target.save();
      target.setTransform(1, 0, 0, 1, 0, 0);
      target.drawImage(canvas, 0, 0);
      target.restore();
    },
  };
}

/** @param {ImageData} given0 @param {Stamp} stamp @param {number} x @param {number} y @param {number[]} given4 @param {number} opacity */
function blend({ data, width, height }, stamp, x, y, [red, green, blue], opacity) {
  const { half, across, down, cover } = stamp;
  if (x < -half || y < -half || x >= width + half || y >= height + half) return;
  const inside = x >= half && y >= half && x < width - half && y < height - half;
  for (let p = 0; p < cover.length; p++) {
    const px = x + across[p], py = y + down[p];
    if (!inside && (px < 0 || py < 0 || px >= width || py >= height)) continue;
    const at = 4 * (py * width + px);
    const own = cover[p] * opacity;
    const below = (data[at + 3] / 255) * (1 - own);
    const total = own + below;
    data[at] = (red * own + data[at] * below) / total;
    data[at + 1] = (green * own + data[at + 1] * below) / total;
    data[at + 2] = (blue * own + data[at + 2] * below) / total;
    data[at + 3] = 255 * total;
  }
}

/** Red, green and blue of "#RRGGBB" or "rgb(r,g,b)". */
/** @param {string} colour @returns {number[]} */
function channels(colour) {
  if (colour[0] === "#") return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return (colour.match(/\d+/g) ?? []).map(Number);
}
