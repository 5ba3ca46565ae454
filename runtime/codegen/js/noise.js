// Standard normal numbers that depend only on (seed, sample, step, layer, neuron): Philox-4x32-10, then a piecewise
// polynomial in float64. NORMAL[octave·8 + power] holds its coefficients.

// The high 32 bits of a product of two 32-bit numbers, from four products of 16 bits.
function high(a, b) {
  const p = a >>> 16, q = a & 0xffff, r = b >>> 16, s = b & 0xffff;
  const low = q * s, middle = p * s + (low >>> 16), other = q * r + (middle & 0xffff);
  return p * r + Math.floor(middle / 65536) + (other >>> 16) >>> 0;
}

function normals(y, seed, layer, step, sample) {
  for (let block = 0; 4 * block < y.length; block++) {
    let a = block, b = layer, c = step, d = sample, k = seed >>> 0, l = Math.floor(seed / 4294967296);
    for (let turn = 0; turn < 10; turn++) {
      const first = Math.imul(a, 0xd2511f53), second = Math.imul(c, 0xcd9e8d57);
      const up = high(a, 0xd2511f53), over = high(c, 0xcd9e8d57);
      a = (over ^ b ^ k) >>> 0;
      b = second >>> 0;
      c = (up ^ d ^ l) >>> 0;
      d = first >>> 0;
      k = k + 0x9e3779b9 >>> 0;
      l = l + 0xbb67ae85 >>> 0;
    }
    const words = [a, b, c, d];
    for (let n = 0; n < 4 && 4 * block + n < y.length; n++) y[4 * block + n] = normal(words[n]);
  }
}

// The top bit is the sign; the others give the tail probability (2m + 1) / 2³³.
function normal(word) {
  const odd = (word & 0x7fffffff) * 2 + 1, octave = 32 - Math.clz32(odd);
  const v = odd / ((1 << octave - 1 >>> 0) * 2) * 4 - 3, row = (octave - 1) * 8;
  let value = NORMAL[row + 7];
  for (let power = 6; power >= 0; power--) value = value * v + NORMAL[row + power];
  return word >>> 31 ? -value : value;
}
