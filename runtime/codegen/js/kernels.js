// Kernels of all instructions except neurons, which are generated from their operators. Weights lie on the file's grid,
// so sums of synapses are exact in any order. All else is rounded to float32 after each operation, in a fixed order.
const round = Math.fround;

// List the indices of the non-zero inputs, and return their number.
function active(x, list) {
  let n = 0;
  for (let i = 0; i < x.length; i++) {
    list[n] = i;
    n += x[i] !== 0 ? 1 : 0;
  }
  return n;
}

// y = W·x + b from the rows of active inputs only; rows[i·m + j] = w_ji.
function linear(y, x, list, n, rows, bias) {
  const m = y.length;
  y.fill(0);
  if (bias !== null) y.set(bias);
  let k = 0;
  for (; k + 4 <= n; k += 4) {
    const a = x[list[k]], b = x[list[k + 1]], c = x[list[k + 2]], d = x[list[k + 3]];
    const p = list[k] * m, q = list[k + 1] * m, r = list[k + 2] * m, s = list[k + 3] * m;
    for (let j = 0; j < m; j++) y[j] += a * rows[p + j] + b * rows[q + j] + c * rows[r + j] + d * rows[s + j];
  }
  for (; k < n; k++) {
    const a = x[list[k]], p = list[k] * m;
    for (let j = 0; j < m; j++) y[j] += a * rows[p + j];
  }
}

// y = W ∗ x + b: an active input adds a row of weights to every output that it reaches; sum is [height, width, channel].
function conv(y, x, list, n, weights, bias, sum, sizes) {
  const [height, width, channels, rows, columns, tall, wide, inputs, outputs, top, left, ...steps] = sizes;
  const [rowStride, columnStride, rowDilation, columnDilation] = steps, plane = height * width, area = rows * columns;
  sum.fill(0);
  for (let k = 0; k < n; k++) {
    const i = list[k], v = x[i], channel = Math.floor(i / plane), at = i - channel * plane;
    const row = Math.floor(at / width) + top, column = at % width + left;
    const first = Math.floor(channel / inputs) * outputs;
    for (let ky = 0; ky < tall; ky++) {
      const down = row - ky * rowDilation, p = down / rowStride;
      if (down < 0 || p >= rows || p !== Math.floor(p)) continue;
      for (let kx = 0; kx < wide; kx++) {
        const across = column - kx * columnDilation, q = across / columnStride;
        if (across < 0 || q >= columns || q !== Math.floor(q)) continue;
        const to = (p * columns + q) * channels + first, from = ((channel * tall + ky) * wide + kx) * outputs;
        for (let o = 0; o < outputs; o++) sum[to + o] += v * weights[from + o];
      }
    }
  }
  for (let o = 0; o < channels; o++) {
    const b = bias === null ? 0 : bias[o];
    for (let p = 0; p < area; p++) y[o * area + p] = sum[p * channels + o] + b;
  }
}

function add(y, a, b) {
  for (let i = 0; i < y.length; i++) y[i] = a[i] + b[i];
}

function sub(y, a, b) {
  for (let i = 0; i < y.length; i++) y[i] = a[i] - b[i];
}

function mul(y, a, b) {
  for (let i = 0; i < y.length; i++) y[i] = a[i] * b[i];
}

// a_i = Σ_k x_k² − x_i², exact because x are spikes or counts
function recurrentActivity(y, x) {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i] * x[i];
  for (let i = 0; i < x.length; i++) y[i] = sum - x[i] * x[i];
}

// ((a + b) + (c + d)) · ¼ over squares of 2 × 2, in that order
function poolPairs(y, x, width) {
  const half = width / 2;
  for (let i = 0; i < y.length; i++) {
    const at = Math.floor(i / half) * 2 * width + i % half * 2, under = at + width;
    y[i] = round(round(x[at] + x[at + 1]) + round(x[under] + x[under + 1])) * 0.25;
  }
}

// Means over windows of a power of two: exact, because x lies on a grid.
function averagePool(y, x, width, tall, wide) {
  pool(y, x, width, tall, wide, 0, (a, b) => a + b, 1 / (tall * wide));
}

// The largest value of each window.
function maxPool(y, x, width, tall, wide) {
  pool(y, x, width, tall, wide, -Infinity, Math.max, 1);
}

function pool(y, x, width, tall, wide, start, join, scale) {
  const across = width / wide;
  for (let i = 0; i < y.length; i++) {
    const corner = Math.floor(i / across) * tall * width + i % across * wide;
    let found = start;
    for (let r = 0; r < tall; r++) for (let c = 0; c < wide; c++) found = join(found, x[corner + r * width + c]);
    y[i] = found * scale;
  }
}

// y[to + Σ i·steps] = x[from + Σ i·strides] over all i below counts: slices, pads, transposes, joins and broadcasts.
function copy(y, to, steps, x, from, strides, counts) {
  const last = counts.length - 1, at = new Array(counts.length).fill(0);
  if (last < 0) {
    y[to] = x[from];
    return;
  }
  for (;;) {
    for (let i = 0, a = to, b = from; i < counts[last]; i++, a += steps[last], b += strides[last]) y[a] = x[b];
    let axis = last - 1;
    for (; axis >= 0 && ++at[axis] === counts[axis]; axis--) {
      to -= steps[axis] * (counts[axis] - 1);
      from -= strides[axis] * (counts[axis] - 1);
      at[axis] = 0;
    }
    if (axis < 0) return;
    to += steps[axis];
    from += strides[axis];
  }
}

// A constant from the bytes of an array of integers or floats, in units of a power of two.
function constant(text, Kind, unit) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const values = Kind === Int24 ? Int24(bytes) : new Kind(bytes.buffer);
  return Float32Array.from(values, (value) => value * unit);
}

// Little-endian integers of three bytes.
function Int24(bytes) {
  return Int32Array.from({ length: bytes.length / 3 }, (_, i) => bytes[3 * i] | bytes[3 * i + 1] << 8 | bytes[3 * i + 2] << 24 >> 8);
}
