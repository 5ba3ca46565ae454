// node run.mjs [--windows] RECORDING: print the decision on a recording of events, or on each of its windows, and logits.
// AXONNX_KEEP_LAYERS=1 also prints, after each step, the bits of all membranes as one sum and which neurons fired, and goes
// on after a failed self-test: axonnx verify compares them and finds the place.
import { readFileSync } from 'node:fs';
import { contract, create, follow, selftest } from './network.js';
import { fitRecording, readRecording } from './recordings.js';

const words = process.argv.slice(2), windows = words[0] === '--windows', path = words[windows ? 1 : 0];
if (path === undefined) {
  console.error('usage: node run.mjs [--windows] RECORDING    (npz, npy, csv, EVT 2.0, DAT or N-MNIST; frames as csv)');
  process.exit(2);
}

function sumMembranes({ membrane }) {
  const words = new Uint32Array((membrane ?? new Float32Array(0)).map((value) => value + 0).buffer);  // one zero
  return words.reduce((sum, word, i) => sum + Math.imul(word, 2 * i + 1) | 0, 0) >>> 0;
}

function printSpikes(network) {
  if (!process.env.AXONNX_KEEP_LAYERS) return;
  const fired = ({ spikes }) => Array.from(spikes.keys()).filter((i) => spikes[i]).map((i) => (spikes[i] === 1 ? i : `${i}:${spikes[i].toPrecision(9)}`));
  for (const layer of network.layers) console.log(['spikes', sumMembranes(layer), ...fired(layer)].join(' '));
}

function print(found, members, told) {
  const result = found.text ?? `${found.label}  ${(100 * found.probability).toFixed(1)} %${found.possible ? `  possible: ${found.possible.join(', ')}` : ''}`;
  console.log(`${result}  (${told}, ${found.steps} steps)`);
  for (const member of members) console.log(`logits ${Array.from(member, (value) => value.toPrecision(9)).join(' ')}`);
}

function refuseStrangers(count, all) {
  const { width, height } = contract.input.fit?.sensor ?? contract.input.binning.sensor;
  if (count) throw new RangeError(`${count} of ${all} events are off the ${width} x ${height} sensor that the network expects: this is another sensor's recording`);
}

function sorted(recording) {
  const order = Array.from(recording.t.keys()).sort((a, b) => recording.t[a] - recording.t[b]);
  const moved = (column) => column && order.map((i) => column[i]);
  return { ...recording, t: moved(recording.t), x: moved(recording.x), y: moved(recording.y), p: moved(recording.p) };
}

async function runEvents() {
  const recording = fitRecording(await readRecording(readFileSync(path), path), contract), network = create();
  const count = recording.t.length;
  if (windows) {
    const stream = follow({ eachStep: printSpikes }), decisions = [...stream.push(sorted(recording)), ...stream.end()];
    refuseStrangers(stream.outside.off_sensor, count);
    for (const found of decisions) print(found, found.memberLogits, `window ${found.window}`);
    return;
  }
  const found = network.run(recording, printSpikes), beyond = Object.values(found.outside).reduce((a, b) => a + b);
  refuseStrangers(found.outside.off_sensor, count);
  print(found, network.memberLogits(), `${count} events, ${beyond} left out`);
}

function runFrames() {
  const rows = readFileSync(path, 'utf8').trim().split(/\r?\n/), network = create(), steps = contract.input.steps ?? 1;
  if (rows.length !== steps) throw new TypeError(`found ${rows.length} lines; expected ${steps}, one frame in each`);
  for (const row of rows) printSpikes(network.step(Float32Array.from(row.split(','), Number)));
  print(network.decision(), network.memberLogits(), `${rows.length} frames`);
}

try {
  selftest();
} catch (fault) {
  console.error(fault.message);
  if (!process.env.AXONNX_KEEP_LAYERS) process.exit(1);
}
try {
  if (contract.input.binning) await runEvents();
  else runFrames();
} catch (fault) {
  console.error(`${path}: ${fault.message}`);
  process.exit(2);
}
