"""A network in integers as Verilog: synthesizable, event-driven, with the bits of its file."""
