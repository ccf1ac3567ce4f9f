"""Which cells of two arms are compared, what differs between them, and which pairs are regressions."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from devices.errors import InputError
from tasks.judge.pairs import Cell, compare_cells, differing, match_cells

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
    times_ms=(10.0, 10.1, 10.2, 9.9, 9.8),
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
    quiet = replace(TOY, times_ms=[10 + spread * step / 10 for step in range(-2, 3)])
    other = replace(NEXT, pte_sha256="p2", times_ms=[factor * ms for ms in quiet.times_ms])
    pair = compare_cells(quiet, other, 0.01)
    assert pair.result is not None
    assert (pair.result.answer, pair.is_regression(0.01)) == (answer, is_regression)


@pytest.mark.parametrize(
    "changed", ["pte_sha256", "runner_sha256", "serial", "seed", "executions", "warmup_executions"]
)
def test_a_device_that_is_slower_with_the_same_content_is_no_regression(changed: str) -> None:
    # given a cell that is 10 % slower in another night, with everything else equal
    slower = replace(NEXT, times_ms=[1.1 * ms for ms in TOY.times_ms])
    same = compare_cells(TOY, slower, 0.01)
    assert (same.answer, same.is_of_device, same.is_regression(0.01)) == ("different", True, False)
    # and the same where something of its content differs
    value: Any = 7 if changed in ("seed", "executions", "warmup_executions") else "other"
    other = compare_cells(TOY, replace(slower, **{changed: value}), 0.01)
    assert (other.is_of_device, other.is_regression(0.01)) == (False, True)


@pytest.mark.parametrize(("a", "b"), [(True, False), (False, True)])
def test_an_emulated_device_is_never_compared_by_time(a: bool, b: bool) -> None:
    pair = compare_cells(replace(TOY, emulated=a), replace(NEXT, emulated=b), 0.01)
    assert (pair.result, pair.is_regression(0.01)) == (None, False)


NOISY_NIGHTS: dict[str, Any] = {"noise_floor": 0.03, "baseline_nights": 21}
"""Nights that scatter by 1.4 %: two of them differ by 4.4 % at most, in 19 of 20 cases."""


@pytest.mark.parametrize(("change", "answer"), [(1.04, "unknown"), (1.05, "different")])
def test_two_nights_differ_only_if_they_differ_by_more_than_nights_without_a_change(change: float, answer: str) -> None:
    # given sessions that hardly scatter, of a series whose nights do
    later = replace(NEXT, sweep_id="smoke-2026-11-02", pte_sha256="p2", **NOISY_NIGHTS)
    a, b = (tuple(10 * factor * (1 + each / 1e4) for each in range(5)) for factor in (1, change))
    pair = compare_cells(replace(TOY, times_ms=a), replace(later, times_ms=b), margin=0.01)
    assert pair.nights_differ_by == pytest.approx(0.044, abs=0.001)
    assert (pair.answer, pair.is_regression(0.01)) == (answer, answer == "different")
    assert pair.result is not None
    assert pair.result.more_sessions is None
    # and of the same night, the sessions decide
    assert compare_cells(replace(TOY, times_ms=a), replace(NEXT, times_ms=b), margin=0.01).answer == "different"


def test_how_much_nights_differ_is_of_the_cell_that_knows_more_nights_and_assumed_without_any() -> None:
    later = replace(NEXT, sweep_id="smoke-2026-11-02")
    unknown = compare_cells(TOY, later, 0.01).nights_differ_by
    known = compare_cells(replace(TOY, **NOISY_NIGHTS), later, 0.01).nights_differ_by
    one_night = compare_cells(TOY, replace(later, noise_floor=0.001, baseline_nights=1), 0.01).nights_differ_by
    assert unknown is not None
    assert known is not None
    assert one_night is not None
    assert known == pytest.approx(0.044, abs=0.001)
    assert one_night < 0.01 < unknown < 0.06
    # and two devices are no two nights of a series
    assert compare_cells(TOY, replace(later, device="phone"), 0.01).nights_differ_by is None
