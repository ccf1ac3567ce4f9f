"""The time of a cell as an icicle: which module and which operator takes how much, and how that changed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tasks.pages.charts import Frame, Icicle
from tasks.pages.page import Block, Fold, Paragraph
from tasks.results.measurements.operators import CATEGORIES, OTHER, REST
from tasks.results.measurements.time_tree import (
    MIN_CHANGE,
    TimeNode,
    TimePartRow,
    build_time_tree,
    leaf_rows,
    uncertain_share,
)
from tasks.results.table import first_rows
from tasks.results.text import in_ms, in_percent, ms_digits, numbered, rounded_percent

_STEPS = (MIN_CHANGE, 0.10, 0.25)
"""Changes from which a part has the first, second and third shade: fractions."""
_MIN_SHARES = (0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05)
_SIDE_SHARE = 0.01
_MAX_FRAMES, _MAX_LEAVES = 70, 12
_MAX_BRIEF_FRAMES, _MAX_BRIEF_LEAVES = 25, 5
MAX_UNCERTAINTY = 0.2
"""No picture is drawn of a cell of whose time the clock of delegates may have hidden more: a fraction."""
_NOTED_SHARE = 0.05
"""A smaller share that is uncertain, or inside delegates, is not worth a sentence."""
_WORSE, _BETTER = "\u25b2", "\u25bc"
_HUES = (
    "Colours compare two cells, without an interval. An operator is judged over several nights, and its series may be "
    "judged by an interleaved comparison."
)
_CHANGES = [
    ("better-3", f"{_BETTER} over {rounded_percent(_STEPS[2])} faster, or gone"),
    ("better-2", f"{100 * _STEPS[1]:.0f} to {rounded_percent(_STEPS[2])} faster"),
    ("better-1", f"{100 * _STEPS[0]:.0f} to {rounded_percent(_STEPS[1])} faster"),
    ("module", f"less than {rounded_percent(_STEPS[0])} either way"),
    ("worse-1", f"{100 * _STEPS[0]:.0f} to {rounded_percent(_STEPS[1])} slower"),
    ("worse-2", f"{100 * _STEPS[1]:.0f} to {rounded_percent(_STEPS[2])} slower"),
    ("worse-3", f"{_WORSE} over {rounded_percent(_STEPS[2])} slower, or new"),
    ("unknown", "unknown: below the resolution of the clock"),
]


def two_icicles(a: Sequence[TimePartRow], b: Sequence[TimePartRow], labels: tuple[str, str]) -> list[Icicle]:
    """Return the drawings of A and B on one scale, both in the colours of the change from A to B."""
    tree = build_time_tree(b, a)
    scale_ms = max(_total_ms(tree), _total_ms(tree, lambda node: node.before_ms or 0.0))
    sides: list[tuple[Callable[[TimeNode], float], Sequence[TimePartRow]]] = [
        (lambda node: node.before_ms or 0.0, a),
        (lambda node: node.time_ms, b),
    ]
    return [
        _draw(tree, time, scale_ms, f"{label}: {in_ms(time(tree))}", _anchor(parts), _SIDE_SHARE)
        for (time, parts), label in zip(sides, labels, strict=True)
    ]


def icicle_blocks(
    parts: Sequence[TimePartRow], before: Sequence[TimePartRow] | None = None, *, is_brief: bool = False
) -> list[Block]:
    """Return the drawing of a cell, what it does not show, and the table behind it.

    With the parts of another cell before it, the drawing has the colours of the change.
    """
    share, tree = uncertain_share(parts), build_time_tree(parts, before)
    table = _table(tree, _MAX_BRIEF_LEAVES if is_brief else _MAX_LEAVES)
    if share > MAX_UNCERTAINTY:
        why = (
            f"Not drawn: {in_percent(share)} of the time is below the resolution of the delegate's clock, 1 \u00b5s "
            "per call."
        )
        return [Paragraph(why, "quiet"), table]
    drawing = _draw_cell(tree, _anchor(parts), _MAX_BRIEF_FRAMES if is_brief else _MAX_FRAMES)
    return [drawing, *_notes(parts, share, before is not None), table]


def brief_icicle(parts: Sequence[TimePartRow]) -> list[Block]:
    """Return a drawing of the largest parts of a cell for a place that has its table; none if it is not drawn."""
    if not parts or uncertain_share(parts) > MAX_UNCERTAINTY:
        return []
    return [_draw_cell(build_time_tree(parts), _anchor(parts), _MAX_BRIEF_FRAMES)]


def _table(tree: TimeNode, max_rows: int) -> Fold:
    rows = leaf_rows(tree)
    digits = ms_digits(row.time_ms for row in rows[:max_rows])
    table = first_rows(rows, max_rows, "etfarm sql lists them in operator_source", digits=digits)
    return Fold(f"Table of its {numbered(len(rows), 'part')}", [table], in_markdown=False)


def _notes(parts: Sequence[TimePartRow], share: float, has_change: bool) -> Iterator[Block]:
    """Yield what a reader of the drawing must know about its times."""
    total_ms = sum(part.time_ms for part in parts) or 1.0
    notes = []
    if not parts[0].has_modules:
        notes.append("This export does not state modules, so operators are below the model itself.")
    calls_ms = sum(part.time_ms for part in parts if part.kind == "delegate_call")
    if calls_ms / total_ms > _NOTED_SHARE:
        notes.append(f"{in_percent(calls_ms / total_ms)} is inside delegates, in no operator that they report.")
    if share > _NOTED_SHARE:
        notes.append(
            f"Times of delegated operators are full microseconds, rounded down: up to {in_percent(share)} of the time "
            f"may be theirs and not {REST}."
        )
    if has_change:
        notes.append(_HUES)
    if notes:
        yield Paragraph(" ".join(notes), "quiet")


def _title(tree: TimeNode) -> str:
    if tree.before_ms is None:
        return f"Where the {in_ms(tree.time_ms)} of one run go: modules, and the operators that they call"
    return f"Where the {in_ms(tree.time_ms)} of one run go, and the change from {in_ms(tree.before_ms)}"


def _anchor(parts: Sequence[TimePartRow]) -> str:
    return parts[0].cell[:8] if parts else "none"


def _total_ms(node: TimeNode, time: Callable[[TimeNode], float] = lambda node: node.time_ms) -> float:
    """Return the time that is drawn; that of a leaf below 0, where a delegate reports too much, is drawn as 0."""
    return sum(max(0.0, time(leaf)) for leaf in node.leaves)


@dataclass
class _Drawer:
    """Frames of a tree; `time` is the time of the side that is drawn."""

    time: Callable[[TimeNode], float]
    scale_ms: float
    total_ms: float
    min_share: float
    frames: list[Frame] = field(default_factory=list)

    def add(self, node: TimeNode, row: int, start_ms: float) -> None:
        """Add a node and those inside it; small ones are one frame, the last."""
        self._add_frame(node, row, start_ms, _total_ms(node, self.time))
        small = []
        for child in node.children.values():
            width_ms = _total_ms(child, self.time)
            if width_ms >= self.min_share * self.scale_ms:
                self.add(child, row + 1, start_ms)
                start_ms += width_ms
            elif width_ms > 0:
                small.append(child)
        if small:
            self._add_small(node, small, row + 1, start_ms)

    def _add_frame(self, node: TimeNode, row: int, start_ms: float, width_ms: float) -> None:
        time_ms, hue = self.time(node), _hue(node)
        place = f"{node.path} \u203a " if not node.children and node.path else ""
        parts = [in_ms(time_ms), in_percent(time_ms / (self.total_ms or 1.0)), _change(node)]
        parts += ["portable" if node.is_portable else "", node.file_line or ""]
        name = f"{place}{node.name if not node.children else node.path or node.name}"
        sign = _sign(node)
        label = f"{sign} {node.name}" if sign else node.name
        title = f"{name}: {', '.join(filter(None, parts))}"
        start, width = self._share(start_ms), self._share(width_ms)
        self.frames.append(Frame(label, title, row, start, width, hue, node.is_portable))

    def _add_small(self, node: TimeNode, small: Sequence[TimeNode], row: int, start_ms: float) -> None:
        count = sum(self.time(leaf) > 0 for child in small for leaf in child.leaves)
        width_ms = sum(_total_ms(child, self.time) for child in small)
        label = f"{numbered(count, 'operator')} under {100 * self.min_share:g} %"
        share = in_percent(width_ms / (self.total_ms or 1.0))
        title = f"{node.path or node.name} \u203a {label} each: {in_ms(width_ms)}, {share} together"
        is_portable = all(leaf.is_portable for child in small for leaf in child.leaves)
        start, width = self._share(start_ms), self._share(width_ms)
        self.frames.append(Frame(label, title, row, start, width, "module", is_portable))

    def _share(self, ms: float) -> float:
        return ms / (self.scale_ms or 1.0)


def _draw_cell(tree: TimeNode, anchor: str, max_frames: int) -> Icicle:
    """Return the drawing of the first cell of a tree with the least bound of small parts that leaves few enough."""
    for min_share in _MIN_SHARES:
        drawing = _draw(tree, lambda node: node.time_ms, _total_ms(tree), _title(tree), anchor, min_share)
        if len(drawing.frames) <= max_frames:
            break
    return drawing


def _draw(
    tree: TimeNode, time: Callable[[TimeNode], float], scale_ms: float, title: str, anchor: str, min_share: float
) -> Icicle:
    drawer = _Drawer(time, scale_ms, time(tree), min_share)
    drawer.add(tree, 0, 0.0)
    return Icicle(anchor, title, drawer.frames, list(_legend(tree, drawer.frames)))


def _hue(node: TimeNode) -> str:
    if node.before_ms is None:
        if node.children and node.category == "":
            return "module"
        return _category_hue(node.category)
    if node.is_new:
        return "worse-3"
    if node.is_gone:
        return "better-3"
    if node.ratio is None:
        return "unknown"
    change = max(node.ratio, 1 / node.ratio) - 1
    shade = sum(change > step for step in _STEPS)
    return f"{'worse' if node.ratio > 1 else 'better'}-{shade}" if shade else "module"


def _sign(node: TimeNode) -> str:
    """Return the sign of a change that has a colour, with its size: `▲ +12 %`; empty for any other."""
    hue = _hue(node)
    if not hue.startswith(("worse", "better")):
        return ""
    mark = _WORSE if hue.startswith("worse") else _BETTER
    return f"{mark} {node.change}" if node.ratio is None else f"{mark} {100 * (node.ratio - 1):+.0f} %"


def _change(node: TimeNode) -> str:
    if node.ratio is None or node.before_ms is None:
        return f"change {node.change}" if node.change == "unknown" else node.change
    return f"{node.change} (before {in_ms(node.before_ms)})"


def _legend(tree: TimeNode, frames: Sequence[Frame]) -> Iterator[tuple[str, str]]:
    hues = {frame.hue for frame in frames}
    if tree.before_ms is None:
        categories = [(hue, name) for name in CATEGORIES if (hue := _category_hue(name)) in hues]
        yield from categories
    else:
        yield from (entry for entry in _CHANGES if entry[0] in hues)
    if any(frame.is_hatched for frame in frames):
        yield "hatched", "portable"


def _category_hue(category: str) -> str:
    """Return the hue that a stacked bar has for a category; that of one that no longer exists is Other's."""
    if category == REST:
        return "rest"
    return f"hue-{CATEGORIES.index(category if category in CATEGORIES else OTHER)}"
