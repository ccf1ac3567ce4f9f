"""How much of the work that SME2 could do ran on it, and which operators did not use it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from tasks.pages.report.page import Block, Heading, Paragraph, Points
from tasks.results.cells import CellRow, conditions_of
from tasks.results.reader import Answers, Row
from tasks.results.table import Calls, Name, Number, Percent, Words, table_of
from tasks.results.text import Code, Text, in_percent


@dataclass(frozen=True)
class CoverageRow(CellRow):
    """How much of what SME2 could run did run on it in one cell; an emulated device has calls, no times."""

    query = "sme2_coverage"
    eligible_calls: Annotated[float, Calls("Eligible", unit="calls per run")]
    sme_calls: Annotated[float, Calls("On SME", "according to the operator names, SME2 or SME1", unit="calls per run")]
    name_share: Annotated[
        float | None,
        Percent("Share by name", "on SME2 or SME1; a lower bound while names leave calls undecided", unit="% of time"),
    ]
    proven_share: Annotated[
        float | None, Percent("Proven SME2", "by kernels; a dash where it is not proven", unit="% of time")
    ]
    sme2_calls: Annotated[
        float | None, Calls("SME2", "by kernels; a dash where it is not proven, as for SME1", unit="calls per run")
    ]
    sme1_calls: Annotated[float | None, Calls("SME1", "SME without SME2", unit="calls per run")]
    evidence: Annotated[
        str,
        Words(
            "Evidence",
            meaning="the weakest among the operators: executed or selected kernels, names alone, or none",
            tone=lambda evidence: "flag" if evidence == "not proven" else "",
        ),
    ]
    executed_sme2_share: Annotated[
        float | None, Percent("SME2 kernels", "share of all samples, taken in separate sessions", unit="% of samples")
    ]
    executed_samples: Annotated[int | None, Number("Samples")]


@dataclass(frozen=True)
class Fp16Row(Row):
    """An fp16 model with Fully Connected calls that stay plain F16 though SME2 is on."""

    query = "sme2_fp16"
    model: str
    calls: float
    plain_calls: float
    convolution_calls: float | None
    """Those of them that are convolutions in the model, if the export states it."""


@dataclass(frozen=True)
class LeftOutRow(Row):
    """An operator that SME2 could run and that did not use it."""

    query = "sme2_left_out"
    model: Annotated[str, Name("Model")]
    precision: Annotated[str, Words("Precision")]
    operator: Annotated[str, Name("Operator")]
    calls_per_run: Annotated[float, Calls("Calls")]
    share: Annotated[
        float | None,
        Percent(
            "Share",
            "of the time of all operators that SME2 could run, on the device where it is largest",
            bar=True,
        ),
    ]
    likely_reason: Annotated[str, Words("Likely reason (inference)", wraps=True)]


def coverage(answers: Answers) -> Iterator[Block]:
    """Coverage by cell, what the names of fp16 models show, and the operators that did not use SME2."""
    if rows := answers.rows(CoverageRow):
        yield Heading("How much ran on SME2")
        yield Paragraph(
            "Share of the eligible work (matrix products and convolutions other than depthwise) that ran on SME, by "
            "variant. A runner with SME2 support does not prove that a model uses SME2."
        )
        yield table_of(rows)
        if fp16 := answers.rows(Fp16Row):
            yield Points([_plain_fp16(row) for row in fp16])
    if left_out := answers.rows(LeftOutRow):
        yield Heading("Eligible operators that did not run on SME")
        yield table_of(left_out)


def coverage_in_words(answers: Answers) -> Iterator[Text]:
    """A line for each cell: how many of the eligible calls ran on SME, and what proves SME2."""
    for row in answers.rows(CoverageRow):
        of_time = "" if row.name_share is None else f", {in_percent(row.name_share)} of their time"
        calls = f"{row.sme_calls:g} of {row.eligible_calls:g} eligible calls per run on SME by their names{of_time}"
        proven = "not proven"
        if row.proven_share is not None:
            proven = f"{in_percent(row.proven_share)} of their time, proven by {row.evidence} kernels"
        yield f"{', '.join(conditions_of(row))}: {calls}; SME2: {proven}."


def _plain_fp16(row: Fp16Row) -> Text:
    known = f" {row.convolution_calls:.0f} of these are convolutions in the model." if row.convolution_calls else ""
    return (
        f"{row.plain_calls:.0f} of {row.calls:.0f} Fully Connected calls of ",
        Code(row.model),
        f" stay F16 in fp16 with SME2 on.{known}",
    )
