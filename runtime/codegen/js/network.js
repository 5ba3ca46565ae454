// The functions for users.

// Make a network at rest. Only stochastic files use seed and sample, which select the noise.
function create({ seed = 0, sample = 0 } = {}) {
  whole('seed', seed, Number.MAX_SAFE_INTEGER);
  whole('sample', sample, 2 ** 32 - 1);
  const net = build(seed, sample), input = contract.input, spiking = contract.kind === 'spiking';
  const counts = new Float32Array(net.input.length);
  let steps = 0, outside = null;

  function reset() {
    for (const state of net.states) state.fill(0);
    steps = 0;
  }

  // Run one time step (or image): a frame of counts or pixel values, or the events {x, y, p} of one bin.
  function step(given) {
    if (STEPS_KNOWN !== null && steps >= STEPS_KNOWN) {
      throw new RangeError(`this network has parameters for ${STEPS_KNOWN} time steps; call reset() after them`);
    }
    const frame = given.x === undefined ? given : countEvents(given, counts, outside = nothingOutside());
    if (frame.length !== counts.length) {
      throw new RangeError(`the frame has ${frame.length} values; expected ${counts.length}: ${input.shape.join(' × ')}`);
    }
    const sum = input.scaled_to ? frame.reduce((a, b) => a + b, 0) : 0;
    for (let i = 0; i < frame.length; i++) {
      const value = frame[i] - input.centre;
      if (!Number.isInteger(value) || Math.abs(value) > input.largest) {
        const around = input.centre ? ` around ${input.centre}` : '';
        throw new RangeError(`value ${i} is ${frame[i]}; the contract allows integers up to ±${input.largest}${around}`);
      }
      net.input[i] = (input.scaled_to ? scaledCount(value, sum) : value) * UNIT;
    }
    if (!spiking) reset();
    net.step(steps);
    steps++;
    return network;
  }

  // Logits of each member of an ensemble; those of a spiking network are of the steps so far.
  function memberLogits() {
    if (steps === 0) throw new RangeError('there is no time step yet; call step() first');
    return net.results.map((result) => result.map((value) => (contract.logits === 'total / steps' ? value / round(steps) : value)));
  }

  // Logits of a single network, or the logarithm of an ensemble's probabilities.
  function logits() {
    const members = memberLogits();
    return members.length === 1 ? members[0] : Float32Array.from(meanProbabilities(members), (p) => Math.log(Math.max(p, 1e-30)));
  }

  // The decision so far; of a network that gives real values, these with their units instead.
  function decision() {
    if (contract.units) {
      const [found] = memberLogits(), entries = contract.classes.map((name, c) => [name, found[c]]);
      const text = entries.map(([name, value], c) => `${name} ${Number(value.toPrecision(6))} ${contract.units[c]}`.trimEnd()).join('  ');
      return { values: Object.fromEntries(entries), units: contract.units, text, steps };
    }
    const members = memberLogits(), mean = meanProbabilities(members), scores = members.length === 1 ? members[0] : mean;
    const probabilities = contract.certainty ? tempered(members, mean, contract.certainty.scale) : mean;
    const winner = scores.indexOf(scores.reduce((a, b) => Math.max(a, b)));
    const entropy = -probabilities.reduce((sum, p) => sum + p * Math.log(Math.max(p, 1e-300)), 0) + 0;
    const found = { class: winner, label: contract.classes[winner], probability: probabilities[winner], probabilities, entropy, steps };
    if (!contract.certainty) return found;
    const possible = possibleClasses(members, winner, steps);  // answer: null if the network abstains
    return { ...found, possible, answer: possible.length === 1 ? found.label : null };
  }

  // Classify the first window of a recording {t, x, y, p}, from the contract's origin on; t is in microseconds.
  function run(recording, eachStep = () => {}) {
    const { frames, outside } = binRecording(recording);
    reset();
    for (const frame of frames) {
      step(frame);
      eachStep(network);
    }
    return { ...decision(), outside };
  }

  const network = {
    step, logits, memberLogits, decision, run, reset, layers: net.layers,
    get steps() { return steps; },
    get outside() { return outside; },  // of the last step's events: how many are in no cell, by reason
  };
  return network;
}

// Follow a stream window by window: push({t, x, y, p}) takes events in order of time and returns the decisions of the
// windows that they complete; advance(t) does so for a silent sensor, and end() fills the open window with silence.
function follow({ seed = 0, eachStep = () => {} } = {}) {
  const { bins, origin } = binning(), counts = new Uint8Array(contract.input.shape.reduce((a, b) => a * b, 1));
  const outside = nothingOutside();
  let network = null, start = origin === 'first' ? null : 0, bin = 0, touched = false, time = clock(start);

  // Complete all bins before `stop`. A window begins at rest; its number selects the noise of a stochastic network.
  function complete(stop) {
    const decisions = [];
    time.move(stop);
    for (; bin < stop; bin++) {
      if (bin % bins === 0) network = create({ seed, sample: bin / bins });
      eachStep(network.step(counts));
      counts.fill(0);
      touched = false;
      if ((bin + 1) % bins === 0) decisions.push({ ...network.decision(), window: (bin + 1) / bins - 1, memberLogits: network.memberLogits() });
    }
    return decisions;
  }

  function push(events) {
    const decisions = [];
    cellsOf(events).forEach((cell, i) => {
      if (typeof cell === 'string') return outside[cell]++;
      if (start === null) time = clock(start = events.t[i]);
      const at = time.binOf(events.t[i]);
      if (events.t[i] < start) return outside.before++;
      if (at < bin) return outside.late++;
      decisions.push(...complete(at));
      counts[cell] = Math.min(counts[cell] + 1, limit());
      touched = true;
      if (time.take(events.t[i])) decisions.push(...complete(bin + 1));
      return null;
    });
    return decisions;
  }

  const advance = (t) => (start === null ? [] : complete(time.binOf(t)));
  const end = () => complete(bin === 0 || touched || bin % bins ? (Math.floor(bin / bins) + 1) * bins : bin);
  return { push, advance, end, outside };
}

// A count of a frame, scaled so that the frame's sum becomes about `scaled_to`. The products are below 2^53.
function scaledCount(count, sum) {
  if (!(count >= 0)) throw new RangeError(`a count is ${count}; counts begin at 0`);
  return count === 0 ? 0 : Math.min(255, Math.floor((2 * count * contract.input.scaled_to + sum) / (2 * sum)));
}

function whole(name, value, most) {
  if (!Number.isInteger(value) || value < 0 || value > most) {
    throw new RangeError(`${name} is ${value}; expected a whole number from 0 to ${most}`);
  }
}

// The mean over the members of an ensemble.
function meanProbabilities(members) {
  const each = members.map(softmax);
  return each[0].map((_, c) => each.reduce((sum, one) => sum + one[c], 0) / each.length);
}

// p^scale, normalised: 1 / scale is the temperature that the file states.
function tempered(members, mean, scale) {
  if (scale === 1) return mean;
  return softmax(members.length === 1 ? Array.from(members[0], (z) => scale * z) : mean.map((p) => scale * Math.log(Math.max(p, 1e-300))));
}

// Names of the classes that are possible after so many steps: no exponential, sums of doubles in the order of the members.
function possibleClasses(members, winner, steps) {
  const { margins } = contract.certainty, margin = margins[Math.min(steps, margins.length) - 1];
  const total = Array.from(members[0], (_, c) => members.reduce((sum, each) => sum + each[c], 0)), top = Math.max(...total);
  return contract.classes.filter((_, c) => c === winner || top - total[c] <= margin);
}

// e^z / Σ e^z
function softmax(z) {
  const top = z.reduce((a, b) => Math.max(a, b)), powers = Array.from(z, (value) => Math.exp(value - top));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}
