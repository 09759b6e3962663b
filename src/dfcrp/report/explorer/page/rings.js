// Small rings by the thousand: stamped into pixels here, which without a GPU takes a tenth of the
// time that the browser takes to stroke them.

/** Radius, in pixels, up to which rings are stamped; sizes differ by a quarter of a pixel. */
const MAX_STAMP = 16;
const STAMPS_PER_PIXEL = 4;

/** Where a ring covers pixels, relative to its centre, and how much of each. */
function makeStamp(radius, width) {
  const half = Math.ceil(radius + width / 2 + 0.5);
  const [across, down, cover] = [[], [], []];
  for (let dy = -half; dy <= half; dy++) {
    for (let dx = -half; dx <= half; dx++) {
      const share = Math.min(width / 2 + 0.5 - Math.abs(Math.hypot(dx, dy) - radius), 1, width);
      if (share < 0.02) continue;
      across.push(dx);
      down.push(dy);
      cover.push(share);
    }
  }
  return { half, across: Int16Array.from(across), down: Int16Array.from(down), cover: Float32Array.from(cover) };
}

/** A sheet of pixels over the map, as large as its canvas. */
function makeSheet() {
  const canvas = element("canvas");
  const context = canvas.getContext("2d", { willReadFrequently: true });
  let image = null;
  let stamps = new Map();
  let stampWidth = 0;
  const stampOf = (radius, width) => {
    if (width !== stampWidth) [stamps, stampWidth] = [new Map(), width];
    const bucket = Math.max(Math.round(radius * STAMPS_PER_PIXEL), 1);
    if (!stamps.has(bucket)) stamps.set(bucket, makeStamp(bucket / STAMPS_PER_PIXEL, width));
    return stamps.get(bucket);
  };
  return {
    clear(width, height) {
      if (!image || canvas.width !== width || canvas.height !== height) {
        [canvas.width, canvas.height] = [width, height];
        image = context.createImageData(width, height);
      } else {
        image.data.fill(0);
      }
    },
    /** Put a ring at whole pixels, over what is there. */
    ring(x, y, radius, width, colour, opacity) {
      blend(image, stampOf(radius, width), Math.round(x), Math.round(y), colour, opacity);
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
function channels(colour) {
  if (colour[0] === "#") return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return colour.match(/\d+/g).map(Number);
}
