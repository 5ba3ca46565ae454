"""An engine whose silence is known: its one state goes through a given circle, or counts for ever."""

from axonnx.runtime.engines.interface import Activity, Chunk
from axonnx.runtime.engines.state import State, zero_state


class CircleEngine:
    """Neuron 0's membrane goes 0, 1, …, lead − 1 and then round a circle of ``period`` values; logits show it."""

    name = "circle"

    def __init__(self, program, lead, period):
        self.program, self.lead, self.period, self.steps = program, lead, period, 0

    def initial_state(self, batch):
        return zero_state(self.program, batch)

    def advance(self, state, x, noise, trace=False):
        arrays = {name: array.copy() for name, array in state.arrays.items()}
        membrane, total = arrays["membrane/hidden.0.neuron"], arrays[self.program.totals[0]]
        for _ in range(len(x)):
            self.steps += 1
            value = membrane[0, 0] + 1
            if self.period and value >= self.lead + self.period:
                value -= self.period
            membrane[0, 0] = value
            total[0, 0] += value
        spikes = {"hidden.0.neuron": membrane[:, 0].astype(int) + len(x)}
        return Chunk(State(state.step + len(x), arrays), total[None], Activity(spikes, {}))
