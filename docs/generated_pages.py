"""Pages of the site that code writes: every verb's help, every setting, the public names, and the root's documents."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

import axonnx
from axonnx.cli.command import VERBS
from axonnx.cli.options import parser_of
from axonnx.cli.parsers import OTHER_WORDS
from axonnx.train.config.read import settings, shipped

ROOT = Path(__file__).parents[1]
OTHER = "These words of earlier versions and other tools are accepted."
DOCUMENTS = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}


@event_priority(100)  # before mkdocstrings looks where modules are
def on_config(config: MkDocsConfig) -> None:
    """Show mkdocstrings, which reads files, the package's modules under their names; mkdocs calls this first."""
    package = ROOT / "build" / "package"
    shutil.rmtree(package, ignore_errors=True)
    mapped = runpy.run_path(str(ROOT / "setup.py"))["package_folders"]()
    for name, folder in mapped.items():
        place = package / name.replace(".", "/")
        place.mkdir(parents=True)
        for module in (ROOT / folder).glob("*.py"):
            (place / module.name).symlink_to(module)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add generated pages to those written by hand; mkdocs calls this once it has found them."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def pages() -> dict[str, str]:
    """Path in the site → Markdown."""
    return {
        "reference/command-line.md": command_line(),
        "reference/settings.md": all_settings(),
        "reference/python.md": public_names(),
        **{path: from_the_root(source) for path, source in DOCUMENTS.items()},
        **{f"tutorials/{path.stem}.md": walk(path) for path in (ROOT / "docs/tutorials").glob("*.ipynb")},
    }


def command_line() -> str:
    """Return what ``axonnx VERB --help`` prints, for every verb."""
    parts = ["# Command line", "`axonnx VERB --help` prints the same."]
    for name, verb in VERBS.items():
        parts += [f"## axonnx {name}", f"{verb.does[0].upper()}{verb.does[1:]}.", f"```text\n{_help(name)}```"]
    parts += ["## Other spellings", OTHER]
    for verb_name, words in OTHER_WORDS.items():
        parts.append("\n".join(f"- {_other(verb_name, old, new)}" for old, new in words.items()))
    return "\n\n".join(parts)


def _other(verb: str, old: str, new: str) -> str:
    return f"`{old}`{f' of `axonnx {verb}`' if verb else ''}: " + (f"`{new}`" if new else "no longer needed")


def all_settings() -> str:
    """Every setting of a training run with its default and meaning, by section."""
    parts = ["# Settings", "What a TOML file of `axonnx train` may hold; on the command line `--section.name VALUE`."]
    for section, rows in _sections():
        table = "\n".join(f"| `{key}` | `{default}` | {_cell(about)} |" for key, default, about in rows)
        parts += [f"## {section}", f"| setting | default | meaning |\n| --- | --- | --- |\n{table}"]
    names = "\n".join(f"| `{name}` | {_cell(entry['about'])} |" for name, entry in shipped().items())
    parts += ["## Shipped configurations", f"| name | is for |\n| --- | --- |\n{names}"]
    return "\n\n".join(parts)


def public_names() -> str:
    """Return the names of ``import axonnx``, rendered by mkdocstrings from their docstrings."""
    parts = ["# Python", f"```text\n{axonnx.__doc__}```"]
    for name in dir(axonnx):
        if not name.startswith("__"):
            parts += [f"## axonnx.{name}", f"::: {getattr(axonnx, name).__module__}.{name}"]
    return "\n\n".join(parts)


def from_the_root(source: str) -> str:
    """Return a document that stands beside the README; its links into ``docs/`` become links of the site."""
    text = (ROOT / source).read_text("utf-8")
    return re.sub(r"\]\((?:docs/)?([^):]+)\)", _link, text)


def walk(path: Path) -> str:
    """Turn a notebook into a page: its text, its code, and what each cell shows."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            printed = "".join(output.get("text") or data.get("text/plain", ""))
            parts.append("".join(data.get("text/html", "")) or f"```text\n{printed}\n```")
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn notebooks into pages of the site; mkdocs calls this for each page."""
    return markdown.replace(".ipynb)", ".md)")


def _link(found: re.Match[str]) -> str:
    target = found[1]
    known = {source: path for path, source in DOCUMENTS.items()} | {"README.md": "index.md"}
    return f"]({known.get(target, target)})"


def _help(name: str) -> str:
    parser = parser_of(name, VERBS[name])
    formatter: Any = parser.formatter_class
    parser.formatter_class = lambda prog: formatter(prog, width=110)
    return parser.format_help()


def _sections() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for key, default, about in settings():
        sections.setdefault(key.rpartition(".")[0] or "run", []).append((key, default, about))
    yield from sections.items()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
