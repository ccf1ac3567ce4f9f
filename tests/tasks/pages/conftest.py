"""One warehouse with the sweeps of all tests of the report: the parameter `sweep` of a test writes its own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from sql.warehouse import open_read_only
from tasks.pages.charts import BarChart
from tasks.pages.page import Block, Fold, Heading, Log, Paragraph, Points, Section
from tasks.pages.report import SECTIONS, sweep_page
from tasks.results.reader import Answers, Reader, SweepRow
from tasks.results.table import Table
from tasks.results.text import Tag, Text, split_text
from tests.fixtures import pages as fixtures_pages
from tests.fixtures.paths import shared_folder
from tests.fixtures.warehouse import BundleMaker


def with_sessions(sessions: "Callable[[Sweep], Any]") -> pytest.MarkDecorator:
    """Let a function write the sessions of a test's sweep; several for `parametrize` of `sweep`, with `indirect`."""
    return pytest.mark.parametrize("sweep", [sessions], indirect=True, ids=[""])


@dataclass
class Part(fixtures_pages.Part):
    """What a section states: its words with single blanks, its tables with heads first, and its highlighted cells."""

    flagged: list[str] = field(default_factory=list)
    summary: str = ""

    @classmethod
    def of(cls, section: Section) -> "Part":
        part = cls(summary=" ".join(map(plain_text, section.summary)))
        part.add(section.blocks)
        return part

    def add(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            match block:
                case Paragraph(text=text) | Heading(text=text) | Log(text=text):
                    self.write(text)
                case Points(items=items):
                    self.write(*items)
                case BarChart(title=title):
                    self.write(title)
                case Fold(title=title, blocks=inner):
                    self.write(title)
                    self.add(inner)
                case Table() if block.rows:
                    self.write(block.caption)
                    heads = [f"{column.title} {column.unit}".strip() for column in block.columns]
                    self.tables.append([heads, *([plain_text(cell.text) for cell in row] for row in block.rows)])
                    self.flagged += [
                        plain_text(cell.text) for row in block.rows for cell in row if cell.tone in ("flag", "bad")
                    ]

    def write(self, *texts: Text) -> None:
        self.text = " ".join([self.text, *map(plain_text, texts)])


def plain_text(text: Text) -> str:
    return "".join(f" {part}" if isinstance(part, Tag) else part for part in split_text(text))


class Sweep:
    """The sweep of a test: writes its sessions, and later states what the sections of its report contain."""

    def __init__(self, name: str, maker: BundleMaker | None = None) -> None:
        self._maker, self._name = maker, name
        self.reader: Reader | None = None

    def session(self, executions: Sequence[Any] = (), **changes: Any) -> None:
        """Write a session as `BundleMaker.session` does; the sweep has its own .pte file."""
        sweep = {"sweep_id": f"{self._name}-2026-11-20", "name": self._name, "night": "2026-11-20"}
        assert self._maker is not None
        self._maker.session(executions, sweep=sweep, **({"model__pte_sha256": f"p1-{self._name}"} | changes))

    @cached_property
    def answers(self) -> Answers:
        assert self.reader is not None
        (row,) = [row for row in self.reader.rows(SweepRow) if row.name == self._name]
        return Answers(self.reader, row)

    def __getitem__(self, anchor: str) -> Part:
        for make in SECTIONS:
            names = {"categories": "time"}
            if names.get(make.__name__, make.__name__) == anchor:
                return Part.of(make(self.answers))
        raise KeyError(anchor)

    @property
    def head(self) -> str:
        return " ".join(map(plain_text, sweep_page(self.answers).summary))


@pytest.fixture(scope="session")
def _sweeps(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Sweep]]:
    has_sweep = lambda item: "sweep" in getattr(getattr(item, "callspec", None), "params", {})  # noqa: E731
    items = list(filter(has_sweep, request.session.items))

    def fill(folder: Path) -> None:
        maker = BundleMaker(folder)
        for number, item in enumerate(items):
            item.callspec.params["sweep"](Sweep(f"sweep{number}", maker))  # type: ignore[attr-defined]
        assert maker.load().refused == []

    warehouse = shared_folder(tmp_path_factory, "sweeps", fill) / "warehouse.duckdb"
    sweeps = {item.nodeid: Sweep(f"sweep{number}") for number, item in enumerate(items)}
    with open_read_only(warehouse) as connection:
        reader = Reader(connection)
        for sweep in sweeps.values():
            sweep.reader = reader
        yield sweeps


@pytest.fixture
def sweep(request: pytest.FixtureRequest, _sweeps: dict[str, Sweep]) -> Sweep:
    return _sweeps[request.node.nodeid]
