// Kernels. Weights lie on the file's grid, so a sum of synapses is exact in any order; everything else is rounded to
// float32 after each operation, in the order that the operators define.
const round = Math.fround;

// Places of the inputs that are not zero, and how many they are.
function active(x, list) {
  let n = 0;
  for (let i = 0; i < x.length; i++) {
    list[n] = i;
    n += x[i] !== 0 ? 1 : 0;
  }
  return n;
}

// y = W·x + b from the rows of active inputs alone; rows[i·m + j] = w_ji.
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
function conv(y, x, list, n, rows, bias, sum, g) {
  const plane = g.height * g.width, area = g.rows * g.columns;
  sum.fill(0);
  for (let k = 0; k < n; k++) {
    const i = list[k], v = x[i], channel = Math.floor(i / plane), at = i - channel * plane;
    const row = Math.floor(at / g.width) + g.top, column = at % g.width + g.left;
    const first = Math.floor(channel / g.inputs) * g.outputs;
    for (let ky = 0; ky < g.tall; ky++) {
      const down = row - ky * g.dilation[0], p = down / g.stride[0];
      if (down < 0 || p >= g.rows || p !== Math.floor(p)) continue;
      for (let kx = 0; kx < g.wide; kx++) {
        const across = column - kx * g.dilation[1], q = across / g.stride[1];
        if (across < 0 || q >= g.columns || q !== Math.floor(q)) continue;
        const to = (p * g.columns + q) * g.channels + first;
        const from = ((channel * g.tall + ky) * g.wide + kx) * g.outputs;
        for (let o = 0; o < g.outputs; o++) sum[to + o] += v * rows[from + o];
      }
    }
  }
  for (let o = 0; o < g.channels; o++) {
    const b = bias === null ? 0 : bias[o];
    for (let p = 0; p < area; p++) y[o * area + p] = sum[p * g.channels + o] + b;
  }
}

// o = 1 where I ≥ θ
function heaviside(o, current, threshold) {
  for (let i = 0; i < o.length; i++) o[i] = current[i] >= threshold[i] ? 1 : 0;
}

// 1 where h + κ ε ≥ θ, decided on squares: κ² (ε|ε|) ≥ −(h − θ)|h − θ|
function fires(h, variance, noise, threshold) {
  const gap = round(h - threshold), needed = -round(gap * Math.abs(gap));
  return round(variance * round(noise * Math.abs(noise))) >= needed ? 1 : 0;
}

// o = 1 where I + κ ε ≥ θ
function stochasticHeaviside(o, current, variance, noise, threshold) {
  for (let i = 0; i < o.length; i++) o[i] = fires(current[i], variance[i], noise[i], threshold[i]);
}

// h' = β h + I − θ o;   o' = 1 where h' ≥ θ
function lif(h, o, current, membrane, spikes, decay, threshold) {
  for (let i = 0; i < h.length; i++) {
    h[i] = round(round(decay[i] * membrane[i]) + current[i]) - round(threshold[i] * spikes[i]);
    o[i] = h[i] >= threshold[i] ? 1 : 0;
  }
}

// h' = β (h (1 − o)) + I;   o' = 1 where h' ≥ θ
function lifToZero(h, o, current, membrane, spikes, decay, threshold) {
  for (let i = 0; i < h.length; i++) {
    h[i] = round(decay[i] * round(membrane[i] * (1 - spikes[i]))) + current[i];
    o[i] = h[i] >= threshold[i] ? 1 : 0;
  }
}

// h' = β h + I − θ o;   v' = β² v + Var I;   o' = 1 where h' + κ ε ≥ θ with κ² = v' + σ_base²
function stochasticLif(h, v, o, current, arriving, noise, membrane, variance, spikes, decay, threshold, base) {
  for (let i = 0; i < h.length; i++) {
    h[i] = round(round(decay[i] * membrane[i]) + current[i]) - round(threshold[i] * spikes[i]);
    v[i] = round(round(decay[i] * decay[i]) * variance[i]) + arriving[i];
    o[i] = fires(h[i], round(v[i] + base[i]), noise[i], threshold[i]);
  }
}

// h' = β (h (1 − o)) + I;   v' = β² (v (1 − o)) + Var I;   o' as above
function stochasticLifToZero(h, v, o, current, arriving, noise, membrane, variance, spikes, decay, threshold, base) {
  for (let i = 0; i < h.length; i++) {
    const kept = 1 - spikes[i];
    h[i] = round(decay[i] * round(membrane[i] * kept)) + current[i];
    v[i] = round(round(decay[i] * decay[i]) * round(variance[i] * kept)) + arriving[i];
    o[i] = fires(h[i], round(v[i] + base[i]), noise[i], threshold[i]);
  }
}

// i' = α i + I
function leakyCurrent(y, current, synaptic, decay) {
  for (let i = 0; i < y.length; i++) y[i] = round(decay[i] * synaptic[i]) + current[i];
}

// β (h (1 − z o) − r o) + I: what the last spike left of the membrane decays
function charged(h, o, current, decay, zeroed, taken) {
  const kept = round(h * round(1 - round(zeroed * o)));
  return round(round(decay * round(kept - round(taken * o))) + current);
}

// x (1 − Z o) − R o: a reset one step after the spike
function resetLate(x, o, zeroed, taken) {
  return round(round(x * round(1 - round(zeroed * o))) - round(taken * o));
}

// h' = (β (h (1 − z o) − r o) + I) (1 − Z o) − R o;   o' = 1 where h' ≥ θ
function generalLif(h, o, current, membrane, spikes, decay, threshold, zeroed, taken, lateZeroed, lateTaken) {
  for (let i = 0; i < h.length; i++) {
    const x = charged(membrane[i], spikes[i], current[i], decay[i], zeroed[i], taken[i]);
    h[i] = resetLate(x, spikes[i], lateZeroed[i], lateTaken[i]);
    o[i] = h[i] >= threshold[i] ? 1 : 0;
  }
}

// a' = δ a + c h + b o;   h' as above with I − g a';   o' = 1 where h' ≥ θ + f a'
function adaptiveLif(h, a, o, current, membrane, spikes, adaptation, decay, threshold, zeroed, taken, lateZeroed,
  lateTaken, adaptationDecay, membraneShare, spikeShare, currentGain, thresholdGain) {
  for (let i = 0; i < h.length; i++) {
    const raised = round(round(adaptationDecay[i] * adaptation[i]) + round(membraneShare[i] * membrane[i]));
    a[i] = raised + round(spikeShare[i] * spikes[i]);
    const x = charged(membrane[i], spikes[i], current[i], decay[i], zeroed[i], taken[i]);
    h[i] = resetLate(round(x - round(currentGain[i] * a[i])), spikes[i], lateZeroed[i], lateTaken[i]);
    o[i] = h[i] >= round(threshold[i] + round(thresholdGain[i] * a[i])) ? 1 : 0;
  }
}

// h' = β h + I;   s' = s + h'
function leakySum(h, s, current, membrane, total, decay) {
  for (let i = 0; i < h.length; i++) {
    h[i] = round(decay[i] * membrane[i]) + current[i];
    s[i] = total[i] + h[i];
  }
}

function add(y, a, b) {
  for (let i = 0; i < y.length; i++) y[i] = a[i] + b[i];
}

function subtract(y, a, b) {
  for (let i = 0; i < y.length; i++) y[i] = a[i] - b[i];
}

function multiply(y, a, b) {
  for (let i = 0; i < y.length; i++) y[i] = a[i] * b[i];
}

// a_i = Σ_k x_k² − x_i², exact: x is spikes or counts
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

// Means over windows of a power of two: exact, for x lies on a grid.
function averagePool(y, x, width, tall, wide) {
  pool(y, x, width, tall, wide, 0, (a, b) => a + b, 1 / (tall * wide));
}

// The largest of each window.
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

// Integers of three bytes, the low one first.
function Int24(bytes) {
  return Int32Array.from({ length: bytes.length / 3 }, (_, i) => bytes[3 * i] | bytes[3 * i + 1] << 8 | bytes[3 * i + 2] << 24 >> 8);
}

// A constant once for every element of a shape.
function spread(values, counts, strides) {
  const steps = counts.map((_, axis) => counts.slice(axis + 1).reduce((a, b) => a * b, 1));
  const full = new Float32Array(counts.reduce((a, b) => a * b, 1));
  copy(full, 0, steps, values, 0, strides, counts);
  return full;
}
