"""A model that fails one way and runs another is one sentence with both."""

from datetime import date
from typing import Any

import pytest

from tasks.results.text import plain_text
from tasks.results.verdicts import VerdictRow, failed_series, with_contrasts
from tests.tasks.pages.rows import verdict

LOST = "8 of 8 sessions failed"


def failed(kind: str, signal: int | None = None, **values: Any) -> VerdictRow:
    named = {"failure_kind": kind, "failure_signal": signal, "failure_system": "linux", "reason": LOST}
    return verdict("failed", None, **named | values)


@pytest.mark.parametrize(
    ("fails", "runs", "sentence"),
    [
        (
            failed("model_crashed", 11, variant="sme2_on"),
            [{}],
            "crashes with SME2 on (SIGSEGV), runs with SME2 off (eight sessions)",
        ),
        (
            failed("model_crashed", 10, variant="sme2_on", failure_system="macos"),
            [{"variant": "sme1", "sessions": 3}, {}],
            "crashes with SME2 on (SIGBUS), runs with SME1 (three sessions) and SME2 off (eight sessions)",
        ),
        (
            failed("out_of_memory", model="toy@load=mmap"),
            [{}],
            "runs out of memory with load=mmap, runs by default (eight sessions)",
        ),
        # given the signal of the farm itself, which is no cause
        (
            failed("deadline_exceeded", 15, variant="sme2_on"),
            [{}],
            "exceeds its deadline with SME2 on, runs with SME2 off (eight sessions)",
        ),
        (
            failed("model_crashed", 11, model="toy@delegate=openvino"),
            [{}],
            "crashes with delegate=openvino (SIGSEGV), runs by default (eight sessions)",
        ),
        # given a series that also changed in another figure
        (
            failed("model_crashed", 11, variant="sme2_on"),
            [{}, {"metric": "load time"}],
            "crashes with SME2 on (SIGSEGV), runs with SME2 off (eight sessions)",
        ),
        (
            failed("export_failed", model="toy@tg64,export=1.3.1"),
            [{"model": "toy@tg64"}, {"model": "toy@pp16"}],
            "does not export with export=1.3.1, runs by default (eight sessions)",
        ),
        (
            failed("runner_failed"),
            [{"model": "toy@load=mmap,workspace=per_model"}],
            "fails by default, runs with load=mmap,workspace=per_model (eight sessions)",
        ),
        # given what says nothing about the model, or is another model, device, precision, number of threads or night
        (failed("device_lost", variant="sme2_on"), [{}], None),
        (failed("thermal", variant="sme2_on"), [{}], None),
        (failed("other", variant="sme2_on"), [{}], None),
        *(
            (failed("model_crashed", variant="sme2_on"), [{name: value}], None)
            for name, value in {
                **{"model": "other", "device": "phone", "precision": "fp16", "threads": 2},
                "night": date(2026, 11, 19),
            }.items()
        ),
        # or what fails with another variant and another option
        (failed("model_crashed", variant="sme2_on"), [{"model": "toy@load=mmap"}], None),
    ],
)
def test_what_fails_is_told_with_what_runs_if_only_the_variant_or_the_runtime_differs(
    fails: VerdictRow, runs: list[dict[str, Any]], sentence: str | None
) -> None:
    judged, *others = with_contrasts([fails, *(verdict("new", **each) for each in runs)])
    assert judged.contrast == sentence
    assert judged.reason == (f"{sentence}; {LOST}" if sentence else LOST)
    assert [each.contrast for each in others] == [None] * len(runs)


def test_series_of_several_thread_counts_that_fail_alike_are_one_line() -> None:
    rows = [failed("model_crashed", 4, variant="sme2_on", threads=threads) for threads in (1, 2)]
    runs = [verdict("no change", threads=threads) for threads in (1, 2)]
    ((names, reason),) = failed_series(with_contrasts([*rows, *runs]))
    assert plain_text(names) == "toy fp32 on host"
    assert reason.startswith("crashes with SME2 on (SIGILL), runs with SME2 off")
