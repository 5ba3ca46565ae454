// Drawings of the panel, each from numbers to a canvas.
const sum = (values) => values.reduce((a, b) => a + b, 0);

function blank(canvas, width, height) {
  canvas.width = width;
  canvas.height = height;
  return canvas.getContext('2d');
}

// A square for each pixel of the sensor: ink as a shade, an event as a colour.
function drawPixels(canvas, width, height, pixel, style) {
  const scale = Math.max(1, Math.floor(384 / Math.max(width, height))), to = blank(canvas, width * scale, height * scale);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
    const { ink, event } = pixel(x, y);
    to.globalAlpha = event ? 0.95 : Math.min(1, ink) * 0.45;
    if (!event && ink < 0.02) continue;
    to.fillStyle = style(event ?? '--text');
    to.fillRect(x * scale, y * scale, scale, scale);
  }
}

// Time to the right, channels upwards: painted events, or those of the frames.
function drawPainted(canvas, painted, history, step, { width, bins, input }, style) {
  const to = blank(canvas, 480, 300), span = input.binning.bins * input.binning.bin_us;
  to.fillStyle = style('--c1');
  for (const { t, x } of painted) to.fillRect(t / span * 480, (1 - (x + 1) / width) * 300, 3, Math.max(2, 300 / width));
  if (painted.length) return;
  history.slice(0, step + 1).forEach(({ frame }, at) => frame.forEach((count, channel) => {
    if (count) to.fillRect(at / bins * 480, (1 - (channel + 1) / frame.length) * 300, Math.max(1, 480 / bins), Math.max(1, 300 / frame.length));
  }));
}

function drawBars(canvas, values, steps, colour) {
  const to = blank(canvas, 600, 44), most = Math.max(1, ...values), width = 600 / steps;
  to.fillStyle = colour;
  values.forEach((value, at) => to.fillRect(at * width, 44 - 42 * value / most, Math.max(1, width - 1), 42 * value / most));
}

// A row for each neuron, or for some of them together where there are more than a screen shows.
function drawRaster(canvas, steps, most, colour) {
  const neurons = steps[0]?.length ?? 1, rows = Math.min(128, neurons), to = blank(canvas, 900, 256), width = 900 / most, tall = 256 / rows;
  to.fillStyle = colour;
  steps.forEach((spikes, at) => spikes.forEach((fired, neuron) => {
    const row = Math.floor(neuron * rows / neurons);
    if (fired) to.fillRect(at * width, row * tall, Math.max(1, width - 1), Math.max(1, tall - 0.5));
  }));
}

// Neurons of an image's one step, row by row.
function drawGrid(canvas, spikes, colour) {
  const columns = Math.max(1, Math.ceil(Math.sqrt(spikes.length * 5))), side = Math.max(1, Math.floor(1200 / columns));
  const to = blank(canvas, columns * side, Math.max(1, Math.ceil(spikes.length / columns)) * side);
  to.fillStyle = colour;
  spikes.forEach((fired, at) => fired && to.fillRect(at % columns * side, Math.floor(at / columns) * side, side - 1, side - 1));
}

// Classes with a colour are drawn last, over the grey ones.
function drawLines(canvas, steps, most, colour, colours) {
  const to = blank(canvas, 1200, 240), width = 1200 / most;
  const grey = (steps[0] ?? []).map((_, entry) => entry).filter((entry) => !colours.has(entry));
  for (const entry of steps.length ? [...grey, ...colours.keys()] : []) {
    to.lineWidth = colours.has(entry) ? 4 : 2;
    to.strokeStyle = colour(entry);
    to.beginPath();
    steps.forEach((shares, at) => to.lineTo((at + 0.5) * width, 235 - 230 * shares[entry]));
    to.stroke();
  }
}
