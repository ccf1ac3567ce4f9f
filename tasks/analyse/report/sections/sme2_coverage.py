"""How much of the work that SME2 could do ran on it, and which operators did not use it."""

from collections.abc import Iterator
from dataclasses import dataclass

from tasks.analyse.report.cells import CellNames, CellRow
from tasks.analyse.report.data import Answers, Row
from tasks.analyse.report.page import Block, Cell, Code, Column, Heading, Paragraph, Points, Table, Text
from tasks.analyse.report.text import calls, code, number, percent

_COVERAGE_COLUMNS = (
    Column("Eligible", "calls per run", True),
    Column("On SME", "calls per run", True, "according to the operator names, SME2 or SME1"),
    Column("Share by name", "% of time", True, "on SME2 or SME1; a lower bound while names leave calls undecided"),
    Column("Proven SME2", "% of time", True, "by kernels; a dash where it is not proven"),
    Column("SME2", "calls per run", True, "by kernels; a dash where it is not proven, as for SME1"),
    Column("SME1", "calls per run", True, "SME without SME2"),
    Column("Evidence", meaning="the weakest among the operators: executed or selected kernels, names alone, or none"),
    Column("SME2 kernels", "% of samples", True, "share of all samples, taken in separate sessions"),
    Column("Samples", "", True),
)
_LEFT_OUT_COLUMNS = (
    Column("Model"),
    Column("Precision"),
    Column("Operator"),
    Column("Calls", "per run", True),
    Column("Share", "%", True, "of the time of all operators that SME2 could run, on the device where it is largest"),
    Column("Likely reason (inference)", wraps=True),
)


@dataclass(frozen=True)
class CoverageRow(CellRow):
    """How much of what SME2 could run did run on it in one cell; an emulated device has calls, no times."""

    query = "sme2_coverage"
    eligible_calls: float
    sme_calls: float
    name_share: float | None
    proven_share: float | None
    sme2_calls: float | None
    sme1_calls: float | None
    evidence: str
    executed_samples: int | None
    executed_sme2_samples: int | None


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
    model: str
    precision: str
    operator: str
    calls_per_run: float
    share: float | None
    likely_reason: str


def coverage(answers: Answers) -> Iterator[Block]:
    """Coverage by cell, what the names of fp16 models show, and the operators that did not use SME2."""
    if rows := answers.rows(CoverageRow):
        names = CellNames(rows)
        yield Heading("How much ran on SME2")
        yield Paragraph(
            "Share of the eligible work (matrix products and convolutions other than depthwise) that ran on SME, by "
            "variant. A runner with SME2 support does not prove that a model uses SME2."
        )
        yield Table([*names.columns(), *_COVERAGE_COLUMNS], [[*names.cells(row), *_covered(row)] for row in rows])
        if fp16 := answers.rows(Fp16Row):
            yield Points([_plain_fp16(row) for row in fp16])
    if left_out := answers.rows(LeftOutRow):
        yield Heading("Eligible operators that did not run on SME")
        yield Table(_LEFT_OUT_COLUMNS, [_left_out(row) for row in left_out])


def _covered(row: CoverageRow) -> list[Cell]:
    samples = row.executed_samples
    share = (row.executed_sme2_samples or 0) / samples if samples and not row.emulated else None
    return [
        calls(row.eligible_calls),
        calls(row.sme_calls),
        percent(row.name_share),
        percent(row.proven_share),
        calls(row.sme2_calls),
        calls(row.sme1_calls),
        Cell(row.evidence, tone="flag" if row.evidence == "not proven" else ""),
        percent(share),
        number(samples, 0),
    ]


def _plain_fp16(row: Fp16Row) -> Text:
    known = f" {row.convolution_calls:.0f} of these are convolutions in the model." if row.convolution_calls else ""
    return (
        f"{row.plain_calls:.0f} of {row.calls:.0f} Fully Connected calls of ",
        Code(row.model),
        f" stay F16 in fp16 with SME2 on.{known}",
    )


def _left_out(row: LeftOutRow) -> list[Cell]:
    return [
        code(row.model),
        Cell(row.precision),
        code(row.operator),
        calls(row.calls_per_run),
        percent(row.share, bar=True),
        Cell(row.likely_reason),
    ]
