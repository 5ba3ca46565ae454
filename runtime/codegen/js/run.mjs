// node run.mjs RECORDING: print the decision on a recording of events, and its logits.
import { readFileSync } from 'node:fs';
import { contract, create } from './network.js';
import { fitRecording, readRecording } from './recordings.js';

const path = process.argv[2];
if (path === undefined) {
  console.error('usage: node run.mjs RECORDING    (npz, npy, csv, EVT 2.0, DAT or N-MNIST)');
  process.exit(2);
}
try {
  const recording = await readRecording(readFileSync(path), path), network = create();
  const found = network.run(fitRecording(recording, contract));
  const outside = Object.values(found.outside).reduce((a, b) => a + b);
  console.log(`${found.label}  ${(100 * found.probability).toFixed(1)} %  (${recording.t.length} events, ${outside} left out, ${found.steps} steps)`);
  console.log(`logits ${Array.from(network.logits(), (value) => value.toPrecision(9)).join(' ')}`);
} catch (fault) {
  console.error(`${path}: ${fault.message}`);
  process.exit(2);
}
