"""A strict reader of HTML: tags must match, ids be unique, links lead somewhere, and nothing point outside."""

import re
from html.parser import HTMLParser

VOID = {"br", "hr", "img", "input", "link", "meta"}
OUTSIDE = re.compile(r"(?:https?:)?//[a-z0-9-]+\.|https?://|\bwss?://|@import", re.IGNORECASE)
NAMESPACES = re.compile(r'xmlns(?::\w+)?="[^"]*"')


class Page(HTMLParser):
    """What a page is made of, and what is wrong with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]
        self.faults += self._dangling()
        self.faults += [f"points outside: {found}" for found in OUTSIDE.findall(NAMESPACES.sub("", text))]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if len(dict(attrs)) != len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else, line {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def count(self, tag: str, kind: str | None = None) -> int:
        found = [attributes for name, attributes in self.tags if name == tag]
        return sum(kind is None or kind in (attributes.get("class") or "").split() for attributes in found)

    def _dangling(self) -> list[str]:
        ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        faults = [f"id {name} is there twice" for name in set(ids) if ids.count(name) > 1]
        for tag, attributes in self.tags:
            target = attributes.get("aria-labelledby") or (attributes.get("href") or "").removeprefix("#")
            if target and target not in ids:
                faults.append(f"<{tag}> leads to {target}, which is not there")
            if tag == "svg" and not attributes.get("aria-label"):
                faults.append("an <svg> has no name")
        return faults
