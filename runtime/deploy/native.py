"""The folders that ``axonnx compile`` writes: C for desktops and microcontrollers, JavaScript for browsers."""

from __future__ import annotations

from importlib import resources

from axonnx.runtime.codegen.c.network_source import READ_CLASS, READ_VALUES, c_source, state_bytes
from axonnx.runtime.codegen.js.module_text import library, module_text
from axonnx.runtime.deploy.origin import RECORD, Origin
from axonnx.runtime.format.contract import results_of
from axonnx.runtime.program.instructions import Program

DESKTOP = """\
# {name} as C99

A {kind} network for {results}, with the same bits as its ONNX file and the kernels of the native engine. It
uses no heap and no library. `make` builds it; `./network recording.csv` (columns t,x,y,p) prints a decision. Your own
program needs only `network*.[ch]`:

    static network_state n;
    network_init(&n, 0, 0);
    network_step(&n, frame);                      // or network_step_events(&n, events, count), for each time bin
    {read}   // after any step

A stream of events goes through `network_stream_event`. `network_selftest(&n)` returns 0 if this is the network of the
file; call it once at the start.

"""
BOARD = """\
# {name} for Cortex-M

A {kind} network for {results}, with the same bits as its ONNX file. Weights are constants; states need
{memory:,} bytes of RAM. `make` builds firmware for ARM's MPS2 board (AN386, Cortex-M4), `make run
RECORDINGS=recording.csv` runs it in qemu, `make size` prints the size of the network alone. Your own program needs only
`network*`; `board.*` belong to the board.

    static network_state n;
    network_init(&n, 0, 0);
    network_step(&n, frame);                      // or network_step_events(&n, events, count), for each time bin

A stream of events goes through `network_stream_event`. `network_selftest(&n)` returns 0 if this is the network of the
file; call it once after a reset.

"""


def desktop_files(program: Program, origin: Origin) -> dict[str, str]:
    """Return the text of each file by name."""
    made = {"main.c": _file("main.c"), "Makefile": _file("desktop.mk")}
    return {**c_source(program, expected=origin.selftest), **made, **_told(DESKTOP, program, origin, 0)}


def cortex_m_files(program: Program, origin: Origin) -> dict[str, str]:
    """Return the files with start-up code, a memory map and a Makefile for the cross compiler."""
    code = c_source(program, vectors=False, expected=origin.selftest)
    board = {name: _file(name) for name in ("main.c", "board.c", "board.h", "board.ld")}
    return {
        **code,
        **board,
        "Makefile": _file("cortex_m.mk"),
        **_told(BOARD, program, origin, state_bytes(code["network.h"])),
    }


def _told(readme: str, program: Program, origin: Origin, memory: int) -> dict[str, str]:
    contract = program.contract
    read = READ_CLASS if contract.units is None else READ_VALUES
    told = readme.format(name=program.name, kind=contract.kind, results=results_of(contract), memory=memory, read=read)
    return {"README.md": told + origin.sentence(program), RECORD: origin.record(program)}


def _file(name: str) -> str:
    return resources.files("axonnx.runtime.deploy").joinpath("files", name).read_text("utf-8")


README = """\
# {name} as JavaScript

A {kind} network for {results}, with the same bits as its ONNX file.{page}
`node run.mjs RECORDING` prints a decision. Your own program needs only `network.js`:

    import {{ create, contract }} from './network.js';
    const network = create();
    for (const frame of frames) network.step(frame);   // counts, or the events {{x, y, p}} of one time bin
    console.log(network.decision().{told});             // after any step; network.run({{t, x, y, p}}) takes them all

A stream goes through `follow()`, also exported: `push(events)` returns the decisions of complete windows. `selftest()`
throws if this is not the network of the file.

"""


def browser_files(program: Program, origin: Origin) -> dict[str, str]:
    """Return the text of each file by name."""
    contract = program.contract
    page = " Try it on the page `index.html`." if contract.units is None else ""
    field = "label" if contract.units is None else "text "
    told = README.format(name=program.name, kind=contract.kind, results=results_of(contract), page=page, told=field)
    return {
        "network.js": module_text(program, origin.selftest),
        "recordings.js": f"{library('recordings.js')}\nexport {{ fitRecording, readRecording }};\n",
        "run.mjs": library("run.mjs"),
        "package.json": '{ "type": "module" }\n',
        "README.md": told + origin.sentence(program),
        RECORD: origin.record(program),
    }
