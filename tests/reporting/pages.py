"""Parse a report and fail if it is not well-formed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "source", "wbr"}
ADDRESSES = {"src", "href", "action", "data", "poster", "srcset", "background", "formaction", "xlink:href", "ping"}
LOADING = {"link", "iframe", "img", "image", "object", "embed", "base", "form", "video", "audio", "frame"}
LEVELS = ("h1", "h2", "h3", "h4", "h5")
Where = tuple[str, str, str]


@dataclass
class Drawing:
    """A figure of a report: headings above it, text, and marks with their tooltips."""

    where: Where
    label: str
    marks: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""
    caption: str = ""

    @property
    def tips(self) -> list[str]:
        return [given["data-tip"] for _, given in self.marks]


class Page(HTMLParser):
    """Elements are balanced, ids are unique, nothing is loaded, and nothing runs but the page's own script.

    Tables are found by the headings of the second to fourth level above them. A part of a page with several parts
    has them a level deeper.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.anchors: list[str] = []
        self.outline: list[tuple[int, str]] = []
        self.rows: dict[Where, list[list[str]]] = {}
        self.shades: dict[Where, list[str]] = {}
        self.items: list[str] = []
        self.links: list[str] = []
        self.terms: list[list[str]] = []
        self.drawings: list[Drawing] = []
        self.strips: list[str] = []  # what the rows of a figure of effects or panels say
        self.scripts: list[tuple[dict[str, str], list[str]]] = []
        self.policy = ""
        self._pieces: list[str] = []
        self._figures: list[bool] = []
        self.feed(text)
        self.close()
        self._check()

    def _check(self) -> None:
        assert self.open == []
        self.items = [" ".join(item.split()) for item in self.items]
        assert len(self.ids) == len(set(self.ids))
        assert not [name for name in self.anchors if name not in self.ids]
        assert not LOADING & set(self.tags)
        assert self.tags.count("html") == self.tags.count("body") == self.tags.count("h1") == 1
        levels = [level for level, _ in self.outline]
        assert not [at for at in range(1, len(levels)) if levels[at] > levels[at - 1] + 1]
        # The data, and the script that the policy allows by its hash.
        (data, text), (own, script) = self.scripts
        assert data == {"type": "application/json", "id": "data"}
        assert own == {}
        digest = base64.b64encode(hashlib.sha256("".join(script).encode()).digest()).decode()
        assert self.policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
        self.data: dict[str, Any] = json.loads("".join(text), parse_constant=_refuse)
        parts = {value for _, name, value in self.attributes if name == "data-part"}
        assert parts == set(self.data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert len(given) == len(attrs)
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in given.items()]
        self._check_attributes(tag, given)
        if tag == "figure":
            self._figures.append(given.get("class", "").split(" ")[0] in ("effects", "panels"))
        if tag not in VOID:
            self.open.append(tag)
        if "svg" in self.open:
            self._draw(tag, given)
        elif given.get("class") == "strip":
            self.strips.append(given["aria-label"])
        elif tag in LEVELS:
            self.outline.append((int(tag[1]), ""))
        elif tag == "tr":
            self.rows.setdefault(self.where, []).append([])
        elif tag in ("td", "th"):
            self.rows[self.where][-1].append("")
            if given.get("class") == "number effect":
                self.shades.setdefault(self.where, []).append(given["style"])
        elif tag == "li" and "nav" not in self.open:
            self.items.append("")
        elif tag == "a":
            self.links.append("")
        elif tag == "dt":
            self.terms.append([""])
        elif tag == "dd":
            self.terms[-1].append("")
        elif tag == "script":
            self.scripts.append((given, []))
        elif tag in ("br", "small"):
            self.handle_data(" ")

    def _check_attributes(self, tag: str, given: dict[str, str]) -> None:
        assert not [name for name in given if name.startswith("on")]
        assert not [value for name, value in given.items() if name == "style" and re.search(r"url\(|expression", value)]
        for name in ADDRESSES & set(given):
            assert (tag, name) in (("a", "href"), ("use", "href"))
            assert given[name].startswith("#")
            self.anchors.append(given[name][1:])
        self.ids += [given["id"]] if "id" in given else []
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy":
            assert self.policy == ""
            self.policy = given["content"]

    def _draw(self, tag: str, given: dict[str, str]) -> None:
        if tag == "svg" and given.get("class") == "strip":
            self.strips.append(given["aria-label"])
        elif tag == "svg" and given.get("aria-hidden") != "true" and not self.hidden:
            assert given["role"] == "img"
            self.drawings.append(Drawing(self.where, given["aria-label"]))
        elif "data-tip" in given and tag != "g" and not self.hidden:  # groups are axes and legends
            self.drawings[-1].marks.append((tag, given))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "figure":
            self._figures.pop()

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            assert not re.search(r"url\(|@import", data)
        elif "script" in self.open:
            self.scripts[-1][1].append(data)
        elif "svg" in self.open:
            if not self.hidden and self.drawings:
                self.drawings[-1].text += data
        else:
            self._read(data)

    def _read(self, data: str) -> None:
        around = set(self.open)
        if "head" not in around:
            self._pieces.append(data)
        if around & set(LEVELS):
            self.outline[-1] = (self.outline[-1][0], self.outline[-1][1] + data)
        if {"td", "th"} & around:
            self.rows[self.where][-1][-1] += data
        if "li" in around and "nav" not in around:
            self.items[-1] += data
        if "a" in around:
            self.links[-1] += data
        if {"dt", "dd"} & around:
            self.terms[-1][-1] += data
        if "figcaption" in around and not self.hidden:
            self.drawings[-1].caption += data

    @property
    def hidden(self) -> bool:
        """Whether the current position is in a figure of effects or panels."""
        return bool(self._figures and self._figures[-1])

    @property
    def where(self) -> Where:
        """Return the headings above the current position."""
        found = ["", "", ""]
        for level, name in self.outline:
            if level > 1:
                found[level - 2 :] = [name, "", ""][: 5 - level]
        return (found[0], found[1], found[2])

    @property
    def text(self) -> str:
        """Return the text without figures."""
        return " ".join("".join(self._pieces).split())

    def headings(self, level: int = 2) -> list[str]:
        return [name for at, name in self.outline if at == level]

    def table(self, *where: str) -> list[list[str]]:
        """The rows of all tables right below these headings."""
        return self.rows[(*where, "", "", "")[:3]]  # type: ignore[index]

    def explained(self, term: str) -> list[str]:
        """Return the definition of a term in a list."""
        return [" ".join(" ".join(told).split()) for name, *told in self.terms if name == term]


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
