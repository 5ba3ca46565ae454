"""Around the core: time steps and windows from time stamps, and the coordinates of the network's input."""

from __future__ import annotations

from axonnx.runtime.codegen.verilog.core import Core, bits_for

NETWORK = """\
// Events with time stamps in, decisions out. Events come in order of time; ev_ready says when the next one is taken.
// A window closes when an event behind its end arrives, or on flush. Events off the sensor are left out.
module network (
  input clk, input rst,
  input ev_valid, input signed [39:0] ev_t, input [15:0] ev_x, input [15:0] ev_y, input [7:0] ev_p, output ev_ready,
  input flush, output reg flushed,
  output reg step_done, output reg window_done, output [@KA@-1:0] decision,
  output sum_valid, output [@KA@-1:0] sum_class, output signed [@TW@-1:0] sum_total,
  input ld_en, input [@WA@-1:0] ld_row, input [@LD@-1:0] ld_data,
  output probe_valid, output [@LA@-1:0] probe_layer, output [@RA@-1:0] probe_row,
  output [@PV@-1:0] probe_v, output [@P@-1:0] probe_o
);
  localparam START = 0, WAIT = 1, LOOK = 2, GIVE = 3, TICK = 4, STEP = 5;
  reg [2:0] state; reg started; reg signed [39:0] edge_t; reg [@SB@-1:0] steps; reg core_rst, open;
  reg known, in_bin; // of the event that is offered, a cycle later: the comparison of time stamps is long
  wire ready, core_ready, core_done;
  assign ev_ready = (state == LOOK && !known) || (state == GIVE && core_ready);
  core core (
    .clk(clk), .rst(rst || core_rst),
    .ev_valid(state == GIVE), .ev_c(@CHANNEL@), .ev_y(ev_y >> @DOWN_Y@), .ev_x(ev_x >> @DOWN_X@), .ev_ready(core_ready),
    .tick(state == TICK), .step_done(core_done), .ready(ready), .decision(decision),
    .sum_valid(sum_valid), .sum_class(sum_class), .sum_total(sum_total),
    .ld_en(ld_en), .ld_row(ld_row), .ld_data(ld_data),
    .probe_valid(probe_valid), .probe_layer(probe_layer), .probe_row(probe_row), .probe_v(probe_v), .probe_o(probe_o)
  );
  always @(posedge clk) begin
    core_rst <= 0; step_done <= 0; window_done <= 0; flushed <= 0;
    case (state)
      START: if (ready && !core_rst) state <= WAIT;
      WAIT: begin
        known <= ev_x < @WIDTH@ && ev_y < @HEIGHT@ && ev_p < @POLARITIES@@EARLY@;
        in_bin <= started && ev_t < edge_t;
        if (ev_valid) state <= LOOK;
        else if (flush && core_ready) begin if (steps == 0 && !open) flushed <= 1; else state <= TICK; end
      end
      LOOK: begin
        if (known && !started) begin started <= 1; edge_t <= @FIRST@; end
        state <= !known || !started ? WAIT : in_bin ? GIVE : TICK;
      end
      GIVE: if (core_ready) begin open <= 1; state <= WAIT; end
      TICK: if (core_ready) state <= STEP;
      STEP: if (core_done) begin
        step_done <= 1; edge_t <= edge_t + @BIN@;
        if (steps == @STEPS@ - 1) begin steps <= 0; window_done <= 1; core_rst <= 1; open <= 0; state <= START; end
        else begin steps <= steps + 1; state <= WAIT; end
      end
      default: state <= START;
    endcase
    if (rst) begin state <= START; started <= 0; steps <= 0; open <= 1; end // a recording without events has one window
  end
endmodule
"""


def network_text(core: Core) -> str:
    """Return the module ``network`` of a core."""
    binning = core.program.contract.input.binning
    assert binning is not None
    sensor, down = binning.sensor, binning.downsample.bit_length() - 1
    first = binning.origin == "first"
    values = {
        "KA": bits_for(core.classes + 1), "TW": core.total_bits, "WA": bits_for(core.parts.weight_rows + 1),
        "LD": core.lanes * core.parts.weight_bits, "LA": bits_for(len(core.parts.layers) + 1),
        "RA": bits_for(core.parts.rows + 1), "PV": core.lanes * core.parts.width, "P": core.lanes,
        "SB": bits_for(core.steps + 1), "WIDTH": sensor.width, "HEIGHT": sensor.height,
        "POLARITIES": sensor.polarities, "EARLY": "" if first else " && ev_t >= 0",
        "CHANNEL": "0" if binning.polarity == "merge" else "ev_p", "DOWN_X": down,
        "DOWN_Y": 0 if sensor.height == 1 else down,
        "FIRST": f"ev_t + {binning.bin_us}" if first else f"40'sd{binning.bin_us}", "BIN": binning.bin_us,
        "STEPS": core.steps,
    }  # fmt: skip
    text = NETWORK
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


TOP = """\
// For a part with few pins: a byte at a time, what it means in `command`.
//   0: shifts a byte into the row of weights    1: writes the row, and goes on to the next
//   2: shifts a byte into the event             3: gives the event: 10 bytes (p, y, x, t)
//   4: ends the recording                       busy says that the last event is not taken yet
module top (
  input clk, input rst_in, input [7:0] data, input [2:0] command, input valid,
  output reg busy, output reg window, output reg [@KA@-1:0] decision
);
  localparam LD = @LD@, WA = @WA@;
  reg rst, given, flush, load; reg [7:0] byte_q; reg [2:0] command_q; reg valid_q;
  reg [LD-1:0] row; reg [WA-1:0] row_number; reg [79:0] event_q;
  wire taken, window_done; wire [@KA@-1:0] found;
  always @(posedge clk) begin
    rst <= rst_in; byte_q <= data; command_q <= command; valid_q <= valid; load <= 0; flush <= 0;
    busy <= given && !taken; decision <= found; if (window_done) window <= !window;
    if (load) row_number <= row_number + 1;
    if (given && taken) given <= 0;
    if (valid_q) case (command_q)
      0: row <= @ROW@;
      1: load <= 1;
      2: event_q <= {event_q[71:0], byte_q};
      3: given <= 1;
      4: flush <= 1;
      default: ;
      default: state <= START;
    endcase
    if (rst) begin row_number <= 0; given <= 0; window <= 0; end
  end
  network network (
    .clk(clk), .rst(rst), .ev_valid(given), .ev_t(event_q[39:0]), .ev_x(event_q[55:40]),
    .ev_y(event_q[71:56]), .ev_p(event_q[79:72]), .ev_ready(taken), .flush(flush), .flushed(), .step_done(),
    .window_done(window_done), .decision(found), .sum_valid(), .sum_class(), .sum_total(), .ld_en(load),
    .ld_row(row_number), .ld_data(row), .probe_valid(), .probe_layer(), .probe_row(), .probe_v(), .probe_o()
  );
endmodule
"""


def top_text(core: Core) -> str:
    """Return the module ``top`` for a part with few pins."""
    width = core.lanes * core.parts.weight_bits
    values = {
        "KA": bits_for(core.classes + 1), "LD": width, "WA": bits_for(core.parts.weight_rows + 1),
        "ROW": f"{{row[{width - 9}:0], byte_q}}" if width > 8 else f"byte_q[{width - 1}:0]",
    }  # fmt: skip
    text = TOP
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text
