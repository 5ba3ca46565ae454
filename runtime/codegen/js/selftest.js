// The self-test: names, sensor, bins, and the logits of inputs that are made here, as one sum. It takes milliseconds and
// throws if this is not the network of the file.
function selftest() {
  let sum = 2166136261, random = 1;
  const mix = (word) => {
    for (let i = 0; i < 4; i++) sum = Math.imul(sum ^ (word >>> 8 * i & 255), 16777619);  // FNV-1a
  };
  const next = () => {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
    return random >>> 8;
  };
  for (const name of [...contract.classes, ...(contract.units ?? [])]) [...new TextEncoder().encode(name), 0].forEach(mix);
  const { input } = contract, rule = input.binning;
  if (rule) {
    const codes = { off_sensor: -10, bad_polarity: -11, cropped: -12 }, sensor = input.fit?.sensor ?? rule.sensor;
    mix(rule.bin_us);
    mix(2 * rule.bins + (rule.origin === 'first'));
    if (rule.most_events) mix(rule.most_events);
    for (let i = 0; i < 64; i++) {
      const [x, y, p] = [sensor.width, sensor.height, sensor.polarities].map((most) => next() % (most + 1)), cell = cellOf(x, y, p);
      mix(codes[cell] ?? cell);
    }
  }
  const spiking = contract.kind === 'spiking', steps = spiking ? Math.min(8, input.steps) : 4, network = create();
  const most = rule ? Math.min(limit(), input.largest) : input.largest, word = new DataView(new ArrayBuffer(4));
  const kinds = [  // few values, many, none and the largest ones, in turn
    (drawn) => (drawn % 20 === 0 ? 1 + Math.floor(drawn / 32) % most : 0), (drawn) => drawn % (most + 1), () => 0, () => most,
  ];
  for (let step = 0; step < steps; step++) {
    network.step(Float32Array.from({ length: input.shape.reduce((a, b) => a * b, 1) }, () => input.centre + kinds[step % 4](next())));
    for (const member of network.memberLogits()) for (const value of member) {
      word.setFloat32(0, value + 0);  // one zero
      mix(word.getUint32(0));
    }
    if (!contract.units) mix(network.decision().class);
    if (contract.certainty) contract.classes.forEach((name) => mix(Number(network.decision().possible.includes(name))));
  }
  if (sum >>> 0 !== SELFTEST_SUM) throw new Error('the self-test failed: this is not the network of the file; compile it again');
}
