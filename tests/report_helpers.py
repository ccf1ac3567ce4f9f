"""Read a report as a person does: its sections, their sentences and their tables, from HTML and from Markdown."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from tasks.report import render_report

VOID = {"meta", "br", "link", "img"}
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`) ?(.+?) ?(?<!`)\1(?!`)")


@dataclass
class Part:
    """A section of the report: all its text, and its tables as rows of cells, the first row the heads."""

    text: str = ""
    tables: list[list[list[str]]] = field(default_factory=list)

    def column(self, head: str, table: int = 0) -> list[str]:
        """The cells under the head that starts with `head`."""
        heads, *rows = self.tables[table]
        at = next(position for position, title in enumerate(heads) if title.startswith(head))
        return [row[at] for row in rows]


class _Reader(HTMLParser):
    """Keeps text by section, tables by cell, and everything that a browser would load."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[str, Part] = {"": Part()}
        self.loaded: list[str] = []
        self.open: list[str] = []
        self._section = ""
        self._cell: list[str] | None = None

    @property
    def _part(self) -> Part:
        return self.parts.setdefault(self._section, Part())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loaded += [given[name] or "" for name in ("src", "href", "data", "srcset", "poster") if name in given]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self._section = given["id"] or ""
        elif tag == "table":
            self._part.tables.append([])
        elif tag == "tr":
            self._part.tables[-1].append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """`<rect/>` opens nothing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"
        if tag in ("td", "th") and self._cell is not None:
            self._part.tables[-1][-1].append(" ".join("".join(self._cell).split()))
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            return
        if self._cell is not None:
            self._cell.append(data)
        self._part.text += data


class Report:
    """One rendered report."""

    def __init__(self, warehouse: Path, reports: Path, sweep_id: str | None = None) -> None:
        self.path = render_report(warehouse, sweep_id, reports)
        self.html = self.path.read_text(encoding="utf-8")
        self.markdown = self.path.with_suffix(".md").read_text(encoding="utf-8")
        reader = _Reader()
        reader.feed(self.html)
        reader.close()
        self.unclosed = reader.open
        self.loaded = reader.loaded
        self._parts = reader.parts

    def __getitem__(self, anchor: str) -> Part:
        return self._parts[anchor]

    def says(self, sentence: str, anchor: str = "") -> bool:
        """Whether a section (the head without an anchor) has these words, however its lines are broken."""
        return sentence in " ".join(self._parts[anchor].text.split())


def markdown_tables(text: str) -> list[list[list[str]]]:
    """The tables of a Markdown text as a reader sees them: cells without escapes, emphasis and code marks."""
    tables: list[list[list[str]]] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("| "):
            if not inside:
                tables.append([])
            tables[-1].append([_plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        inside = line.startswith("| ")
    return [[rows[0], *rows[2:]] for rows in tables]


def _plain(cell: str) -> str:
    stripped = cell.strip()
    stripped = re.sub(r"^\*\*(.*)\*\*$", r"\1", stripped)
    return re.sub(
        rf"{CODE_SPAN.pattern}|\\([^A-Za-z0-9\s])", lambda found: found[3] or found[2].replace("\\|", "|"), stripped
    )
