"""The part of the report's section on latency that is about language models: prefill and decoding."""

from dataclasses import dataclass
from typing import Annotated

from tasks.analyse.report.cells import CellRow
from tasks.analyse.report.columns import Milliseconds, Number, table_of
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Heading, Paragraph
from tasks.analyse.report.text import ms_digits


@dataclass(frozen=True)
class GenerationRow(CellRow):
    """A prefill beside the decoding after it; `cell` is that of the prefill, or of a decoding without one."""

    query = "generation"
    prefill_tokens: Annotated[int | None, Number("Prompt", "tokens")]
    time_to_first_token_ms: Annotated[
        float | None, Milliseconds("First token", "time to first token: median of the session medians of the prefill")
    ]
    prefill_tokens_per_s: Annotated[
        float | None, Number("Prefill", "tokens/s", "tokens of the prompt read per second", digits=1)
    ]
    kv_depth: Annotated[int | None, Number("KV depth", "tokens", "tokens in the cache before each decoding run")]
    decode_ms: Annotated[
        float | None, Milliseconds("Decoding run", "median of the session medians of one decoding run")
    ]
    decode_tokens_per_s: Annotated[
        float | None, Number("Decoding", "tokens/s", "new tokens per second at that depth", digits=1)
    ]
    prefill_sessions: Annotated[int | None, Number("Sessions of prefill")]
    decode_sessions: Annotated[int | None, Number("Sessions of decoding")]


def generation(answers: Answers) -> list[Block]:
    """Prefill and decoding of each language model; nothing without one."""
    rows = answers.rows(GenerationRow)
    if not rows:
        return []
    digits = ms_digits(ms for row in rows for ms in (row.time_to_first_token_ms, row.decode_ms))
    return [
        Heading("Prefill and decoding"),
        Paragraph(
            "The prefill reads the complete prompt in one run; a decoding run adds to a cache of fixed depth. "
            "Numbers of tokens are fixed, so a text cannot end early. Loading, tokenizing and sampling are left out."
        ),
        table_of(rows, digits=digits),
    ]
