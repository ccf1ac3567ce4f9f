"""Files with the answer of a comparison: `.md` for a pull request, `.json`, `.xml` (JUnit) for CI, `.svg`, a badge."""

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from devices.foreign_text import plain_line
from flows.cli.formats import as_text, check_output, output_file
from tasks.judge.compare.outcome import Line, Outcome, figures, time_text
from tasks.pages.explanation import markdown_points
from tasks.pages.markdown import escaped, inline
from tasks.results.text import with_code

_SERIES = ("model", "device", "precision", "variant", "threads")
_FIGURES = (
    "sessions_a", "sessions_b", "time_a_ms", "time_b_ms", "ratio", "low", "high", "more_sessions", "superiority",
)  # fmt: skip
_BESIDE = ("pte_bytes", "peak_memory_bytes", "accuracy", "cell", "sweep_id")
_DATA_COLUMNS = [
    *_SERIES,
    "emulated",
    *_FIGURES,
    "answer",
    "in_words",
    "nights_differ_by",
    "differs",
    "cause",
    *(f"{name.removesuffix('_id')}_{side}" for name in _BESIDE for side in "ab"),
    "note",
]
_MOST_CHANGED = 10
_MOST_OTHERS = 4
_MOST_REMARKS = 3
_COLOURS = {"slower": "#c62828", "inaccurate": "#c62828", "failed": "#c62828", "unknown": "#9f6f00"}


def check_outputs(files: Sequence[Path]) -> None:
    """Raise InputError for a file that no output can be written to: before anything is measured."""
    for file in files:
        check_output(file, _WRITERS)


def write_outputs(outcome: Outcome, files: Sequence[Path]) -> None:
    """Write a comparison to each file, in the format of its suffix."""
    for file in files:
        with output_file(file, _WRITERS) as stream:
            stream.write(_WRITERS[file.suffix](outcome).encode())


def data(outcome: Outcome, form: str) -> Iterator[str]:
    """Return a row per pair with every figure, then a row per cell without a counterpart and per older cell.

    `form` is `csv` or `json`.
    """
    rows = [_data_row(line, line.verdict) for line in outcome.lines]
    rows += [_data_row(line, word) for word, line in outcome.only]
    return as_text(_DATA_COLUMNS, [rows], form)


def _data_row(line: Line, answer: str | None) -> tuple[Any, ...]:
    found = figures(line)
    threads = int(line.threads) if line.threads.isdigit() else line.threads
    return (
        *(line.model, line.device, line.precision, line.variant, threads, line.emulated),
        *(found[name] for name in _FIGURES),
        *(answer, line.answer if line.result else None, line.nights_differ_by, line.differs or None, line.cause),
        *(getattr(side, name) for name in _BESIDE for side in (line.a, line.b)),
        line.result.note if line.result else None,
    )


def markdown(outcome: Outcome) -> str:
    """Return a comparison for a pull request: the answer and a table of what changed; the rest is folded.

    At most 60 lines, whatever was compared.
    """
    ordered = outcome.ordered()
    changed = [line for line in ordered if line.is_changed]
    others = [line for line in ordered if not line.is_changed]
    parts = [f"**{escaped(outcome.headline)}**"]
    if changed:
        parts.append(_table(changed, _MOST_CHANGED))
    parts += [_points(outcome.also, "other figures")] if outcome.also else []
    if outcome.explained:
        parts.append(_folded("What is known about the worst change", "\n".join(markdown_points(outcome.explained))))
    folded = [f"A: {escaped(outcome.a)}  \nB: {escaped(outcome.b)}"]
    if others:
        folded.append(_table(others, _MOST_OTHERS))
    remarks = [f"{word}: {line.series}" for word, line in outcome.only]
    remarks = [*outcome.remarks, *remarks]
    folded += [_points(remarks, "remarks")] if remarks else []
    summary = f"{len(others)} without a change, and how it was measured" if others else "How it was measured"
    parts.append(_folded(summary, "\n\n".join(folded)))
    return "\n\n".join(parts) + "\n"


def _folded(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"


def _points(sentences: Sequence[str], title: str) -> str:
    """Return the first of some sentences as a list, and how many are left out."""
    shown = [f"- {inline(with_code(sentence))}" for sentence in sentences[:_MOST_REMARKS]]
    hidden = len(sentences) - _MOST_REMARKS
    return "\n".join([*shown, *([f"- {hidden} more: {title}"] if hidden > 0 else [])])


def _table(lines: Sequence[Line], most: int) -> str:
    """Return a table of some lines; columns without a value are left out."""
    shown = lines[:most]
    columns: dict[str, list[str]] = {
        "Series": [_series(line) for line in shown],
        "A": [_time(line, "time_a_ms") for line in shown],
        "B": [_time(line, "time_b_ms") for line in shown],
        "B against A": [line.answer for line in shown],
        "Cause": [line.cause or "" for line in shown],
        "Size of .pte": [line.size for line in shown],
        "Peak memory": [line.memory for line in shown],
        "Changed": [line.differs for line in shown],
    }
    used = {title: values for title, values in columns.items() if any(values)}
    cells = ([inline(with_code(cell), in_table=True) for cell in row] for row in zip(*used.values(), strict=True))
    rows = [list(used), ["---"] * len(used), *cells]
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    hidden = len(lines) - most
    return f"{text}\n\n{hidden} more: `--output x.json` has all" if hidden > 0 else text


def _series(line: Line) -> str:
    return f"{line.model} {line.precision}, {line.variant}, {line.threads} thr., {line.device}"


def _time(line: Line, name: str) -> str:
    value = figures(line)[name]
    return "" if value is None else time_text(value)


def _json(outcome: Outcome) -> str:
    return "".join(data(outcome, "json"))


def _junit(outcome: Outcome) -> str:
    """A test for each series: slower and inaccurate ones fail, those that failed are errors, others may be skipped."""
    from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

    suite = TestSuite("etfarm compare")
    for line in outcome.ordered():
        name = f"{line.model} {line.precision} {line.variant} t{line.threads}"
        case = TestCase(plain_line(name), plain_line(line.device), (figures(line)["time_b_ms"] or 0) / 1000)
        message = plain_line("; ".join(filter(None, (line.answer, line.cause))))
        results: dict[str, Callable[[str], Skipped | Failure | Error]] = {"slower": Failure, "inaccurate": Failure}
        results["failed"] = Error
        results |= dict.fromkeys(("unknown", "emulated", "simulated"), Skipped)
        if line.word in results:
            case.result = [results[line.word](message)]
        case.system_out = message
        suite.add_testcase(case)
    xml = JUnitXml("etfarm")
    xml.add_testsuite(suite)
    stream = io.BytesIO()
    xml.write(stream, pretty=True)
    return stream.getvalue().decode()


def _badge(outcome: Outcome) -> str:
    """A badge: how many series are slower."""
    from anybadge import Badge

    words = [line.word for line in outcome.lines]
    worst = next((word for word in _COLOURS if word in words), "same")
    counts = (f"{words.count(word)} {title}" for word, title in _BADGE.items() if word in words)
    text = ", ".join(counts) or "no change"
    return str(Badge("etfarm", text, default_color=_COLOURS.get(worst, "#2e7d32")).badge_svg_text)


_BADGE = {"slower": "slower", "inaccurate": "inaccurate", "failed": "failed", "unknown": "cannot tell"}
_WRITERS: dict[str, Callable[[Outcome], str]] = {".md": markdown, ".json": _json, ".xml": _junit, ".svg": _badge}
