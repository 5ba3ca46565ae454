// A simulated event camera over a drawing: a pixel fires where the logarithm of what it sees moved by THRESHOLD.
const THRESHOLD = 0.3, DARKEST = 0.1;  // change that fires; what paper reflects of what ink does
const CORNERS = [[-0.1, -0.1], [0, 0.1], [0.1, -0.1], [-0.1, -0.1]];  // of the gaze, in shares of the sensor
const LOOKS = 4;  // of the camera in a time bin

// Ink from 0 to 1 on a grid finer than the sensor.
function makeDrawing(width, height) {
  const fine = Math.max(1, Math.min(4, Math.floor(160 / Math.max(width, height))));  // dots a pixel and side
  const columns = width * fine, rows = height * fine, ink = new Float32Array(columns * rows);
  const reach = fine * Math.max(0.75, 0.05 * Math.min(width, height));

  // A soft dot around (x, y), in pixels of the sensor.
  function dot(x, y) {
    const near = (centre, most) => [Math.max(0, Math.floor(centre - 3 * reach)), Math.min(most, Math.ceil(centre + 3 * reach))];
    const [top, bottom] = near(y * fine, rows), [left, right] = near(x * fine, columns);
    for (let row = top; row < bottom; row++) for (let column = left; column < right; column++) {
      const far = ((column + 0.5 - x * fine) ** 2 + (row + 0.5 - y * fine) ** 2) / (reach * reach);
      ink[row * columns + column] = Math.max(ink[row * columns + column], Math.exp(-far / 2));
    }
  }

  function line(from, to) {
    const dots = Math.max(1, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) * 2));
    for (let n = 1; n <= dots; n++) dot(from.x + (to.x - from.x) * n / dots, from.y + (to.y - from.y) * n / dots);
  }

  function fade(share) {
    for (let i = 0; i < ink.length; i++) ink[i] *= share;
  }

  // What each pixel sees, from 0 to 1, where the drawing stands (dx, dy) pixels away.
  function seen(dx = 0, dy = 0) {
    const across = Math.round(dx * fine), down = Math.round(dy * fine), found = new Float32Array(width * height);
    for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
      const y = row - down, x = column - across;
      if (y < 0 || y >= rows || x < 0 || x >= columns) continue;
      found[Math.floor(row / fine) * width + Math.floor(column / fine)] += ink[y * columns + x] / (fine * fine);
    }
    return found;
  }

  return { dot, line, fade, seen, clear: () => ink.fill(0), get empty() { return !ink.some((value) => value > 0.05); } };
}

// look(seen) gives the events since the last look; the first one fires nothing.
function makeCamera(width) {
  let levels = null;
  return function look(seen) {
    const light = Array.from(seen, (ink) => Math.log(DARKEST + (1 - DARKEST) * ink)), events = { x: [], y: [], p: [] };
    levels ??= light.slice();
    light.forEach((value, at) => {
      const polarity = value > levels[at] ? 1 : 0;
      while (Math.abs(value - levels[at]) >= THRESHOLD) {
        levels[at] += polarity ? THRESHOLD : -THRESHOLD;
        events.x.push(at % width);
        events.y.push(Math.floor(at / width));
        events.p.push(polarity);
      }
    });
    return events;
  };
}

// Where the gaze is after a share of its way: along three sides of a triangle, at rest in the corners.
function gaze(share) {
  const leg = Math.min(CORNERS.length - 2, Math.floor(share * 3)), part = share * 3 - leg, eased = part * part * (3 - 2 * part);
  return [0, 1].map((axis) => CORNERS[leg][axis] + eased * (CORNERS[leg + 1][axis] - CORNERS[leg][axis]));
}

// Events of each bin while the gaze moves over a drawing.
function saccade(drawing, width, height, bins) {
  const look = makeCamera(width), at = (share) => drawing.seen(...gaze(share).map((s, axis) => s * [width, height][axis]));
  look(at(0));
  return Array.from({ length: bins }, (_, bin) => {
    const parts = Array.from({ length: LOOKS }, (_unused, n) => look(at((bin + (n + 1) / LOOKS) / bins)));
    return joined(parts);
  });
}

function joined(parts) {
  return Object.fromEntries(['x', 'y', 'p'].map((name) => [name, parts.flatMap((part) => part[name])]));
}
