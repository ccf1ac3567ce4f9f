"""What to do about errors of torch, executorch and a user's code during an export: refusals.csv."""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FAILS_IN_EAGER = "the model fails in eager PyTorch with these inputs"
"""Note of an error of a model that is called before it is exported."""
_OPERATOR = re.compile(r"\baten(?:\.|::)(\w+)")


@dataclass(frozen=True)
class Refusal:
    """An error that is known, with the way on. `{0}` in its texts is the first group of the pattern, and so on."""

    name: str
    pattern: re.Pattern[str]
    """Found in `Class: text` of the error, or in that of an error that caused it."""
    cause: str
    """`{line}` is the first line of the error."""
    remedy: str
    issue: str
    """The public issue that explains it, such as pytorch/executorch#5176; empty if there is none."""


# The more specific entry comes first. The texts are those of torch 2.13.0 and executorch 1.5.1.
with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as _stream:
    TABLE: tuple[Refusal, ...] = tuple(
        Refusal(row["name"], re.compile(row["pattern"], re.DOTALL), row["cause"], row["remedy"], row["issue"])
        for row in csv.DictReader(_stream)
    )


def find_refusal(error: BaseException, first_line: str) -> str | None:
    """Return `cause; remedy (issue)` of a known error; None for another one."""
    causes: list[BaseException] = [error]
    while causes[-1].__cause__:
        causes.append(causes[-1].__cause__)
    notes = getattr(error, "__notes__", ())
    text = "\n".join([*(f"{type(each).__name__}: {each}" for each in causes), *notes])
    for each in TABLE:
        if match := each.pattern.search(text):
            sentence = f"{each.cause}; {each.remedy}".format(*map(_shorten, match.groups()), line=first_line)
            sentence = sentence.replace(" ()", "").rstrip(": ")
            return f"{sentence} ({each.issue})" if each.issue else sentence
    if FAILS_IN_EAGER in notes:
        return f"{first_line}; {FAILS_IN_EAGER}: correct the model or the inputs"
    return None


def _shorten(group: str | None) -> str:
    """Return the text of a group on one line, `x.shape[1]` for `L['x'].size()[1]`, and operators without torch._ops."""
    line = re.sub(r"\s*\n\s*", ", ", (group or "").removeprefix("torch._ops."))
    return re.sub(r"L\['(\w+)'\]\.size\(\)", r"\1.shape", line)


def note_operator_source(error: Exception, graphs: Iterable[Any]) -> None:
    """Add to an error the stack of the first operator of traced graphs that its text names, for `explain_error`."""
    named = {name.lstrip("_") for name in _OPERATOR.findall(str(error))}
    for graph in graphs:
        for node in graph.nodes:
            word = str(node.target).removeprefix("aten.").partition(".")[0].lstrip("_")
            # A decomposed operator may have a longer name: linalg_inv_ex of linalg_inv.
            if node.op == "call_function" and any(name == word or name.startswith(f"{word}_") for name in named):
                error.add_note(node.meta.get("stack_trace") or "")
                return
