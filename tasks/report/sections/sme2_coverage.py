"""How much of the work that SME2 could do ran on it, and which operators did not use it."""

from collections.abc import Iterator
from dataclasses import dataclass

from tasks.report.cells import CellNames, NamedRow
from tasks.report.data import Answers, Row
from tasks.report.page import Block, Cell, Code, Column, Heading, Paragraph, Points, Table, Text
from tasks.report.text import calls, code, number, percent

_COVERAGE_COLUMNS = (
    Column("Eligible", "calls per run", True),
    Column("On SME2", "calls per run", True, "according to the operator names"),
    Column("Share by name", "% of time", True, "a lower bound while names leave calls undecided"),
    Column(
        "Share proven", "% of time", True, "with executed kernels for the calls that names leave undecided; else a dash"
    ),
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
class CoverageRow(NamedRow):
    """How much of what SME2 could run did run on it in one cell with SME2; an emulated device has calls, no times."""

    query = "sme2_coverage"
    cell: str
    eligible_calls: float
    sme2_calls: float
    name_share: float | None
    proven_share: float | None
    executed_samples: int | None
    executed_sme2_samples: int | None


@dataclass(frozen=True)
class Fp16Row(Row):
    """An fp16 model with Fully Connected calls that stay plain F16 though SME2 is on."""

    query = "sme2_fp16"
    model: str
    calls: float
    plain_calls: float


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
            "Share of the eligible work (matrix products and convolutions other than depthwise) that ran on SME2 when "
            "SME2 was on. A runner with SME2 support does not prove that a model uses SME2."
        )
        yield Table([*names.columns(), *_COVERAGE_COLUMNS], [[*names.cells(row), *_covered(row)] for row in rows])
        if fp16 := answers.rows(Fp16Row):
            yield Points([_plain_fp16(row) for row in fp16])
    if left_out := answers.rows(LeftOutRow):
        yield Heading("Eligible operators that did not run on SME2")
        yield Table(_LEFT_OUT_COLUMNS, [_left_out(row) for row in left_out])


def _covered(row: CoverageRow) -> list[Cell]:
    samples = row.executed_samples
    share = (row.executed_sme2_samples or 0) / samples if samples and not row.emulated else None
    return [
        calls(row.eligible_calls),
        calls(row.sme2_calls),
        percent(row.name_share),
        percent(row.proven_share),
        percent(share),
        number(samples, 0),
    ]


def _plain_fp16(row: Fp16Row) -> Text:
    """A 1x1 convolution runs as Fully Connected and does not use SME2 in fp16."""
    return (
        f"{row.plain_calls:.0f} of {row.calls:.0f} Fully Connected calls of ",
        Code(row.model),
        " stay F16 in fp16 with SME2 on. These are its 1x1 convolutions, which XNNPACK runs as Fully Connected and "
        "without SME2 in fp16 (inference: the names show F16, not the shape).",
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
