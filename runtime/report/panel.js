const BRUSH = 5;  // channels on either side of a painted one that fire with it
const SERIES = 6;  // classes with a colour: those that lead first; all others are grey
// A pen that was recorded: it draws on opening where the page has no sample. Places are shares of the sensor.
const RECORDED = [[0.28, 0.36], [0.32, 0.24], [0.5, 0.17], [0.68, 0.26], [0.68, 0.4], [0.5, 0.6], [0.28, 0.82], [0.74, 0.82]];

// The panel: what is drawn or dropped becomes frames, the network takes them one by one, and every step is shown.
function live(panel, network) {
  const { contract, create, binRecording, countEvents, readRecording, fitRecording } = network;
  const kind = panel.dataset.kind, [width, height] = panel.dataset.sensor.split('x').map(Number), input = contract.input;
  const size = input.shape.reduce((a, b) => a * b, 1), bins = input.steps ?? 1, net = create();
  // Frames of counts without a rule for events: each is a bin of a sensor of that shape.
  input.binning ??= { sensor: { width, height, polarities: input.shape.length > 2 ? input.shape[0] : 1 }, bins,
    bin_us: 10000, origin: 'zero', values: 'count', clip: Math.min(255, input.largest), downsample: 1, polarity: 'keep' };
  const polarities = input.binning.sensor.polarities;
  const part = (name) => panel.querySelector(name), sensor = part('.sensor'), slider = part('.player input');
  const drawing = makeDrawing(width, height), strips = [...panel.querySelectorAll('.band canvas')];
  const playing = part('[data-do=play]'), colours = new Map();
  let history = [], painted = [], queue = [], timer = null, pen = null, source = null, opened = false;

  const style = (name) => getComputedStyle(panel).getPropertyValue(name).trim();
  const still = () => kind === 'camera' && part('[value=still]').checked;

  // A screen reader reads the decision, not every step on the way to it.
  function say(...words) {
    part('.told').setAttribute('aria-live', timer ? 'off' : 'polite');
    part('.told').replaceChildren(...words.map((word) => {
      if (typeof word === 'string') return word;
      const strong = document.createElement('b');
      strong.textContent = word[0];
      return strong;
    }));
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    playing.textContent = '▶ Play';
  }

  function every(milliseconds, act) {
    timer = setInterval(act, milliseconds);
    playing.textContent = '❚❚ Pause';
  }

  function begin() {
    stop();
    net.reset();
    colours.clear();
    history = [];
    queue = [];
  }

  // One time step, kept for whoever looks back.
  function take(frame) {
    net.step(frame);
    const found = net.decision(), spikes = net.layers.map((layer) => layer.spikes.map((value) => value));
    history.push({ frame: Int16Array.from(frame), spikes, probabilities: found.probabilities, label: found.label });
    const best = found.probabilities.indexOf(Math.max(...found.probabilities));
    if (!colours.has(best) && colours.size < SERIES) colours.set(best, colours.size + 1);
    slider.value = history.length - 1;
    show(history.length - 1);
  }

  function finish() {
    stop();
    const { label, probability } = net.decision();
    say('Decided: ', [label], ` with ${(100 * probability).toFixed(1)} %${source ? `, ${source}` : ''}.`);
    const detail = { frames: history.map((step) => step.frame), logits: net.memberLogits() };
    panel.dispatchEvent(new CustomEvent('decided', { detail }));
  }

  // All frames from the first one on.
  function play(frames) {
    begin();
    queue = frames;
    goOn();
  }

  // The frames that are left, at a pace that eyes can follow, or at once where the reader wants no motion.
  function goOn() {
    if (queue.length === 1 || matchMedia('(prefers-reduced-motion: reduce)').matches) {
      queue.slice(history.length).forEach(take);
      return finish();
    }
    every(Math.max(25, Math.min(100, 2400 / queue.length)), () => {
      take(queue[history.length]);
      if (history.length === queue.length) finish();
    });
  }

  // What plays on opening: the report's first sample, or what the recorded pen draws.
  function open() {
    if (timer || history.length || pen || source || painted.length || !drawing.empty) return;
    const first = part('[data-example]');
    if (first) return first.click();
    const pens = RECORDED.map(([across, down]) => ({ across, down, x: across * width, y: down * height }));
    pens.slice(1).forEach((to, at) => (kind === 'paint' ? spray(pens[at], to) : drawing.line(pens[at], to)));
    opened = true;
    run('a recorded drawing');
  }

  function clear() {
    begin();
    drawing.clear();
    painted = [];
    source = null;
    opened = false;
  }

  function framesOf(events) {
    return events.map((each) => countEvents({ ...each, fitted: true }, new Uint8Array(size)));
  }

  // What was drawn, as frames.
  function run(told = null) {
    source = told;
    if (kind === 'image') return play([picture()]);
    if (kind === 'paint') return play(binRecording({ ...columns(painted), fitted: true }).frames);
    return play(framesOf(saccade(drawing, width, height, bins).map(merged)));
  }

  function merged(events) {
    return polarities === 1 ? { ...events, p: events.p.map(() => 0) } : events;
  }

  function columns(events) {
    return Object.fromEntries(['t', 'x', 'y', 'p'].map((name) => [name, events.map((event) => event[name])]));
  }

  // Ink as pixel values: the whole range that the contract promises.
  function picture() {
    const low = Math.max(0, input.centre - input.largest), high = input.centre + input.largest, ink = drawing.seen();
    return Float32Array.from({ length: size }, (_, i) => low + Math.round((high - low) * Math.min(1, ink[i % ink.length])));
  }

  // The camera stands still and sees the pen move; bins pass in the reader's own time.
  function watch() {
    begin();
    source = null;
    const look = makeCamera(width), length = Math.max(20, input.binning.bin_us / 1000);
    look(drawing.seen());
    every(length, () => {
      drawing.fade(Math.exp(-length / 150));
      if (pen) drawing.dot(pen.x, pen.y);
      take(countEvents({ ...merged(look(drawing.seen())), fitted: true }, new Uint8Array(size)));
      if (history.length === bins) finish();
    });
  }

  async function read(file) {
    stop();
    source = file.name;
    try {
      const recording = await readRecording(new Uint8Array(await file.arrayBuffer()), file.name);
      const { frames, outside } = binRecording(fitRecording(recording, contract));
      const beyond = Object.values(outside).reduce((a, b) => a + b);
      clear();
      source = `${recording.t.length.toLocaleString('en')} events of ${file.name}` + (beyond ? `, ${beyond.toLocaleString('en')} of them left out` : '');
      play(frames);
    } catch (fault) {
      source = null;
      say(fault.message);
    }
  }

  function unpacked(list) {
    const frame = new Int16Array(size);
    for (let i = 0; i < list.length; i += 2) frame[list[i]] = list[i + 1];
    return frame;
  }

  function place(event) {
    const box = sensor.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width, down = (event.clientY - box.top) / box.height;
    return { x: across * width, y: down * height, across, down };
  }

  // Painted events: time goes to the right, channels go up.
  function spray(from, to) {
    const span = input.binning.bins * input.binning.bin_us, points = Math.ceil(Math.abs(to.across - from.across) * bins) + 1;
    for (let n = 1; n <= points; n++) for (let hair = -BRUSH; hair <= BRUSH; hair++) {
      const share = n / points, across = from.across + (to.across - from.across) * share;
      const up = 1 - (from.down + (to.down - from.down) * share), x = Math.floor((up + hair * 0.006) * width);
      if (x >= 0 && x < width && across >= 0 && across < 1) painted.push({ t: Math.floor(across * span), x, y: 0, p: 0 });
    }
    painted.sort((a, b) => a.t - b.t);
  }

  sensor.addEventListener('pointerdown', (event) => {
    if (event.isTrusted) sensor.setPointerCapture(event.pointerId);
    if (opened) clear();
    pen = place(event);
    if (kind === 'paint') spray(pen, pen);
    else drawing.dot(pen.x, pen.y);
    if (still()) watch();
    else { stop(); showInk(); }
  });
  sensor.addEventListener('pointermove', (event) => {
    if (!pen) return;
    const next = place(event);
    if (kind === 'paint') spray(pen, next);
    else drawing.line(pen, next);
    pen = next;
    if (!still()) showInk();
  });
  for (const name of ['pointerup', 'pointercancel']) {
    sensor.addEventListener(name, () => {
      if (pen && !still()) run();
      pen = null;
    });
  }
  playing.addEventListener('click', () => {
    if (timer) stop();
    else if (history.length < queue.length) goOn();
    else if (queue.length) play(queue);
    else if (drawing.empty && !painted.length) say('There is nothing to run yet: draw on the sensor, or open a recording.');
    else run();
  });
  part('[data-do=clear]').addEventListener('click', () => {
    clear();
    say(panel.dataset.hint);
    show(-1);
  });
  for (const button of panel.querySelectorAll('[data-example]')) {
    button.addEventListener('click', () => {
      const lists = JSON.parse(part('.examples').textContent)[Number(button.dataset.example)];
      clear();
      source = `a sample of class ${button.textContent}`;
      play(lists.map(unpacked));
    });
  }
  part('input[type=file]')?.addEventListener('change', (event) => event.target.files[0] && read(event.target.files[0]));
  if (kind !== 'image') {
    for (const name of ['dragover', 'drop']) panel.addEventListener(name, (event) => event.preventDefault());
    panel.addEventListener('drop', (event) => event.dataTransfer.files[0] && read(event.dataTransfer.files[0]));
  }
  slider.addEventListener('input', () => {
    stop();
    if (history.length) show(Math.min(Number(slider.value), history.length - 1));
  });

  // Everything of one step: the sensor, the strips up to the last step, the odds.
  function show(step) {
    panel.style.setProperty('--t', Math.max(0, step));
    panel.classList.toggle('ran', step >= 0 && bins > 1);
    part('.player output').textContent = `step ${step + 1} of ${bins}`;
    showSensor(step);
    const events = history.map(({ frame }) => frame.reduce((sum, count) => sum + count, 0));
    for (const canvas of strips) {
      if (canvas.className === 'bars') {
        label(canvas, `Input: ${sum(events).toLocaleString('en')} events`);
        drawBars(canvas, events, bins, style('--c1'));
      } else if (canvas.className === 'raster') showLayer(canvas, Number(canvas.dataset.layer));
      else drawLines(canvas, history.map(({ probabilities }) => probabilities), bins, (entry) => style(`--c${colours.get(entry) ?? 0}`), colours);
    }
    showOdds(step);
  }

  function showLayer(canvas, number) {
    const rows = history.map(({ spikes }) => spikes[number]), name = net.layers[number].name;
    const fired = sum(rows.map((row) => sum(row))), neurons = net.layers[number].spikes.length;
    const rate = rows.length ? (100 * fired / (neurons * rows.length)).toFixed(1) : '0.0';
    label(canvas, `${name}: ${fired.toLocaleString('en')} spikes of ${neurons.toLocaleString('en')} neurons, rate ${rate} %`);
    if (kind === 'image') drawGrid(canvas, rows[0] ?? [], style('--text'));
    else drawRaster(canvas, rows, bins, style('--text'));
  }

  function label(canvas, text) {
    canvas.closest('.strip').querySelector('p').textContent = text;
    canvas.setAttribute('aria-label', text);
  }

  function showOdds(step) {
    const found = history[step]?.probabilities ?? contract.classes.map(() => 0), best = found.indexOf(Math.max(...found));
    const rows = [...panel.querySelectorAll('.odds li')];
    if (rows.length < found.length) {  // the likeliest, where there are more classes than rows
      const order = found.map((_, entry) => entry).sort((a, b) => found[b] - found[a]);
      rows.forEach((row, at) => {
        row.dataset.class = order[at];
        row.querySelector('span').textContent = contract.classes[order[at]];
      });
    }
    for (const row of rows) {
      const share = found[Number(row.dataset.class)];
      row.className = `c${colours.get(Number(row.dataset.class)) ?? 0}`;
      row.querySelector('i').style.width = `${100 * share}%`;
      row.querySelector('.share').textContent = `${Math.round(100 * share)} %`;
      row.classList.toggle('won', step >= 0 && Number(row.dataset.class) === best);
    }
    if (timer && step >= 0) say('So far: ', [history[step].label], ` with ${Math.round(100 * found[best])} %`);
  }

  function showInk() {
    showSensor(-1);
  }

  // Ink in grey; events of the step over it, rising in one colour, falling in another.
  function showSensor(step) {
    if (kind === 'paint') return drawPainted(sensor, painted, history, step, { width, bins, input }, style);
    const ink = drawing.seen(), frame = history[step]?.frame, down = input.binning.downsample;
    drawPixels(sensor, width, height, (x, y) => {
      const across = width / down, at = Math.floor(y / down) * across + Math.floor(x / down), plane = across * height / down;
      const on = frame && kind === 'camera' ? frame[at + (size > plane ? plane : 0)] : 0;
      const off = frame && kind === 'camera' && size > plane ? frame[at] : 0;
      return { ink: ink[y * width + x], event: on ? '--c1' : off ? '--c2' : null };
    }, style);
  }

  document.documentElement.classList.add('js');
  panel.style.setProperty('--steps', bins);
  panel.hidden = false;
  show(-1);
  function look() {  // a reader far above would miss it
    const { top, bottom } = sensor.getBoundingClientRect();
    if (top >= innerHeight || bottom <= 0) return;
    removeEventListener('scroll', look);
    open();
  }
  addEventListener('scroll', look, { passive: true });
  look();
}
