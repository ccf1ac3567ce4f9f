"""Where the memory goes: its owners by cell and moment, and what the programs plan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tasks.results.cells import Case, CellRow
from tasks.results.reader import Reader
from tasks.results.table import MB, Name, Number, Row, Words
from tasks.results.text import Code, Text, counted, joined

UNATTRIBUTED = "unattributed"
OWNERS = (
    "start-up and libraries", "program file", "planned arenas", "constants", "packed weights", "first run", "temporary",
    UNATTRIBUTED,
)  # fmt: skip
"""Until the first run, as in the view memory_use; the last one is the rest. RECORDING is another one at the end."""
LAST_MOMENT, RECORDING = "end", "recording"
_MAX_OWNERS = 3


@dataclass(frozen=True)
class MemoryRow(CellRow):
    """The bytes of one owner in a cell at one moment; those of a moment add up to `total_bytes`."""

    query = "memory"
    moment: Annotated[str, Words("Moment")]
    sessions: Annotated[int, Number("Sessions")]
    total_bytes: Annotated[int, Number("Total", "MB", digits=1, scale=1 / MB)]
    owner: str
    bytes: int
    planned_bytes: int | None
    delegate_bytes: int | None


@dataclass(frozen=True)
class PlanRow(Row):
    """The planned memory of an exported model, and the largest buffer of its largest live set."""

    query = "memory_plans"
    model: Annotated[str, Case("Model")]
    precision: Annotated[str, Words("Precision")]
    planned_bytes: Annotated[int, Number("Planned", "MB", "arenas of the method", digits=2, scale=1 / MB)]
    live_bytes: Annotated[
        int, Number("Alive", "MB", "buffers that are alive at once, where these are largest", digits=2, scale=1 / MB)
    ]
    needed_bytes: Annotated[
        int | None,
        Number(
            "At these shapes",
            "MB",
            "what is alive at once at the measured shapes; arenas are planned for the largest",
            digits=2,
            scale=1 / MB,
            only_with="needed_bytes",
        ),
    ]
    constant_bytes: Annotated[
        int, Number("Constants", "MB", "constants and initial state in the program", digits=2, scale=1 / MB)
    ]
    delegate_bytes: Annotated[
        int, Number("For delegates", "MB", "weights and graphs in the program and its files", digits=2, scale=1 / MB)
    ]
    producer: Annotated[str | None, Name("Largest buffer", meaning="what writes it")]
    last_user: Annotated[str | None, Name("Last user")]
    bytes: Annotated[int | None, Number("Its size", "MB", digits=2, scale=1 / MB)]
    life_share: Annotated[float | None, Number("Its life", "%", "part of the instructions", digits=0, scale=100)]


@dataclass(frozen=True)
class LongBufferRow(Row):
    """A planned buffer that lives over most of the graph of a model."""

    query = "long_buffers"
    model: str
    precision: str
    bytes: int
    producer: str
    last_user: str
    first_instruction: int
    last_instruction: int
    instructions: int
    life_share: float
    live_bytes: int


def weights_twice(cell: Sequence[MemoryRow]) -> str | None:
    """Return when the weights of a cell are in memory twice, packed and as the program has them; None if never.

    That is after the load if more than half of them are resident pages of the program, and until then if the peak
    exceeds what the load left by more than half of them, and part of that was freed again.
    """
    sizes = {(row.moment, row.owner): row.bytes for row in cell}
    totals = {row.moment: row.total_bytes for row in cell}
    half = (cell[0].delegate_bytes or 0) / 2
    if not half or sizes.get(("first run", "packed weights"), 0) < half:
        return None
    if sizes.get(("first run", "program file"), 0) > half:
        return "after the load"
    grows = totals.get("peak", 0) - totals.get("load", 0)
    return "while the model loads" if grows > half and ("peak", "temporary") in sizes else None


def memory_in_words(rows: Sequence[MemoryRow]) -> Iterator[Text]:
    """Yield the model with the largest peak and its largest owner."""
    peaks = [row for row in rows if row.moment == "peak"]
    if not peaks:
        return
    largest = max(peaks, key=lambda row: (row.total_bytes, row.bytes))
    owner = max((row for row in peaks if row.cell == largest.cell), key=lambda row: row.bytes)
    yield joined(
        f"Memory: the largest peak is {largest.total_bytes / 1e6:.1f} MB, of ",
        Code(largest.model),
        f" {largest.precision} on {largest.device} ({counted(largest.sessions, 'session')}); "
        f"{owner.bytes / 1e6:.1f} MB of it are {owner.owner}.",
    )


def read_owner_changes(reader: Reader, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return for each pair of cells (A, B) which owners of the peak changed, the largest change first.

    Such as `packed weights 14.0 MB -> 28.0 MB`; empty if the owners of a cell are unknown, or if none changed by 1 % of
    the peak.
    """
    changes: list[list[str]] = [[] for _ in pairs]
    if pairs:
        cells_a, cells_b = zip(*pairs, strict=True)
        for pair, owner, a, b in reader.tuples("memory_difference", cells_a=list(cells_a), cells_b=list(cells_b)):
            changes[pair].append(f"{owner} {a / 1e6:.1f} MB -> {b / 1e6:.1f} MB")
    return [", ".join(each[:_MAX_OWNERS]) for each in changes]
