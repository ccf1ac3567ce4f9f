"""What `etfarm compare` prints for people."""

from collections.abc import Iterator

from flows.cli.output import as_text
from tasks.judge.compare.outcome import Line, Outcome, figures

_SERIES = ("model", "device", "precision", "variant", "threads")


def page(outcome: Outcome) -> Iterator[str]:
    """Yield the answer, what A and B are, the pairs as a table, and below it what was not compared."""
    yield f"{outcome.headline}\n\nA: {outcome.a}\nB: {outcome.b}\n\n"
    columns = {name: [getattr(line, name) for line in outcome.ordered()] for name in _SERIES}
    lines = outcome.ordered()
    columns |= {
        "sessions": [f"{line.a.sessions} + {line.b.sessions}" for line in lines],
        "A ms": [_rounded(line, "time_a_ms") for line in lines],
        "B ms": [_rounded(line, "time_b_ms") for line in lines],
        "B against A": [line.answer for line in lines],
    }
    optional = {"cause": "cause", ".pte": "size", "memory": "memory", "what differs": "differs"}
    values = {title: [getattr(line, name) for line in lines] for title, name in optional.items()}
    columns |= {title: each for title, each in values.items() if any(each)}
    yield from as_text(list(columns), [list(zip(*columns.values(), strict=True))], "table")
    yield "\n"
    for word, line in outcome.only:
        yield f"{word}: {line.series} ({line.a.sessions + line.b.sessions} sessions){_older(word, line)}\n"
    for remark in (*outcome.also, *outcome.remarks):
        yield f"{remark}\n"


def _older(word: str, line: Line) -> str:
    """Why an older cell is not compared."""
    return f", cell {line.a.cell or line.b.cell}; a newer cell is compared" if word.startswith("older") else ""


def _rounded(line: Line, name: str) -> float | None:
    value = figures(line)[name]
    return None if value is None else round(value, 4)
