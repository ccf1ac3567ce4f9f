"""Sessions without a result, and why."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tasks.results.addresses import session_page
from tasks.results.cells import Device
from tasks.results.reader import Answers
from tasks.results.sessions import AttemptRow
from tasks.results.table import Cell, Name, Number, Row, Words, cells_of
from tasks.results.text import Code, CodeLink, Text, counted, joined, separated

MOST_REASONS = 3
MOST_REASONS_NAMED = 3


@dataclass(frozen=True)
class FailureRow(AttemptRow):
    """A session that failed or is invalid; `superseded` if a later attempt succeeded."""

    query = "failures"
    device: str
    status: str
    reason_code: str | None
    reason: str | None
    log_tail: str | None
    superseded: bool


def failures_sentence(answers: Answers) -> Iterator[Text]:
    """Which sessions have no result, in one sentence for the summary; nothing if all have one."""
    standing, _ = by_outcome(answers)
    kinds = sorted({(row.reason_code or "unknown reason", row.device) for row in standing})
    if kinds:
        named: list[Text] = [(f"{device} (", Code(reason_code), ")") for reason_code, device in kinds]
        count = counted(len(standing), "session")
        yield joined(f"No result for {count}: ", separated(named, most=MOST_REASONS_NAMED), ".")
    if answers.not_loaded:
        yield f"{bundles_in_words(answers.not_loaded)} could not be loaded."


def failures_in_words(answers: Answers) -> list[Text]:
    """Which sessions have no result, and the reasons that were recorded; empty if all have one."""
    standing, _ = by_outcome(answers)
    # A reason often starts with the name of the device, which keeps its spelling.
    reasons = dict.fromkeys(row.reason.rstrip(".") for row in standing if row.reason)
    named: list[Text] = list(reasons)
    recorded = [joined("Reason: ", separated(named, "; ", most=MOST_REASONS), ".")] if named else []
    return [*failures_sentence(answers), *recorded]


def by_outcome(answers: Answers) -> tuple[list[FailureRow], list[FailureRow]]:
    """Sessions without a result, and attempts that a later one replaced."""
    rows = answers.rows(FailureRow)
    return [row for row in rows if not row.superseded], [row for row in rows if row.superseded]


def bundles_in_words(reasons: Sequence[str]) -> str:
    return counted(len(reasons), "bundle").capitalize()


@dataclass(frozen=True)
class NightFailureRow(Row):
    """What failed or was invalid on a device for one reason."""

    query = "failure_reasons"
    naming = ("device",)
    device: Annotated[str, Device("Device")]
    without_times: str | None
    status: Annotated[str, Words("Result")]
    reason_code: Annotated[str, Name("Reason")]
    reason: Annotated[str | None, Words("For example", wraps=True)]
    sessions: Annotated[int, Number("Sessions")]
    session_id: str

    @cells_of("reason")
    def _reason_cell(self, cell: Cell) -> Cell:
        return Cell((self.reason or "", " ", CodeLink(self.session_id, session_page(self.session_id))))
