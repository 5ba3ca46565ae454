# Everything happens in .venv; `make test` and `make demo` set it up on a machine that has only Python.
# Another Python and another folder: make PYTHON=python3.13 VENV=.venv-3.13 test
PYTHON ?= python3.11
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
CORE   := $(VENV)/.core
BENCH  := $(VENV)/.bench

# Libraries whose networks are imported, and one that rewrites ONNX files, for the tests that hold us against them;
# without what they ask for and tests do not need (torchvision, tensorboard).
PEERS  := norse spikingjelly loguru nirtorch onnxsim

# The C sources, and the Python that writes generated.h.
CORE_SOURCES := setup.py $(wildcard native/*.[ch]) runtime/format/opset.py \
	runtime/codegen/rows.py runtime/codegen/expressions.py

.PHONY: help setup core test pytest lint format types bench faults firmware hardware fuzz demo docs clean

help:            ## this list
	@grep -hE '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /  make \1\t/' | expand -t 16

setup: $(CORE)   ## virtual environment with everything pinned in constraints.txt

$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; run 'make PYTHON=/path/to/python …', with Python 3.11 or later" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt setuptools wheel
	AXONNX_WITHOUT_CORE=1 $(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt neurobench $(PEERS)
	@touch $@

core: $(CORE)    ## the native core, built again where its sources changed (seconds)

# The environment is installed without the core, so that a change in C takes seconds and not the whole environment.
$(CORE): $(CORE_SOURCES) | $(READY)
	$(BIN)/python setup.py -q build_ext --inplace
	@touch $@

test: lint types pytest  ## lint, types and every test

# Two workers, one thread each: a test file stays on one worker, so that what it exports or trains is made once.
pytest: $(CORE)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)   ## ruff, rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY) ## let ruff rewrite the tree
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Type checkers do not follow an editable install's folder mapping, so the built package is checked; they read no C.
types: $(READY)  ## mypy on the package as it installs
	@rm -rf build && mkdir -p build/types
	@AXONNX_WITHOUT_CORE=1 $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --target build/types .
	cd build/types && MYPYPATH=. ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache --namespace-packages --explicit-package-bases axonnx
	@rm -rf build

bench: $(CORE) $(BENCH)  ## the speed tables of docs/, beside other libraries (minutes)
	$(BIN)/python -m benchmarks

# Libraries that only the benchmarks need. sinabs runs without samna, the driver of its chips. JAX's libraries bring
# uvloop, which `axonnx serve` would use too: it would be timed with an event loop that its users do not have.
$(BENCH): constraints.txt | $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt spyx optax
	$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt sinabs pbr
	$(BIN)/python -m pip uninstall --quiet --yes uvloop
	@touch $@

firmware: $(CORE)  ## digits as firmware for a Cortex-M4, in qemu; installs the tools with apt-get
	@command -v arm-none-eabi-gcc >/dev/null && command -v qemu-system-arm >/dev/null || \
		$$(test $$(id -u) = 0 || echo sudo) apt-get install -y gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm
	$(BIN)/python -m benchmarks.firmware

HARDWARE := verilator g++ yosys nextpnr-ice40 fpga-icestorm
hardware: $(CORE)  ## digits as a design for an FPGA, simulated and placed; installs the tools with apt-get
	@command -v verilator >/dev/null && command -v yosys >/dev/null && command -v nextpnr-ice40 >/dev/null && \
		command -v icepack >/dev/null || $$(test $$(id -u) = 0 || echo sudo) apt-get install -y $(HARDWARE)
	$(BIN)/python -m benchmarks.hardware

MINUTES ?= 10
fuzz: $(CORE)    ## damaged files of every kind, for MINUTES=10 in all
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

faults: $(CORE)  ## every planted fault, and who catches it (minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults

demo: $(CORE)    ## the whole pipeline on the embedded data
	$(BIN)/axonnx demo

docs: $(CORE)    ## the site, in build/site; see it with: python -m http.server -d build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

clean:           ## remove the environment and everything built
	rm -rf $(VENV) build dist native/*.so native/*.dylib native/*.dll *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
