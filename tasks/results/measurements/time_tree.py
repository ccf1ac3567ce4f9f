"""The time of a cell as a tree: the model, its modules and their operators, beside that of another cell."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from tasks.judge.figures import signed_percent
from tasks.results.cells import CellRow
from tasks.results.measurements.operators import REST
from tasks.results.reader import Reader
from tasks.results.table import Milliseconds, Name, Percent, Row, Words, grouped

MODEL = "the model"
PORTABLE = "portable"
MIN_CHANGE = 0.05
"""Smaller changes of a part count as none: a fraction."""
_MODULE = "module"
_PLACES = {
    "inserted": "Inserted by the exporter",
    "unknown": "Of unknown modules",
    "unattributed": REST,
}
"""What time outside of modules is; the order is that of a drawing."""
_OUTSIDE_OPERATORS = {
    "method": "the runtime between calls",
    "delegate_call": "inside delegates, in no operator",
    "operator_call": "around portable operators",
}
Place = Literal["module", "inserted", "unknown", "unattributed"]


@dataclass(frozen=True)
class TimePartRow(CellRow):
    """The time of an operator in a module of a cell, or of what is no operator; those of a cell add up to its time."""

    query = "time_parts"
    place: str
    module_path: str
    kind: str
    operator: str
    category: str
    source_operator: str | None
    file_line: str | None
    calls_per_run: float
    time_ms: float
    resolution_ms: float
    has_modules: bool

    @property
    def name(self) -> str:
        return _OUTSIDE_OPERATORS.get(self.kind, self.operator)


@dataclass(frozen=True)
class CellTimePartRow(TimePartRow):
    query = "cell_time_parts"


@dataclass
class TimeNode:
    """A part of the time of a cell: the model, a module or an operator in one.

    Without children it is a leaf, whose time is measured; with some, it has their sum.
    """

    name: str
    path: str
    """Of the module, and of an operator its module's; outside of modules, what it is. Empty for the model itself."""
    kind: str = _MODULE
    """module, inserted, unknown, unattributed, or of a leaf delegated, portable, ..."""
    category: str = ""
    file_line: str | None = None
    time_ms: float = 0.0
    before_ms: float | None = None
    """In the other cell, 0 if that has no such part; None without another cell."""
    resolution_ms: float = 0.0
    """Milliseconds that both times may be off."""
    children: dict[str, "TimeNode"] = field(default_factory=dict)

    @property
    def is_portable(self) -> bool:
        return self.kind == PORTABLE

    @property
    def ratio(self) -> float | None:
        """Time over that in the other cell; None without one, or if a clock cannot resolve one of them."""
        if not self.before_ms or min(self.time_ms, self.before_ms) <= self.resolution_ms:
            return None
        return self.time_ms / self.before_ms

    @property
    def is_new(self) -> bool:
        return self.before_ms == 0 and self.time_ms > 0

    @property
    def is_gone(self) -> bool:
        return self.time_ms == 0 and bool(self.before_ms)

    @property
    def change(self) -> str:
        """The change in words: `+12 %`, `new`, `gone`, `unknown`; empty without another cell."""
        if self.before_ms is None:
            return ""
        if self.ratio is None:
            return "new" if self.is_new else "gone" if self.is_gone else "unknown"
        return f"{signed_percent(self.ratio)} %"

    @property
    def leaves(self) -> Iterator["TimeNode"]:
        if not self.children:
            yield self
        for child in self.children.values():
            yield from child.leaves


@dataclass(frozen=True)
class TimeLeafRow(Row):
    """A leaf of a tree as a row of the table behind a drawing."""

    module: Annotated[str, Name("Module")]
    operator: Annotated[str, Words("Operator")]
    kind: Annotated[str, Words("Kind", tone=lambda kind: "flag" if kind == PORTABLE else "")]
    time_ms: Annotated[float, Milliseconds("Time", unit="ms per run")]
    share: Annotated[float, Percent("Share", bar=True)]
    before_ms: Annotated[float | None, Milliseconds("Before", unit="ms per run", only_with="change")]
    change: Annotated[str, Words("Change", only_with="change")]
    file_line: Annotated[str | None, Words("Source", only_with="file_line")]


def read_time_parts(reader: Reader, cells: Sequence[str]) -> dict[str, list[CellTimePartRow]]:
    """Return the parts of each cell by its id; none of an emulated device."""
    return grouped(reader.rows(CellTimePartRow, {"cells": list(cells)}), lambda row: row.cell)


def build_time_tree(parts: Sequence[TimePartRow], before: Sequence[TimePartRow] | None = None) -> TimeNode:
    """Return the tree of the parts of one cell, in the order of the program, beside those of another cell."""
    root = TimeNode(MODEL, "", before_ms=None if before is None else 0.0)
    names = _leaf_names(parts, before or ())
    for part in parts:
        leaf = _leaf(root, part, names[id(part)])
        leaf.time_ms += part.time_ms
        leaf.resolution_ms += part.resolution_ms
        leaf.kind, leaf.category, leaf.file_line = part.kind, part.category, leaf.file_line or part.file_line
    of_before: dict[int, float] = defaultdict(float)
    for part in before or ():
        leaf = _leaf(root, part, names[id(part)])
        leaf.before_ms = (leaf.before_ms or 0.0) + part.time_ms
        of_before[id(leaf)] += part.resolution_ms
        leaf.resolution_ms = max(leaf.resolution_ms, of_before[id(leaf)])
        if leaf.kind == _MODULE:  # a leaf that the first cell lacks
            leaf.kind, leaf.category, leaf.file_line = part.kind, part.category, part.file_line
    _add_up(root)
    _order(root)
    _shorten(root)
    return root


def leaf_rows(root: TimeNode) -> list[TimeLeafRow]:
    """Return the leaves, the longest first."""
    rows = [
        TimeLeafRow(
            _place_name(leaf),
            leaf.name,
            leaf.kind,
            leaf.time_ms,
            leaf.time_ms / (root.time_ms or 1.0),
            leaf.before_ms,
            leaf.change,
            leaf.file_line,
        )
        for leaf in root.leaves
    ]
    return sorted(rows, key=lambda row: -max(row.time_ms, row.before_ms or 0.0))


def _place_name(leaf: TimeNode) -> str:
    return leaf.path or MODEL


def _leaf_names(*sides: Sequence[TimePartRow]) -> dict[int, str]:
    """Return the name of each part by its id: equal for parts of two cells that are the same part of the model.

    Other precisions and variants run the same operator of the model under another name. Where a module has it once on
    each side, it is the same part, and has the name of the first side.
    """
    names = {id(part): part.name for side in sides for part in side}
    exact = [{(part.place, part.module_path, part.name) for part in side} for side in sides]
    once: list[dict[tuple[str, str | None], TimePartRow]] = []
    for side, other in zip(sides, reversed(exact), strict=True):
        alone = [
            part for part in side if part.source_operator and (part.place, part.module_path, part.name) not in other
        ]
        counts = Counter((part.module_path, part.source_operator) for part in alone)
        keys = [(part.module_path, part.source_operator) for part in alone]
        once.append({key: part for key, part in zip(keys, alone, strict=True) if counts[key] == 1})
    first, second = once
    return names | {id(second[key]): first[key].name for key in first.keys() & second.keys()}


def _leaf(root: TimeNode, part: TimePartRow, name: str) -> TimeNode:
    """Return the leaf of a part, made with the modules around it."""
    node, path = root, part.module_path
    empty = root.before_ms
    if part.place != _MODULE:
        path = _PLACES[part.place]
        node = node.children.setdefault(
            f" {part.place}", TimeNode(path, path, part.place, part.category, before_ms=empty)
        )
        return node.children.setdefault(f" {name}", TimeNode(name, path, before_ms=empty))
    for depth, module in enumerate(path.split(".") if path else (), 1):
        inner = ".".join(path.split(".")[:depth])
        node = node.children.setdefault(module, TimeNode(module, inner, before_ms=empty))
    return node.children.setdefault(f" {name}", TimeNode(name, path, before_ms=empty))


def _add_up(node: TimeNode) -> None:
    """Set the times of a node with children to their sums."""
    children = list(node.children.values())
    for child in children:
        _add_up(child)
    if children:
        node.time_ms = sum(child.time_ms for child in children)
        node.resolution_ms = sum(child.resolution_ms for child in children)
        if node.before_ms is not None:
            node.before_ms = sum(child.before_ms or 0.0 for child in children)


def _order(root: TimeNode) -> None:
    """Move what is outside of modules behind them."""
    last = [f" {place}" for place in _PLACES]
    ordered = sorted(root.children.items(), key=lambda item: last.index(item[0]) if item[0] in last else -1)
    root.children = dict(ordered)


def _shorten(node: TimeNode) -> None:
    """Make one node of a module and its only child if that is a module: `layers` and `0` are `layers.0`."""
    for key, child in node.children.items():
        while len(child.children) == 1 and child.kind == _MODULE:
            (inner,) = child.children.values()
            if inner.kind != _MODULE or not inner.children:
                break
            inner.name = f"{child.name}.{inner.name}"
            child = node.children[key] = inner
        _shorten(child)


def uncertain_share(parts: Iterable[TimePartRow]) -> float:
    """Return which share of the time of a cell the clock of delegates may have hidden."""
    rows = list(parts)
    return sum(row.resolution_ms for row in rows) / (sum(row.time_ms for row in rows) or 1.0)
