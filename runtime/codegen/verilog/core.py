"""The Verilog of a network: membranes and weights in memories, lanes that add rows of weights, one pass that fires.

Everything that happens to a membrane between two time steps is an exact sum, so events are added to it as they come.
At the end of a time step each layer is passed over once, row by row: a lane reads a membrane, decides whether it fires,
and writes what the next step begins with (leak, reset and bias). The equations are those of the operator's body
(``pipeline``); this module has the memories, the addresses and the order.

    input event → its rows of weights are added to the first layers
    tick        → for each layer: fire; each spike's rows of weights are added to the layers that hear it;
                  the read-out's membranes are added to the totals of the classes, and the largest total is the decision
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from axonnx.runtime.codegen.verilog.parts import FIRING, INPUT, READOUT, Parts, Synapse, Whole
from axonnx.runtime.codegen.verilog.pipeline import Pipeline, Value, halves, literal
from axonnx.runtime.format.opset import OPS

PARAMETERS = tuple(name for name in OPS[FIRING].parameters)
STATES = (
    "INIT", "BIAS", "IDLE", "CLIP", "SYNAPSE", "TAP", "PLACE", "ADD", "AFTER", "DRAIN", "SUMS", "SUM", "FIRE", "FIRED",
    "FETCH", "LOAD", "SCAN", "NEXT", "DONE",
)  # fmt: skip


def bits_for(count: int) -> int:
    """Return the bits of an unsigned number below ``count``."""
    return max(1, (count - 1).bit_length())


class Core:
    """Numbers and texts of the module for one network."""

    def __init__(self, parts: Parts, loadable: bool) -> None:
        self.parts, self.loadable = parts, loadable
        self.program, self.lanes = parts.program, parts.lanes
        binning = self.program.contract.input.binning
        assert binning is not None
        self.shape, self.limit = binning.frame_shape, binning.limit
        self.steps = binning.bins
        self.classes = len(self.program.contract.classes)
        self.readout = next(number for number, layer in enumerate(parts.layers) if layer.op == READOUT)
        largest = 2 ** (parts.layers[self.readout].width - 1)
        self.total_bits = (largest * self.steps).bit_length() + 1
        self.fields: dict[str, tuple[int, int]] = {}  # parameters of single neurons -> position and width in their row
        self.field_bits = 0
        self.per_layer: dict[str, Value] = {}
        self.depth = 0
        self.lane = self._lane()

    def _field(self, name: str, values: Iterable[Whole]) -> Value:
        """Reserve room for a number of each neuron, which is read with its membrane."""
        each = [part for part in values if part.size]
        low, high = min(int(part.min()) for part in each), max(int(part.max()) for part in each)
        value = Value(f"p_{name}", min(low, 0), max(high, 0), 0)  # lanes without a neuron have a 0
        self.fields[name] = self.field_bits, value.bits
        self.field_bits += value.bits
        return value

    def _parameter(self, name: str) -> Value:
        constant = self.parts.constant(name)
        if constant is not None:  # a read-out has no threshold, and needs none
            return constant
        every = [layer.parameters[name] for layer in self.parts.layers if name in layer.parameters]
        if not self.parts.each_has_one(name):
            return self._field(name, every)
        low, high = min(int(part.min()) for part in every), max(int(part.max()) for part in every)
        found = self.per_layer[name] = Value(f"l_{name}", low, high)
        return found

    def _lane(self) -> list[str]:
        """Return the lines of a lane: the second half of the body decides, the first makes the next membrane."""
        op = OPS[FIRING]
        head, tail, membrane = halves(op)
        pipeline = Pipeline()
        half = 2 ** (self.parts.width - 1)
        v = Value("v", -half, half - 1, 0)
        known = {name: self._parameter(name) for name in PARAMETERS}
        known["current"] = self._field("bias", (layer.bias for layer in self.parts.layers))
        decided = pipeline.run(tail, {**known, membrane: v})
        fires = decided[op.outputs[-1]]
        stage = 0 if fires.stage is None else fires.stage
        fired = pipeline.truth("fired", f"{fires.text} && firing[{stage}]", stage, fires.spent)
        least = known["least"]
        # 0 ≤ m ≤ 2ˢ and ρ ≥ 0, so the quotient is never below min(v, 0): without a least leak it is the leak.
        same = {"leak": "quotient"} if least.constant and least.low == 0 else {}
        after = pipeline.run(head, {**known, "membrane": v, "spikes": fired}, same)[membrane]
        self.depth = (after.stage or 0) + 1
        last, spike = pipeline.at(after, self.depth), pipeline.at(fired, self.depth)
        seen = pipeline.at(v, self.depth)
        return [
            *pipeline.lines,
            f"assign next_v[g*VW +: VW] = {last.number};",
            f"assign next_o[g] = {spike.text};",
            f"assign seen_v[g*VW +: VW] = {seen.number};",
        ]

    def constants(self) -> list[list[Whole]]:
        """Return the rows of the memory of constants: for each row and lane, the fields."""
        rows = []
        for layer in self.parts.layers:
            fields = []
            for name in self.fields:
                values = layer.bias if name == "bias" else layer.parameters.get(name, np.zeros(layer.shape, np.int64))
                never = int(values.max()) if name == "threshold" else 0  # a lane without a neuron must not fire
                fields.append(layer.in_rows(values, padding=never))
            rows.append(fields)
        return rows

    def constants_hex(self) -> str:
        """Return the memory of constants as text for $readmemh."""
        lines = []
        for fields in self.constants():
            for row in range(len(fields[0])):
                number = 0
                for lane in range(self.lanes):
                    for (at, bits), values in zip(self.fields.values(), fields, strict=True):
                        number |= (int(values[row, lane]) & ((1 << bits) - 1)) << (lane * self.field_bits + at)
                lines.append(f"{number:0{-(-self.lanes * self.field_bits // 4)}x}")
        return "\n".join(lines) + "\n"

    def weights_hex(self) -> str:
        """Return the memory of weights as text for $readmemh."""
        bits, lines = self.parts.weight_bits, []
        for synapse in sorted(self.parts.synapses, key=lambda each: each.first_row):
            for row in synapse.weights.tolist():
                number = sum((value & ((1 << bits) - 1)) << (lane * bits) for lane, value in enumerate(row))
                lines.append(f"{number:0{-(-self.lanes * bits // 4)}x}")
        return "\n".join(lines) + "\n"

    # ---- tables by layer and by synapse

    def _by_layer(self, name: str, values: list[int], width: int, signed: bool = False) -> str:
        kind = f"reg signed [{width - 1}:0]" if signed else f"reg [{width - 1}:0]"
        return _table(f"{kind} {name}", name, "layer", values, width, signed)

    def _by_synapse(self, name: str, values: list[int], width: int) -> str:
        return _table(f"reg [{width - 1}:0] {name}", name, "syn", values, width, False)

    def tables(self) -> str:
        """Return what is looked up by the number of a layer or of a synapse."""
        layers, synapses = self.parts.layers, self.parts.synapses
        rows, words = bits_for(self.parts.rows + 1), bits_for(self.parts.weight_rows + 1)
        found = [
            self._by_layer("layer_rows", [layer.rows for layer in layers], rows),
            self._by_layer("layer_first", [layer.first_row for layer in layers], rows),
            self._by_layer("layer_groups", [layer.groups for layer in layers], rows),
            self._by_layer("layer_width", [layer.shape[2] for layer in layers], self.side),
            self._by_layer("heard_first", [self.first_synapse(number) for number in range(len(layers))], self.syn),
            self._by_layer("heard_end", [self.end_synapse(number) for number in range(len(layers))], self.syn),
        ]
        for name, value in self.per_layer.items():
            each = [int(layer.parameters[name].flat[0]) if name in layer.parameters else 0 for layer in layers]
            found.append(self._by_layer(f"l_{name}", each, value.bits, signed=True))
        groups = [layers[synapse.target].groups for synapse in synapses]
        found += [
            self._by_synapse("syn_groups", groups, rows),
            self._by_synapse("syn_first", [layers[synapse.target].first_row for synapse in synapses], rows),
            self._row_of(words, "dense_row", "neuron"),
            self._row_of(words, "channel_row", "at_c"),
            self._by_synapse("syn_lift", [synapse.lift for synapse in synapses], 5),
        ]
        geometry = {
            "win_on": [int(synapse.window is not None) for synapse in synapses],
            "win_y": [synapse.taps[0] for synapse in synapses],
            "win_x": [synapse.taps[1] for synapse in synapses],
            "pad_y": [synapse.window.pads[0] if synapse.window else 0 for synapse in synapses],
            "pad_x": [synapse.window.pads[1] if synapse.window else 0 for synapse in synapses],
            "far_y": [synapse.window.dilations[0] if synapse.window else 1 for synapse in synapses],
            "far_x": [synapse.window.dilations[1] if synapse.window else 1 for synapse in synapses],
            "cut_y": [synapse.window.strides[0].bit_length() - 1 if synapse.window else 0 for synapse in synapses],
            "cut_x": [synapse.window.strides[1].bit_length() - 1 if synapse.window else 0 for synapse in synapses],
            "out_y": [layers[synapse.target].shape[1] for synapse in synapses],
            "out_x": [layers[synapse.target].shape[2] for synapse in synapses],
        }
        found += [self._by_synapse(name, values, self.side) for name, values in geometry.items()]
        found.append(self._place(rows))
        return "\n".join(found)

    def _row_of(self, width: int, name: str, counted: str) -> str:
        """Return a source's row of weights; factors are constants, so that no multiplier is needed."""
        rows = [f"{synapse.first_row} + {counted} * {self._stride(synapse)}" for synapse in self.parts.synapses]
        return _choice(f"reg [{width - 1}:0] {name}", name, "syn", rows)

    def _place(self, width: int) -> str:
        """Return the row of membranes at which a tap of a window arrives."""
        rows = []
        for synapse in self.parts.synapses:
            layer = self.parts.layers[synapse.target]
            rows.append(f"{layer.first_row} + (hit_y * {layer.shape[2]} + hit_x) * {layer.groups}")
        return _choice(f"reg [{width - 1}:0] hit_row", "hit_row", "syn", rows)

    def _stride(self, synapse: Synapse) -> int:
        """Return the rows of weights of one neuron (dense) or of one channel (a convolution)."""
        groups = self.parts.layers[synapse.target].groups
        return groups * synapse.taps[0] * synapse.taps[1]

    def first_synapse(self, source: int) -> int:
        """Return the number of a source's first synapse; they are sorted by source."""
        return sum(synapse.source < source for synapse in self.parts.synapses)

    def end_synapse(self, source: int) -> int:
        """Return the number behind a source's last synapse."""
        return sum(synapse.source <= source for synapse in self.parts.synapses)

    @property
    def syn(self) -> int:
        """Bits of a synapse's number."""
        return bits_for(len(self.parts.synapses) + 1)

    @property
    def side(self) -> int:
        """Bits of a coordinate, of a tap, and of what they may be before they are checked."""
        sides = [*self.shape[1:], *(side for layer in self.parts.layers for side in layer.shape[1:])]
        reach = [tap * (far or 1) + pad for s in self.parts.synapses for tap, far, pad in _reach(s)]
        return (max(sides) + max(reach, default=1)).bit_length() + 1

    def text(self) -> str:
        """Return the whole module."""
        parts, lanes = self.parts, self.lanes
        rows, words = bits_for(parts.rows + 1), bits_for(parts.weight_rows + 1)
        channels, height, width = self.shape
        cells = channels * height * width
        neurons = max(cells, *(layer.rows * lanes for layer in parts.layers))
        begin = max(parts.rows, cells, self.classes)
        numbers = {
            "P": lanes, "VW": parts.width, "WB": parts.weight_bits, "FB": self.field_bits, "RA": rows, "WA": words,
            "TW": self.total_bits, "LA": bits_for(len(parts.layers) + 1), "SY": self.syn, "SD": self.side,
            "NA": bits_for(neurons + 1), "CA": bits_for(cells + 1), "KA": bits_for(self.classes + 1), "D": self.depth,
            "LN": bits_for(lanes + 1), "ROWS": parts.rows, "WROWS": parts.weight_rows, "CELLS": cells,
            "CLASSES": self.classes, "READOUT": self.readout, "LIMIT": self.limit,
            "CB": bits_for(self.limit + 1), "SB": bits_for(self.steps + 1), "LAST": len(parts.layers) - 1,
            "INPUT_END": self.end_synapse(INPUT), "SPIKE_ROWS": max(layer.rows for layer in parts.layers),
            "BEGIN": begin, "BN": bits_for(begin + 4),
        }  # fmt: skip
        states = ", ".join(f"{name} = {number}" for number, name in enumerate(STATES))
        lane = "\n".join(f"    {line}" for line in self.lane)
        fields = "\n".join(
            f"    wire signed [{bits - 1}:0] p_{name} = f_q[g*FB + {at} +: {bits}];"
            for name, (at, bits) in self.fields.items()
        )
        memory = LOADED if self.loadable else STORED
        text = CORE
        for mark, value in {
            "@NUMBERS@": ", ".join(f"{name} = {value}" for name, value in numbers.items()),
            "@STATES@": states,
            "@TABLES@": self.tables(),
            "@LANE@": f"{fields}\n{lane}",
            "@WEIGHTS@": memory,
            "@CELL@": f"(ev_c * {height} + ev_y) * {width} + ev_x",
            "@CONTENTS@": self._contents(),
            "@LIFT@": str(parts.synapses[0].lift) if len({each.lift for each in parts.synapses}) == 1 else "lift_q",
        }.items():
            text = text.replace(mark, value)
        return text

    def _contents(self) -> str:
        layers = [
            f"//   {layer.name}: {layer.op}, {' x '.join(map(str, layer.shape))} neurons in {layer.rows} rows, "
            f"membranes of {layer.width} bits"
            for layer in self.parts.layers
        ]
        synapses = [
            f"//   {synapse.name}: {len(synapse.weights)} rows of {synapse.bits}-bit weights, times 2^{synapse.lift}"
            for synapse in self.parts.synapses
        ]
        return "\n".join([*layers, *synapses])


def _reach(synapse: Synapse) -> list[tuple[int, int, int]]:
    if synapse.window is None:
        return [(1, 1, 0)]
    window = synapse.window
    return list(zip(synapse.taps, window.dilations, window.pads[:2], strict=True))


def _table(declared: str, name: str, index: str, values: list[int], width: int, signed: bool) -> str:
    """Return a combinational table; equal values need no choice."""
    return _choice(declared, name, index, [literal(value).text if signed else f"{width}'d{value}" for value in values])


def _choice(declared: str, name: str, index: str, texts: list[str]) -> str:
    if len(set(texts)) == 1:
        return f"  {declared.replace('reg', 'wire', 1)} = {texts[0]};"
    cases = " ".join(f"{number}: {name} = {text};" for number, text in enumerate(texts[:-1]))
    return f"  {declared}; always @* case ({index}) {cases} default: {name} = {texts[-1]}; endcase"


STORED = """\
  initial $readmemh("weights.hex", weight_memory);
  always @(posedge clk) w_q <= weight_memory[w_row];"""
LOADED = """\
  // The part's large memories have one port and no contents at power-up: weights arrive through ld_*.
  wire [WA-1:0] w_at = ld_en ? ld_row : w_row;
  always @(posedge clk) if (ld_en) weight_memory[w_at] <= ld_data; else w_q <= weight_memory[w_at];"""

CORE = """\
// The network without its clock of time steps: see network.v for events with time stamps.
@CONTENTS@
module core (
  input clk, input rst,
  input ev_valid, input [SD-1:0] ev_c, input [SD-1:0] ev_y, input [SD-1:0] ev_x, output ev_ready,
  input tick, output reg step_done, output ready,
  output reg [KA-1:0] decision,
  output reg sum_valid, output reg [KA-1:0] sum_class, output reg signed [TW-1:0] sum_total,
  input ld_en, input [WA-1:0] ld_row, input [P*WB-1:0] ld_data,
  output reg probe_valid, output reg [LA-1:0] probe_layer, output reg [RA-1:0] probe_row,
  output reg [P*VW-1:0] probe_v, output reg [P-1:0] probe_o
);
  localparam @NUMBERS@;
  localparam @STATES@;
  reg [4:0] state;
  reg [LA-1:0] layer;
  reg [SY-1:0] syn, syn_end;
  reg from_input;

  // ---- memories
  reg [P*VW-1:0] membrane_memory [0:ROWS-1];
  reg [P*FB-1:0] constant_memory [0:ROWS-1];
  (* ram_style = "huge" *) reg [P*WB-1:0] weight_memory [0:WROWS-1];
  reg [SB+CB-1:0] count_memory [0:CELLS-1];
  reg [P-1:0] spike_memory [0:SPIKE_ROWS-1];
  reg signed [TW-1:0] total_memory [0:CLASSES-1];
  reg [NA-1:0] neuron; reg [SB-1:0] step; reg [SD-1:0] at_c, at_y, at_x, tap_y, tap_x, hit_y, hit_x; reg [4:0] lift_q;
@TABLES@
  initial $readmemh("constants.hex", constant_memory);
  reg [P*VW-1:0] v_q; reg [P*FB-1:0] f_q; reg [P*WB-1:0] w_q; reg [SB+CB-1:0] count_q; reg [P-1:0] spikes_q;
  reg [RA-1:0] v_row; reg [WA-1:0] w_row;
  reg v_we; reg [RA-1:0] v_to; reg [P*VW-1:0] v_new;
  always @(posedge clk) begin v_q <= membrane_memory[v_row]; if (v_we) membrane_memory[v_to] <= v_new; end
  always @(posedge clk) f_q <= constant_memory[v_row];
@WEIGHTS@
  reg count_we; reg [CA-1:0] count_to; reg [SB+CB-1:0] count_new;
  wire [CA-1:0] ev_cell = @CELL@;
  always @(posedge clk) begin count_q <= count_memory[ev_cell]; if (count_we) count_memory[count_to] <= count_new; end
  wire [CB-1:0] counted = count_q[CB +: SB] == step ? count_q[CB-1:0] + 1'b1 : 1'b1;
  reg [RA-1:0] s_row; reg s_we; reg [RA-1:0] s_to; reg [P-1:0] s_new;
  always @(posedge clk) begin spikes_q <= spike_memory[s_row]; if (s_we) spike_memory[s_to] <= s_new; end

  // ---- lanes
  reg [D:0] firing, starting, valid; reg [(D+1)*RA-1:0] rows_late;   // [0] is the cycle in which v_q is there
  wire [P*VW-1:0] next_v, seen_v, sum_v; wire [P-1:0] next_o;
  reg adding; reg [RA-1:0] add_row;
  genvar g;
  generate for (g = 0; g < P; g = g + 1) begin: lane
    wire signed [VW-1:0] v = v_q[g*VW +: VW];
    wire signed [WB-1:0] w = w_q[g*WB +: WB];
    wire signed [VW-1:0] wide = w;
    assign sum_v[g*VW +: VW] = v + (wide <<< @LIFT@);
@LANE@
  end endgenerate

  // ---- the window of a convolution
  reg [SD-1:0] off_y, off_x;                                          // tap times dilation
  wire signed [SD:0] raw_y = $signed({1'b0, at_y}) + $signed({1'b0, pad_y}) - $signed({1'b0, off_y});
  wire signed [SD:0] raw_x = $signed({1'b0, at_x}) + $signed({1'b0, pad_x}) - $signed({1'b0, off_x});
  wire [SD-1:0] put_y = raw_y[SD-1:0] >> cut_y, put_x = raw_x[SD-1:0] >> cut_x;
  wire reaches = !raw_y[SD] && !raw_x[SD] && put_y < out_y && put_x < out_x
    && (put_y << cut_y) == raw_y[SD-1:0] && (put_x << cut_x) == raw_x[SD-1:0];
  reg hit; reg [WA-1:0] tap_row;

  // ---- the order of things
  reg [RA-1:0] r, scan_row; reg [P-1:0] left; reg [4:0] drain;
  reg [CA-1:0] cell_q; reg [RA-1:0] group; reg [SD-1:0] row_y, row_x; reg [KA-1:0] class_n; reg [LN-1:0] lane_n;
  reg [BN-1:0] begin_n; reg signed [TW-1:0] best;
  wire issue_fire = state == FIRE && r < layer_rows;
  wire issue_start = state == BIAS && r < ROWS;
  wire issue_add = state == ADD;
  assign ev_ready = state == IDLE;
  assign ready = state == IDLE;
  wire [LN-1:0] lowest_lane = lowest(left);
  wire signed [VW-1:0] lane_v = v_q[lane_n*VW +: VW];
  reg total_we; reg [KA-1:0] total_to; reg signed [TW-1:0] total_new, total_q; reg signed [VW-1:0] sum_lane;
  always @(posedge clk) begin total_q <= total_memory[class_n]; if (total_we) total_memory[total_to] <= total_new; end
  wire signed [TW-1:0] total = total_q + sum_lane;
  integer n;

  always @(posedge clk) begin
    step_done <= 0; count_we <= 0; s_we <= 0; v_we <= 0; probe_valid <= 0; sum_valid <= 0; total_we <= 0;
    // the pipeline of a firing pass; at the start membranes are 0 and nothing fires
    firing <= {firing[D-1:0], issue_fire && layer != READOUT};
    starting <= {starting[D-1:0], issue_start};
    valid <= {valid[D-1:0], issue_fire || issue_start};
    rows_late <= {rows_late[D*RA-1:0], v_row};
    if (valid[D]) begin
      v_we <= 1; v_to <= rows_late[D*RA +: RA]; v_new <= next_v;
      if (!starting[D]) begin
        s_we <= 1; s_to <= rows_late[D*RA +: RA] - layer_first; s_new <= next_o;
        probe_valid <= 1; probe_layer <= layer; probe_row <= rows_late[D*RA +: RA] - layer_first;
        probe_v <= seen_v; probe_o <= next_o;
      end
    end
    // adding a row of weights
    adding <= issue_add; add_row <= v_row; lift_q <= syn_lift;
    if (adding) begin v_we <= 1; v_to <= add_row; v_new <= sum_v; end

    case (state)
      INIT: begin
        begin_n <= begin_n + 1; v_row <= 0; r <= 0; drain <= 0;
        if (begin_n < ROWS) begin v_we <= 1; v_to <= begin_n; v_new <= 0; end
        if (begin_n < CELLS) begin count_we <= 1; count_to <= begin_n; count_new <= 0; end
        if (begin_n < CLASSES) begin total_we <= 1; total_to <= begin_n; total_new <= 0; end
        if (begin_n == BEGIN + 2) begin state <= BIAS; step <= 1; end
      end
      BIAS: begin // a silent pass over all rows: the first step begins with the biases
        if (r != ROWS) begin r <= r + 1; v_row <= v_row + 1; end
        else begin drain <= drain + 1; if (drain == D + 3) state <= IDLE; end
      end
      IDLE: begin
        layer <= 0; from_input <= 1; syn <= 0; syn_end <= INPUT_END;
        at_c <= ev_c; at_y <= ev_y; at_x <= ev_x; neuron <= ev_cell; cell_q <= ev_cell; drain <= 0;
        if (ev_valid) state <= CLIP; else if (tick) state <= DRAIN;
      end
      CLIP: begin // a cell counts at most LIMIT events in a step
        if (count_q[CB +: SB] == step && count_q[CB-1:0] == LIMIT) state <= IDLE;
        else begin
          count_we <= 1; count_to <= cell_q; count_new <= {step, counted};
          state <= SYNAPSE;
        end
      end
      SYNAPSE: begin
        r <= 0; tap_y <= 0; tap_x <= 0; off_y <= 0; off_x <= 0;
        v_row <= syn_first;
        w_row <= dense_row; tap_row <= channel_row;
        state <= win_on ? TAP : ADD;
      end
      TAP: begin hit <= reaches; hit_y <= put_y; hit_x <= put_x; state <= PLACE; end
      PLACE: begin
        v_row <= hit_row; w_row <= tap_row; r <= 0;
        state <= hit ? ADD : AFTER;
      end
      ADD: begin
        r <= r + 1; v_row <= v_row + 1; w_row <= w_row + 1;
        if (r == syn_groups - 1) state <= AFTER;
      end
      AFTER: begin
        if (win_on && !(tap_y == win_y - 1 && tap_x == win_x - 1)) begin
          tap_row <= tap_row + syn_groups;
          if (tap_x == win_x - 1) begin tap_x <= 0; off_x <= 0; tap_y <= tap_y + 1; off_y <= off_y + far_y; end
          else begin tap_x <= tap_x + 1; off_x <= off_x + far_x; end
          state <= TAP;
        end else if (syn + 1 != syn_end) begin syn <= syn + 1; state <= SYNAPSE; end
        else state <= from_input ? IDLE : SCAN;
      end
      DRAIN: begin // sums of this layer are written before it is passed over
        v_row <= layer_first; r <= 0; drain <= drain + 1; class_n <= 0; lane_n <= 0;
        if (drain == 3) begin drain <= 0; state <= layer == READOUT ? SUMS : FIRE; end
      end
      SUMS: begin // v_q is there in the next cycle but one
        drain <= drain + 1;
        if (drain == 1) begin drain <= 0; state <= SUM; end
      end
      SUM: begin // one class after the other, first its total and its membrane, then their sum
        drain <= drain + 1;
        if (drain == 0) sum_lane <= lane_v;
        else if (drain == 1) begin total_we <= 1; total_to <= class_n; total_new <= total; end
        else begin
          drain <= 0;
          sum_valid <= 1; sum_class <= class_n; sum_total <= total_new;
          if (class_n == 0 || total_new > best) begin best <= total_new; decision <= class_n; end
          class_n <= class_n + 1; lane_n <= lane_n + 1;
          if (class_n == CLASSES - 1) begin v_row <= layer_first; r <= 0; state <= FIRE; end
          else if (lane_n == P - 1) begin lane_n <= 0; v_row <= v_row + 1; state <= SUMS; end
        end
      end
      FIRE: begin
        r <= r + 1; v_row <= v_row + 1;
        if (r == layer_rows - 1) begin drain <= 0; state <= FIRED; end
      end
      FIRED: begin
        drain <= drain + 1;
        if (drain == D + 3) begin
          scan_row <= 0; s_row <= 0; group <= 0; row_y <= 0; row_x <= 0;
          state <= layer == READOUT || heard_first == heard_end ? NEXT : FETCH;
        end
      end
      FETCH: state <= LOAD;
      LOAD: begin left <= spikes_q; s_row <= s_row + 1; state <= SCAN; from_input <= 0; end
      SCAN: begin
        syn <= heard_first; syn_end <= heard_end;
        at_c <= group * P + lowest_lane; at_y <= row_y; at_x <= row_x; neuron <= scan_row * P + lowest_lane;
        if (left != 0) begin left <= left & (left - 1); state <= SYNAPSE; end
        else begin
          scan_row <= scan_row + 1;
          if (group == layer_groups - 1) begin
            group <= 0;
            if (row_x == layer_width - 1) begin row_x <= 0; row_y <= row_y + 1; end else row_x <= row_x + 1;
          end else group <= group + 1;
          state <= scan_row == layer_rows - 1 ? NEXT : FETCH;
        end
      end
      NEXT: begin
        drain <= 0; layer <= layer + 1;
        state <= layer == LAST ? DONE : DRAIN;
      end
      DONE: begin step_done <= 1; step <= step + 1; state <= IDLE; end
      default: state <= INIT;
    endcase
    if (rst) begin
      state <= INIT; begin_n <= 0; v_row <= 0; valid <= 0; firing <= 0; starting <= 0; adding <= 0; layer <= 0;
    end
  end

  function [LN-1:0] lowest(input [P-1:0] bits);
    begin
      lowest = 0;
      for (n = P - 1; n >= 0; n = n - 1) if (bits[n]) lowest = n;
    end
  endfunction
endmodule
"""
