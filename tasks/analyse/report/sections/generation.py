"""The part of the report's section on latency that is about language models: prefill and decoding."""

from dataclasses import dataclass

from tasks.analyse.report.cells import CellNames, CellRow
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Cell, Column, Heading, Paragraph, Table
from tasks.analyse.report.text import ms_digits, number

_COLUMNS = (
    Column("Prompt", "tokens", True),
    Column("First token", "ms", True, "time to first token: median of the session medians of the prefill"),
    Column("Prefill", "tokens/s", True, "tokens of the prompt read per second"),
    Column("KV depth", "tokens", True, "tokens in the cache before each decoding run"),
    Column("Decoding run", "ms", True, "median of the session medians of one decoding run"),
    Column("Decoding", "tokens/s", True, "new tokens per second at that depth"),
    Column("Sessions of prefill", "", True),
    Column("Sessions of decoding", "", True),
)


@dataclass(frozen=True)
class GenerationRow(CellRow):
    """A prefill beside the decoding after it; `cell` is that of the prefill, or of a decoding without one."""

    query = "generation"
    prefill_tokens: int | None
    time_to_first_token_ms: float | None
    prefill_tokens_per_s: float | None
    prefill_sessions: int | None
    kv_depth: int | None
    decode_ms: float | None
    decode_tokens_per_s: float | None
    decode_sessions: int | None


def generation(answers: Answers) -> list[Block]:
    """Prefill and decoding of each language model; nothing without one."""
    rows = answers.rows(GenerationRow)
    if not rows:
        return []
    names = CellNames(rows)
    digits = ms_digits(ms for row in rows for ms in (row.time_to_first_token_ms, row.decode_ms))
    return [
        Heading("Prefill and decoding"),
        Paragraph(
            "The prefill reads the complete prompt in one run; a decoding run adds to a cache of fixed depth. "
            "Numbers of tokens are fixed, so a text cannot end early. Loading, tokenizing and sampling are left out."
        ),
        Table([*names.columns(), *_COLUMNS], [[*names.cells(row), *_cells(row, digits)] for row in rows]),
    ]


def _cells(row: GenerationRow, digits: int) -> list[Cell]:
    return [
        number(row.prefill_tokens, 0),
        number(row.time_to_first_token_ms, digits),
        number(row.prefill_tokens_per_s, 1),
        number(row.kv_depth, 0),
        number(row.decode_ms, digits),
        number(row.decode_tokens_per_s, 1),
        number(row.prefill_sessions, 0),
        number(row.decode_sessions, 0),
    ]
