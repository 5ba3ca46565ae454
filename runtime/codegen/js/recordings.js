// Read recordings (npz, npy, csv, EVT 2.0, DAT and N-MNIST's bin) from their bytes to columns {t, x, y, p}.

// Read the recording of a file, whose format is detected from its first bytes; index selects one of an npz with several.
async function readRecording(given, name = 'recording', index = 0) {
  const bytes = new Uint8Array(given);  // a copy, because slices of Node.js buffers share memory
  const text = new TextDecoder('latin1').decode(bytes.subarray(0, 65536));
  if (text.startsWith('PK')) return readNpz(bytes, index);
  if (text.startsWith('\x93NUMPY')) return fromColumns(readNpy(bytes));
  if (text.startsWith('% ')) return readProphesee(bytes, text);
  if (name.toLowerCase().endsWith('.bin')) return readNmnist(bytes);
  if (/^(\xef\xbb\xbf)?[\s"]*[txyp]["\s]*,/i.test(text)) return readCsv(new TextDecoder().decode(bytes));
  throw new TypeError(`${name}: unknown format; expected npz, npy, csv with the columns t,x,y,p, EVT 2.0, DAT, N-MNIST's bin`);
}

function fromColumns({ t, x, y = null, p = null, sensor = null }) {
  if (t === undefined || x === undefined) throw new TypeError('t or x is missing; a recording needs both');
  const size = sensor === null ? null : { width: Number(sensor[0]), height: Number(sensor[1]) };
  return { t: numbers(t), x: numbers(x), y: y && numbers(y), p: p && numbers(p), sensor: size };
}

function numbers(column) {
  return Float64Array.from(column, Number);
}

// Read lines of whole numbers below a line with the column names t, x, y and p in any order.
function readCsv(text) {
  const [head, ...lines] = text.trim().split(/\r?\n/);
  const names = head.replace('\ufeff', '').split(',').map((name) => name.trim().replaceAll('"', '').toLowerCase());
  const columns = Object.fromEntries(names.map((name) => [name, new Float64Array(lines.length)]));
  lines.forEach((line, row) => {
    const cells = line.split(',');
    names.forEach((name, at) => {
      columns[name][row] = Number(cells[at]);
      if (!Number.isInteger(columns[name][row]) || !cells[at].trim()) throw new TypeError(`line ${row + 2}, column ${name}: expected a whole number`);
    });
  });
  return fromColumns(columns);
}

// Yield the arrays of a zip file from the directory at its end.
async function readNpz(bytes, index) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), arrays = {};
  let end = bytes.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end--;
  if (end < 0) throw new TypeError('the zip directory is missing: the file was cut off');
  for (let n = view.getUint16(end + 10, true), at = view.getUint32(end + 16, true); n > 0; n--) {
    const [method, length] = [view.getUint16(at + 10, true), view.getUint32(at + 20, true)];
    const [named, extra, comment] = [28, 30, 32].map((field) => view.getUint16(at + field, true));
    const name = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + named)), local = view.getUint32(at + 42, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    arrays[name.replace(/\.npy$/, '')] = readNpy(await inflated(bytes.subarray(start, start + length), method));
    at += 46 + named + extra + comment;
  }
  return cut(arrays.events?.t ? { ...arrays, ...arrays.events } : arrays, index);
}

async function inflated(bytes, method) {
  if (method === 0) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function cut(arrays, index) {
  const edges = arrays.offsets ? Array.from(arrays.offsets, Number) : [0, arrays.t?.length];
  if (!(index >= 0 && index < edges.length - 1)) throw new RangeError(`there is no recording ${index}; expected an index from 0 to ${edges.length - 2}`);
  const columns = ['t', 'x', 'y', 'p'].filter((name) => arrays[name]);
  const parts = Object.fromEntries(columns.map((name) => [name, arrays[name].subarray(edges[index], edges[index + 1])]));
  return { ...fromColumns({ ...parts, sensor: arrays.sensor }), recordings: edges.length - 1 };
}

const KINDS = {
  i1: Int8Array, u1: Uint8Array, b1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array,
  i8: BigInt64Array, u8: BigUint64Array, f4: Float32Array, f8: Float64Array,
};

// Return a plain array, or {field: array} for a structured one.
function readNpy(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), wide = bytes[6] > 1;
  const start = (wide ? 12 : 10) + (wide ? view.getUint32(8, true) : view.getUint16(8, true));
  const head = new TextDecoder().decode(bytes.subarray(0, start));
  const data = bytes.slice(start), plain = /'descr': '[<|](\w+)'/.exec(head);
  if (plain) return column(data, plain[1], 0, null);
  const fields = [...head.matchAll(/\('(\w*)', '[<|](\w+)'\)/g)].map(([, name, kind]) => ({ name, kind, size: Number(kind.slice(1)) }));
  if (fields.length === 0) throw new TypeError('the array has an unsupported type; expected little-endian numbers');
  const size = fields.reduce((sum, field) => sum + field.size, 0), found = {};
  let at = 0;
  for (const field of fields) {
    if (field.name && KINDS[field.kind]) found[field.name] = column(data, field.kind, at, size);
    at += field.size;
  }
  return found;
}

function column(data, kind, at, size) {
  if (!KINDS[kind]) throw new TypeError(`the array has the unsupported type ${kind}; expected numbers`);
  if (size === null) return new KINDS[kind](data.buffer);
  const width = Number(kind.slice(1)), packed = new Uint8Array(data.length / size * width);
  for (let row = 0; row * size < data.length; row++) packed.set(data.subarray(row * size + at, row * size + at + width), row * width);
  return new KINDS[kind](packed.buffer);
}

// Unwrap the times of a counter, which has restarted if it steps back by more than half of its range.
function unwrapped(times, span) {
  let turns = 0;
  return times.map((time, i) => {
    const step = i === 0 ? 0 : time - times[i - 1];
    if (step < -span / 2) turns++;
    else if (step >= span - span / 128) turns = Math.max(0, turns - 1);
    return time + turns * span;
  });
}

// Five bytes per event; y = 240 marks an overflow of the camera's own clock.
function readNmnist(bytes) {
  if (bytes.length % 5) throw new TypeError('the last record has less than 5 bytes: the file was cut off');
  const rows = Array.from({ length: bytes.length / 5 }, (_, i) => bytes.subarray(5 * i, 5 * i + 5));
  const times = unwrapped(rows.map((row) => (row[2] & 0x7f) * 65536 + row[3] * 256 + row[4]), 2 ** 23);
  let late = 0;
  const events = rows.map((row, i) => [times[i] + (late += row[1] === 240 ? 8192 : 0), row[0], row[1], row[2] >> 7]);
  return fromRows(events.filter((event) => event[2] !== 240), null);
}

function fromRows(rows, sensor) {
  return fromColumns({ ...Object.fromEntries(['t', 'x', 'y', 'p'].map((name, at) => [name, rows.map((row) => row[at])])), sensor });
}

// Read a header of lines '% keyword value', then 32-bit words: EVT 2.0 in .raw, or DAT.
function readProphesee(bytes, text) {
  const lines = /^(?:% [^\n\0-\x08]*\n)*/.exec(text)[0], end = /^% end.*\n/m.exec(lines);
  const head = end ? lines.slice(0, end.index + end[0].length) : lines;
  const size = /geometry (\d+)x(\d+)/i.exec(head) ?? /width[ =](\d+)[^]*?height[ =](\d+)/i.exec(head);
  const sensor = size && [size[1], size[2]];
  if (/^% (evt 2\.0|format EVT2)(;|\s|$)/im.test(head)) return readEvt2(bytes.slice(head.length), sensor);
  const version = /^% version ([12])\s/im.exec(head);
  if (!version) throw new TypeError('unsupported Prophesee format; expected EVT 2.0 or DAT. Convert other formats with axonnx');
  return readDat(bytes.slice(head.length + 2), version[1] === '2' ? [14, 14] : [9, 8], sensor);
}

function words(data) {
  if (data.length % 4) throw new TypeError('the last word has less than 4 bytes: the file was cut off');
  return new Uint32Array(data.buffer);
}

function readEvt2(data, sensor) {
  const all = words(data), high = unwrapped(Array.from(all.filter((word) => word >>> 28 === 8), (word) => word & 0xfffffff), 2 ** 28);
  const rows = [];
  let seen = 0;
  for (const word of all) {
    if (word >>> 28 === 8) seen++;
    else if (word >>> 28 < 2 && seen) rows.push([high[seen - 1] * 64 + (word >>> 22 & 63), word >>> 11 & 2047, word & 2047, word >>> 28]);
  }
  return fromRows(rows, sensor);
}

function readDat(data, [xBits, yBits], sensor) {
  const all = words(data), times = unwrapped(Array.from(all.filter((_, i) => i % 2 === 0)), 2 ** 32);
  const part = (word, from, bits) => Math.floor(word / 2 ** from) % 2 ** bits;
  const rows = times.map((time, i) => [time, part(all[2 * i + 1], 0, xBits), part(all[2 * i + 1], xBits, yBits), part(all[2 * i + 1], xBits + yBits, 1)]);
  return fromRows(rows, sensor);
}

// Refuse a recording of another sensor. One that states the network's own sensor is `fitted`: it stays as it is.
function fitRecording(recording, { input }) {
  if (input.binning === null) throw new TypeError('this network takes frames, not events: its contract defines no event binning');
  const own = input.binning.sensor, device = input.fit?.sensor ?? own, { sensor } = recording;
  const equals = (other) => sensor.width === other.width && sensor.height === other.height;
  if (sensor === null || equals(device)) return recording;
  if (sensor.width > own.width || sensor.height > own.height) {
    throw new RangeError(`the recording's sensor is ${sensor.width}×${sensor.height}, but the network expects ${device.width}×${device.height}: resize the events first`);
  }
  return { ...recording, fitted: true };
}
