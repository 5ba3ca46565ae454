// Convert events to frames of counts, as the contract's binning states.

function binning() {
  const found = contract.input.binning;
  if (found === null) throw new TypeError('this network takes frames, not events: its contract defines no event binning');
  return found;
}

// Return the index of an event in its frame, or the reason why it has none.
function cellOf(x, y, p) {
  const { sensor, downsample, polarity } = binning(), rowStep = sensor.height === 1 ? 1 : downsample;
  if (!(x >= 0 && x < sensor.width && y >= 0 && y < sensor.height)) return 'off_sensor';
  if (!(p >= 0 && p < sensor.polarities)) return 'bad_polarity';
  const width = sensor.width / downsample, height = sensor.height / rowStep;
  const channel = polarity === 'merge' ? 0 : p;
  return (channel * height + Math.floor(y / rowStep)) * width + Math.floor(x / downsample);
}

function limit() {
  return binning().values === 'binary' ? 1 : binning().clip;
}

// Count the events {x, y, p} of one time bin; events off the sensor are left out.
function countEvents({ x, y = null, p = null }, counts) {
  counts.fill(0);
  for (let i = 0; i < x.length; i++) {
    const cell = cellOf(x[i], y === null ? 0 : y[i], p === null ? 0 : p[i]);
    if (typeof cell === 'number') counts[cell] = Math.min(counts[cell] + 1, limit());
  }
  return counts;
}

// Return the frames of a recording's first window, and the number of events outside them by reason.
function binRecording({ t, x, y = null, p = null }) {
  const { bins, bin_us: length, origin } = binning(), size = contract.input.shape.reduce((a, b) => a * b, 1);
  const cells = Array.from(t, (_, i) => cellOf(x[i], y === null ? 0 : y[i], p === null ? 0 : p[i]));
  let start = 0;
  if (origin === 'first') start = t.reduce((least, time, i) => (typeof cells[i] === 'number' ? Math.min(least, time) : least), Infinity);
  const frames = Array.from({ length: bins }, () => new Uint8Array(size));
  const outside = { off_sensor: 0, bad_polarity: 0, before: 0, after: 0 };
  for (let i = 0; i < t.length; i++) {
    const bin = Math.floor((t[i] - start) / length);
    if (typeof cells[i] === 'string') outside[cells[i]]++;
    else if (bin < 0) outside.before++;
    else if (bin >= bins) outside.after++;
    else frames[bin][cells[i]] = Math.min(frames[bin][cells[i]] + 1, limit());
  }
  return { frames, outside };
}
