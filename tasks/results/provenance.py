"""Where figures come from (provenance): runners, exported models, and what identifies a cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated

from tasks.results.addresses import sweep_page
from tasks.results.cells import Case, Night
from tasks.results.reader import Answers, Reader
from tasks.results.table import MB, Name, Number, Row, Words
from tasks.results.text import Code, CodeLink, Text

_HASH_DIGITS = 12


@dataclass(frozen=True)
class RunnerRow(Row):
    query = "runners"
    runner_sha256: Annotated[str, Name("Runner", meaning="SHA-256 of its bundle, first digits", first=_HASH_DIGITS)]
    source_sha256: Annotated[
        str | None, Name("Source", meaning="SHA-256 of its source, first digits", first=_HASH_DIGITS)
    ]
    platform: Annotated[str | None, Words("Platform")]
    kind: Annotated[str | None, Words("Kind")]
    runner_version: Annotated[str | None, Words("Version")]
    executorch_version: Annotated[str | None, Words("ExecuTorch")]
    compiler: Annotated[str | None, Words("Compiler", wraps=True)]
    used_for: Annotated[str, Words("Used for", wraps=True)]
    devices: Annotated[str, Words("Devices", wraps=True)]
    device_count: Annotated[int, Number("Devices")]
    sessions: Annotated[int, Number("Sessions")]
    first_night: Annotated[date | None, Night("First night")]
    last_night: Annotated[date | None, Night("Last night")]


ONLY_OF_ALL_SWEEPS = ("device_count", "first_night", "last_night")
ONLY_OF_A_SWEEP = ("devices", "used_for")


def read_runners(reader: Reader) -> list[RunnerRow]:
    """Return every runner of the farm; `Answers.rows(RunnerRow)` returns those of a sweep."""
    return reader.rows(RunnerRow, {"sweep_id": None})


@dataclass(frozen=True)
class ModelRow(Row):
    """An exported model and how many of its operators were delegated."""

    query = "exported_models"
    model: Annotated[str, Case("Model")]
    precision: Annotated[str, Words("Precision")]
    pte_sha256: Annotated[str, Name(".pte", meaning="SHA-256 of the exported file, first digits", first=_HASH_DIGITS)]
    pte_bytes: Annotated[int | None, Number("Size", "MB", digits=2, scale=1 / MB)]
    layer_count: Annotated[int | None, Number("Layers", "", "layers with weights")]
    converted_layers: Annotated[int | None, Number("Converted", "", "layers whose weights are not stored in fp32")]
    converted_share: Annotated[
        float | None, Number("Of the weights", "%", "share of converted weights", digits=1, scale=100)
    ]
    delegated: Annotated[int | None, Number("Delegated", "", "operators of the graph that were delegated")]
    portable: Annotated[int | None, Number("Portable")]
    seed: Annotated[int | None, Number("Seed")]
    executorch_version: Annotated[str | None, Words("ExecuTorch")]
    torch_version: Annotated[str | None, Words("torch")]
    transformers_version: Annotated[str | None, Words("transformers")]


@dataclass(frozen=True)
class OfCellRow(Row):
    """A row about a cell, or about a session of it."""

    cell: str
    sweep_id: str
    night: date | None
    device: str
    without_times: str | None
    model: str
    precision: str
    variant: str
    mode: str
    threads: int | None
    pte_sha256: str | None
    runner_sha256: str | None
    build: str | None


@dataclass(frozen=True)
class CellFactsRow(OfCellRow):
    """What identifies a cell; `content` and `content_pair` are ids that all modes of one content share."""

    query = "cells"
    pair: str
    content: str
    content_pair: str
    executorch_version: str | None
    source_commit: str | None


def describe_origin(row: CellFactsRow) -> list[Text]:
    """Return sweep, .pte file, runner, and build and commit of a cell, a sentence each."""
    return [
        ("Sweep ", CodeLink(row.sweep_id, sweep_page(row.sweep_id)), f", mode {row.mode}."),
        (".pte file ", Code(row.pte_sha256 or "none"), "."),
        ("Runner ", Code(row.runner_sha256 or "none"), f", ExecuTorch {row.executorch_version or 'unknown'}."),
        f"OS build {row.build or 'unknown'}, commit of the sweep file {row.source_commit or 'unknown'}.",
    ]


def limit_to_cells(answers: Answers, cells: Sequence[CellFactsRow]) -> Answers:
    """Return the answers about some cells of the sweep."""
    scope = {name: {getattr(row, name) for row in cells} for name in ("cell", "pair", "model", "device")}
    # Rows about outputs and kernels have the id of a content, which all its modes share.
    scope["cell"] |= {row.content for row in cells}
    scope["pair"] |= {row.content_pair for row in cells}
    return answers.limit_to(scope)
