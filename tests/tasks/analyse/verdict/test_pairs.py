"""Which cells of two arms are compared, what differs between them, and which pairs are regressions."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from devices.errors import InputError
from tasks.analyse.verdict.pairs import Cell, compare_cells, differing, match_cells

TOY = Cell(
    cell="c1",
    sweep_id="smoke-2026-11-01",
    device="host",
    transport="local",
    emulated=False,
    model="toy",
    precision="fp32",
    variant="sme2_off",
    threads=1,
    executions=55,
    warmup_executions=5,
    seed=0,
    pte_sha256="p1",
    runner_sha256="r1",
    executorch_version="1.5.1",
    serial=None,
    build="b1",
    os_version="15",
    platform="linux-aarch64",
    device_model="board",
    soc=None,
    sme2=True,
    last_started_at=datetime(2026, 11, 1, 1),
    session_ids=("s1",),
    medians_ms=(10.0, 10.1, 10.2, 9.9, 9.8),
)
NEXT = replace(TOY, cell="c2", session_ids=("s2",), last_started_at=datetime(2026, 11, 2, 1))
SERIES: dict[str, Any] = {"device": "phone", "model": "other", "precision": "fp16", "variant": "sme2_on", "threads": 2}


@pytest.mark.parametrize("kind", SERIES)
def test_nights_share_everything_of_a_series_and_other_arms_everything_but_their_kind(kind: str) -> None:
    # given two cells that differ in one field of the series
    other = replace(NEXT, **{kind: SERIES[kind]})
    # then they match if that is what is compared, and are listed on their sides if nights are
    assert match_cells([TOY], [other], kind).pairs == [(TOY, other)]
    nights = match_cells([TOY], [other], "night")
    assert (nights.pairs, nights.only_a, nights.only_b) == ([], [TOY], [other])


def test_versions_and_files_do_not_keep_cells_of_two_nights_apart() -> None:
    other = replace(NEXT, pte_sha256="p2", runner_sha256="r2", executorch_version="1.6.0", build="b2", executions=20)
    assert match_cells([TOY], [other], "night").pairs == [(TOY, other)]


@pytest.mark.parametrize("kind", ["cell", "session"])
def test_two_cells_are_compared_whatever_they_are(kind: str) -> None:
    other = replace(NEXT, **SERIES)
    assert match_cells([TOY], [other], kind).pairs == [(TOY, other)]


def test_of_several_cells_of_a_series_the_one_measured_last_counts_and_the_others_are_listed() -> None:
    # given a model that was changed between two starts of the second sweep
    changed = replace(NEXT, cell="c3", session_ids=("s3",), last_started_at=datetime(2026, 11, 2, 2), pte_sha256="p2")
    for cells in ([NEXT, changed], [changed, NEXT]):
        matched = match_cells([TOY], cells, "night")
        assert (matched.pairs, matched.older_b) == ([(TOY, changed)], [NEXT])


def test_arms_that_share_a_session_are_refused() -> None:
    with pytest.raises(InputError, match="A and B share 1 session; compare two without a common session"):
        match_cells([TOY], [TOY], "night")


def test_what_differs_is_named_in_few_words() -> None:
    upgraded = replace(NEXT, executorch_version="1.6.0", pte_sha256="p2", runner_sha256="r2", build=None)
    assert differing(TOY, upgraded) == ["executorch 1.5.1 -> 1.6.0", "pte", "runner", "build"]
    assert differing(TOY, replace(TOY, executions=20, seed=None)) == ["seed 0 -> unknown", "executions 55 -> 20"]
    assert differing(TOY, NEXT) == []


def test_what_two_models_or_two_devices_never_share_is_no_difference() -> None:
    assert differing(TOY, replace(NEXT, model="other", pte_sha256="p2")) == []
    assert differing(TOY, replace(NEXT, device="phone", serial="1", platform="android-arm64", soc="s")) == ["SoC"]


@pytest.mark.parametrize(
    ("factor", "spread", "answer", "is_regression"),
    [
        (1.10, 1, "different", True),
        (0.90, 1, "different", False),
        (1.001, 0.1, "same", False),
        (1.011, 0.01, "different", True),
        (1.02, 2, "unknown", False),
    ],
)
def test_a_regression_is_slower_by_more_than_the_margin_with_the_interval_above_1(
    factor: float, spread: float, answer: str, is_regression: bool
) -> None:
    # given five sessions around 10 ms, and five that take `factor` times as long
    quiet = replace(TOY, medians_ms=[10 + spread * step / 10 for step in range(-2, 3)])
    other = replace(NEXT, medians_ms=[factor * ms for ms in quiet.medians_ms])
    pair = compare_cells(quiet, other, 0.01)
    assert pair.result is not None
    assert (pair.result.answer, pair.is_regression(0.01)) == (answer, is_regression)


@pytest.mark.parametrize(("a", "b"), [(True, False), (False, True)])
def test_an_emulated_device_is_never_compared_by_time(a: bool, b: bool) -> None:
    pair = compare_cells(replace(TOY, emulated=a), replace(NEXT, emulated=b), 0.01)
    assert (pair.result, pair.is_regression(0.01)) == (None, False)
