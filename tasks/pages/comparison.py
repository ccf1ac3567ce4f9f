"""A comparison or a night on the terminal, as CSV, JSON, Markdown, JUnit XML or badge, and in Prefect's UI."""

import io
import json
from collections.abc import Callable, Iterator, Sequence

from devices.untrusted import sanitize_line
from tasks.bundle.variant_word import variant_word
from tasks.pages.comment import bullets, change_table, first_line, folded, folded_rest
from tasks.pages.explanation import markdown_points
from tasks.pages.markdown import escaped, inline, table_markdown
from tasks.pages.matrix import KEY, matrix
from tasks.pages.rows import as_text
from tasks.results.changes import (
    FAIL,
    INCOMPLETE,
    PASS,
    Comparison,
    SeriesChange,
    answer_text,
    change_columns,
    is_changed,
    mean_of_changes,
    worst_first,
)
from tasks.results.night import night_headline
from tasks.results.pair_json import PAIR_KEYS, write_pair
from tasks.results.table import NOTHING, Cell, Column, Table
from tasks.results.text import (
    interval_digits,
    numbered,
    sentence_digits,
    series_conditions,
    series_title,
    with_code,
    word_tone,
)
from tasks.results.verdicts import VerdictRow, latency_verdicts

_SERIES = ("model", "device", "precision", "variant", "threads")
_MAX_CHANGED = 10
_MAX_OTHERS = 4
_MAX_REMARKS = 3
_ALL = "`--output x.json` has all"
_COLORS = {"slower": "#c62828", "inaccurate": "#c62828", "failed": "#c62828", "unknown": "#9f6f00"}
_GATE_COLORS = {PASS: "#2e7d32", FAIL: "#c62828", INCOMPLETE: "#9f6f00"}
_BADGE = {"slower": "slower", "inaccurate": "inaccurate", "failed": "failed", "unknown": "inconclusive"}


def above_table(comparison: Comparison) -> Iterator[str]:
    """Yield what a terminal shows first: the answer, A and B, the geometric mean."""
    yield from (comparison.headline, "", f"A: {comparison.a}", f"B: {comparison.b}")
    mean = mean_of_changes(comparison.changes)
    yield from (str(mean), "") if mean else ("",)


def changes_table(comparison: Comparison) -> Table:
    """Return the changes as a table of the terminal; a time has the digits that the interval of the change allows."""
    changes = worst_first(comparison.changes)
    cells: dict[Column, list[Cell]] = {
        Column(name, priority=1): [Cell(str(getattr(row, name))) for row in changes] for name in _SERIES
    }
    cells |= {
        Column("variant", priority=1): [Cell(variant_word(row.variant)) for row in changes],
        Column("sessions"): [Cell(_sessions_text(row)) for row in changes],
        Column("A", "ms", numeric=True, priority=2): [_time_cells(row)[0] for row in changes],
        Column("B", "ms", numeric=True, priority=2): [_time_cells(row)[1] for row in changes],
    }
    for title, texts in change_columns(changes).items():
        if title == "B against A":
            tones = [word_tone(row.word) for row in changes]
            cells[Column(title, priority=3)] = [Cell(text, tone=tone) for text, tone in zip(texts, tones, strict=True)]
        elif title not in ("Series", *"AB"):
            cells[Column(title)] = [Cell(text) for text in texts]
    return Table([*cells], [*zip(*cells.values(), strict=True)])


def below_table(comparison: Comparison) -> Iterator[str]:
    """Yield what was not compared, and remarks."""
    for row in comparison.uncompared:
        is_older = row.word.startswith("older")
        why = f", cell {row.a.cell or row.b.cell}; a newer cell is compared" if is_older else ""
        sessions = (row.a.sessions or 0) + (row.b.sessions or 0)
        yield f"{row.word}: {series_title(row)} ({numbered(sessions, 'session')}){why}"
    yield from (*comparison.other_figures, *comparison.remarks)


def _sessions_text(change: SeriesChange) -> str:
    """Return `8 + 8`, or those of B alone where A is nights."""
    return str(change.b.sessions) if change.a.sessions is None else f"{change.a.sessions} + {change.b.sessions}"


def _time_cells(change: SeriesChange) -> tuple[Cell, Cell]:
    """Return the times of both sides with the digits that the interval of their ratio allows for the shorter one."""
    times_ms = (change.a.time_ms, change.b.time_ms)
    shortest_ms = min(filter(None, times_ms), default=0.0)
    digits = sentence_digits(shortest_ms)
    if change.low is not None and change.high is not None and change.ratio:
        digits = interval_digits((change.high - change.low) / 2 / change.ratio * shortest_ms, 4)
    a, b = (NOTHING if each is None else Cell(f"{each:.{digits}f}", sort=each) for each in times_ms)
    return a, b


def rows_text(comparison: Comparison, form: str) -> Iterator[str]:
    """Return `csv` or `json` with a row for each change, then each cell not compared; of a night its document."""
    if form == "json" and comparison.document is not None:
        return iter([json.dumps(comparison.document, indent=1) + "\n"])
    rows = [tuple(write_pair(change).values()) for change in (*comparison.changes, *comparison.uncompared)]
    return as_text(PAIR_KEYS, [rows], form)


def markdown(comparison: Comparison) -> str:
    """Return at most 60 lines for a pull request: the answer and a table of what changed; the rest is folded."""
    ordered = worst_first(comparison.changes)
    changed = [each for each in ordered if is_changed(each)]
    others = [each for each in ordered if not is_changed(each)]
    parts = [
        first_line(comparison, escaped),
        escaped(comparison.headline) if comparison.gate else "",
        change_table(changed, _MAX_CHANGED, _ALL, _in_table),
        bullets(comparison.other_figures, _MAX_REMARKS, "other figures", _inline_code),
    ]
    if comparison.explained:
        parts.append(folded("What is known about the worst change", "\n".join(markdown_points(comparison.explained))))
    remarks = [*comparison.remarks, *(f"{each.word}: {series_title(each)}" for each in comparison.uncompared)]
    rest = [
        f"A: {escaped(comparison.a)}  \nB: {escaped(comparison.b)}",
        change_table(others, _MAX_OTHERS, _ALL, _in_table),
        bullets(remarks, _MAX_REMARKS, "remarks", _inline_code),
    ]
    return "\n\n".join(filter(None, [*parts, folded_rest(len(others), rest)])) + "\n"


def _inline_code(text: str) -> str:
    return inline(with_code(text))


def _in_table(text: str) -> str:
    return inline(with_code(text), in_table=True)


def _junit(comparison: Comparison) -> str:
    """Return a test for each series; slower and inaccurate ones fail, unknown ones and those without times skip.

    The type of an error is its kind of failure.
    """
    from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

    results: dict[str, Callable[..., Skipped | Failure | Error]] = {
        "slower": Failure,
        "inaccurate": Failure,
    }
    results |= {"failed": Error, "unknown": Skipped, "emulated": Skipped, "simulated": Skipped}
    suite = TestSuite("etfarm compare")
    for change in worst_first(comparison.changes):
        name = ", ".join([f"{change.model} {change.precision}", *series_conditions(change)])
        case = TestCase(sanitize_line(name), sanitize_line(change.device), (change.b.time_ms or 0) / 1000)
        message = sanitize_line("; ".join(filter(None, (answer_text(change), change.cause))))
        if change.word in results:
            case.result = [results[change.word](message, change.failure_kind)]
        case.system_out = message
        suite.add_testcase(case)
    xml = JUnitXml(sanitize_line(f"etfarm: {comparison.gate.line}" if comparison.gate else "etfarm"))
    xml.add_testsuite(suite)
    stream = io.BytesIO()
    xml.write(stream, pretty=True)
    return stream.getvalue().decode()


def _badge(comparison: Comparison) -> str:
    """Return a badge as SVG: whether it passes, and how many series are slower, inaccurate, failed or unknown."""
    from anybadge import Badge

    words = [change.word for change in comparison.changes]
    worst = next((word for word in _COLORS if word in words), "same")
    counts = (f"{words.count(word)} {title}" for word, title in _BADGE.items() if word in words)
    gate = comparison.gate.word if comparison.gate else ""
    text = ": ".join(filter(None, (gate, ", ".join(counts) or "no change")))
    color = _GATE_COLORS.get(gate) or _COLORS.get(worst, _GATE_COLORS[PASS])
    return str(Badge("etfarm", text, default_color=color).badge_svg_text)


WRITERS: dict[str, Callable[[Comparison], str]] = {
    ".md": markdown,
    ".json": lambda comparison: "".join(rows_text(comparison, "json")),
    ".xml": _junit,
    ".svg": _badge,
}
"""Functions that return the content of a file, by its suffix."""


def verdict_row(verdict: VerdictRow) -> dict[str, str]:
    """Return a row of the table of verdicts in Prefect's UI; its events carry the same."""
    return {
        "verdict": verdict.verdict,
        "series": verdict.title,
        "figure": verdict.metric,
        "before": verdict.figure(verdict.baseline_value) or "",
        "after": verdict.figure(verdict.value) or "",
        "change": verdict.change,
        "since": str(verdict.since or ""),
        "incident": verdict.incident_id or "",
        "cause": verdict.cause or "",
        "changed": verdict.changed or "",
        "reason": verdict.reason,
    }


def night_markdown(verdicts: Sequence[VerdictRow], link: str | None) -> str:
    """Return the answer and the matrix of a night as Markdown for Prefect's UI; empty without a verdict on latency."""
    latency = latency_verdicts(verdicts)
    if not latency:
        return ""
    page = f"[The page of the night]({link})" if link else ""
    return "\n\n".join(filter(None, [escaped(night_headline(verdicts)), table_markdown(matrix(latency)), KEY, page]))
