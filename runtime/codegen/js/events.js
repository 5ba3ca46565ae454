// Convert events to frames of counts, as the contract's binning states.

function binning() {
  const found = contract.input.binning;
  if (found === null) throw new TypeError('this network takes frames, not events: its contract defines no event binning');
  return found;
}

// Pixel x of `old` pixels becomes the one of `wanted` pixels that contains its centre.
function scaled(x, old, wanted) {
  return old === wanted ? x : Math.floor((2 * x + 1) * wanted / (2 * old));
}

// Return the index of an event in its frame, or the reason why it has none. Events are those of the device's sensor;
// `fitted` ones are already on the network's own.
function cellOf(x, y, p, fitted = false) {
  const { sensor: grid, downsample, polarity } = binning(), rowStep = grid.height === 1 ? 1 : downsample;
  const region = (!fitted && contract.input.fit) || { sensor: grid, left: 0, top: 0, width: grid.width, height: grid.height };
  const { sensor } = region;
  if (!(x >= 0 && x < sensor.width && y >= 0 && y < sensor.height)) return 'off_sensor';
  if (!(p >= 0 && p < sensor.polarities)) return 'bad_polarity';
  const [across, down] = [x - region.left, y - region.top];
  if (!(across >= 0 && across < region.width && down >= 0 && down < region.height)) return 'cropped';
  const column = Math.floor(scaled(across, region.width, grid.width) / downsample);
  const row = Math.floor(scaled(down, region.height, grid.height) / rowStep), channel = polarity === 'merge' ? 0 : p;
  return (channel * (grid.height / rowStep) + row) * (grid.width / downsample) + column;
}

function cellsOf({ x, y = null, p = null, fitted = false }) {
  return Array.from(x, (_, i) => cellOf(x[i], y === null ? 0 : y[i], p === null ? 0 : p[i], fitted));
}

function limit() {
  return binning().values === 'binary' ? 1 : binning().clip;
}

function nothingOutside() {
  return { off_sensor: 0, bad_polarity: 0, cropped: 0, before: 0, after: 0, late: 0 };
}

// Count the events {x, y, p} of one time bin, and in `outside` those that have no cell.
function countEvents(events, counts, outside = nothingOutside()) {
  counts.fill(0);
  for (const cell of cellsOf(events)) {
    if (typeof cell === 'number') counts[cell] = Math.min(counts[cell] + 1, limit());
    else outside[cell]++;
  }
  return counts;
}

// Which bin an event is in that comes after all earlier ones; `complete(stop)` is called once all bins before `stop` are
// over, and `ended(t)` as soon as the number of its events has ended a bin.
function clock(start) {
  const { bin_us: length, most_events: most } = binning();
  let anchor = start, base = 0, count = 0, bin = 0;
  const binOf = (t) => (t < anchor ? -1 : base + Math.floor((t - anchor) / length));
  const move = (stop) => { if (stop > bin) [bin, count] = [stop, 0]; };
  // Count an event at time t into the open bin; return whether it ends the bin.
  const take = (t) => {
    if (++count !== most) return false;
    [anchor, base] = [t, bin + 1];
    move(bin + 1);
    return true;
  };
  return { binOf, move, take, get bin() { return bin; } };
}

// Return the frames of a recording's first window, and the number of events outside them by reason.
function binRecording(recording) {
  const { bins, origin } = binning(), size = contract.input.shape.reduce((a, b) => a * b, 1);
  const { t } = recording, cells = cellsOf(recording);
  let start = 0;
  if (origin === 'first') start = t.reduce((least, time, i) => (typeof cells[i] === 'number' ? Math.min(least, time) : least), Infinity);
  const frames = Array.from({ length: bins }, () => new Uint8Array(size)), outside = nothingOutside();
  const time = clock(start), order = Array.from(t, (_, i) => i).sort((a, b) => t[a] - t[b]);  // a stable sort
  for (const i of order) {
    if (typeof cells[i] === 'string') {
      outside[cells[i]]++;
      continue;
    }
    const bin = time.binOf(t[i]);
    if (t[i] < start) outside.before++;
    else if (bin >= bins) outside.after++;
    else {
      frames[bin][cells[i]] = Math.min(frames[bin][cells[i]] + 1, limit());
      time.move(bin);
      time.take(t[i]);
    }
  }
  return { frames, outside };
}
