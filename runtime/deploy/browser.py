"""Write a network for browsers and Node.js: one module, readers of recordings, and a program that runs one."""

from __future__ import annotations

from axonnx.runtime.codegen.js.module_text import library, module_text
from axonnx.runtime.deploy.origin import RECORD, Origin
from axonnx.runtime.format.contract import results_of
from axonnx.runtime.program.instructions import Program

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
