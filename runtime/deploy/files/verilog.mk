# make builds a simulation with Verilator; make report places the design on an iCE40 UP5K.
CFLAGS = -O2
SOURCES = network.v core.v

network: $(SOURCES) simulate.cpp facts.h
	verilator --cc --exe --build -O3 -Wno-fatal -Wno-lint -Wno-style --top-module network --Mdir build -CFLAGS "$(CFLAGS) -I.." \
		-o ../network $(SOURCES) simulate.cpp >build.log 2>&1 || { tail -n 20 build.log >&2; exit 1; }

# Gates instead of registers' descriptions: yosys maps the design to single gates, which the same program simulates.
gates: $(SOURCES)
	yosys -q -p "read_verilog $(SOURCES); synth -flatten -top network; write_verilog -noattr gates.v" >gates.log 2>&1
	$(MAKE) network SOURCES=gates.v

report:
	yosys -q -l synthesis.log -p "read_verilog top.v network.v core.v; synth_ice40 -spram -abc2 -device u -top top -json top.json"
	nextpnr-ice40 --up5k --package sg48 --json top.json --pcf-allow-unconstrained --asc top.asc --freq 30 --timing-allow-fail \
		--report report.json -q --log placement.log
	icepack top.asc top.bin
	@sed -n '/Device utilisation/,/^$$/p' placement.log
	@grep 'Max frequency' placement.log | tail -n 1

clean:
	rm -rf build network gates.v top.json top.asc top.bin *.log report.json
