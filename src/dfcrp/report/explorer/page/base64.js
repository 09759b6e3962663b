// Arrays that were packed as text, and compressed if they are large.

/** @param {string} text */
function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let k = 0; k < binary.length; k++) bytes[k] = binary.charCodeAt(k);
  return bytes;
}

/** The arrays by name; `table` has the type, the first byte and the length of each. */
/** @param {string} text @param {ArrayTable} table @param {boolean} compressed @returns {Promise<{ [name: string]: Numbers }>} */
async function arraysOf(text, table, compressed) {
  const packed = fromBase64(text);
  const bytes = compressed ? await inflated(packed) : packed;
  /** @type {{ [name: string]: Numbers }} */
  const arrays = {};
  const ready = new Map();
  for (const [name, [kind, start, length]] of Object.entries(table)) {
    const Kind = /** @type {any} */ (globalThis)[kind + "Array"];
    const key = `${kind} ${start} ${length}`;
    if (!ready.has(key)) {
      if (compressed) putTogether(bytes.subarray(start, start + length * Kind.BYTES_PER_ELEMENT), Kind.BYTES_PER_ELEMENT);
      ready.set(key, new Kind(bytes.buffer, start, length));
    }
    arrays[name] = ready.get(key);
  }
  return arrays;
}

/** @param {Uint8Array<ArrayBuffer>} bytes */
async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Numbers whose first bytes come first, then their second bytes, and so on, as they are in memory. */
/** @param {Uint8Array<ArrayBuffer>} bytes @param {number} width */
function putTogether(bytes, width) {
  if (width === 1) return;
  const parted = bytes.slice();
  const length = bytes.length / width;
  for (let part = 0; part < width; part++) {
    for (let k = 0; k < length; k++) bytes[k * width + part] = parted[part * length + k];
  }
}
