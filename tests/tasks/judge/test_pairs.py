"""Which cells of two arms are compared, what differs between them, and how far their nights lie apart."""

from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pytest

from devices.errors import InputError
from tasks.judge.pairs import MeasuredCell, differing, have_same_content, is_no_change, match_cells, nights_differ_by

FACTS: dict[str, Any] = {
    **{"cell": "c1", "sweep_id": "smoke-2026-11-01", "device": "host", "transport": "local", "emulated": False},
    **{"model": "toy", "precision": "fp32", "variant": "sme2_off", "threads": 1, "executions": 55, "seed": 0},
    **{"warmup_executions": 5, "pte_sha256": "p1", "runner_sha256": "r1", "executorch_version": "1.5.1"},
    **{"serial": None, "build": "b1", "os_version": "15", "platform": "linux-aarch64", "device_model": "board"},
    **{"soc": None, "sme2": True, "launcher": None},
    **{"last_started_at": datetime(2026, 11, 1, 1), "session_ids": ("s1",), "starts_s": (0.0,)},
    "times_ms": (10.0, 10.1, 10.2, 9.9, 9.8),
}
TOY = MeasuredCell(**FACTS)
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


@pytest.mark.parametrize(
    ("kind", "model_a", "model_b", "match"),
    [
        ("runtime", "toy", "toy@export=1.4.1", True),
        ("runtime", "toy@tg64,load=mmap", "toy@tg64", True),
        ("runtime", "toy@tg64,load=mmap", "toy@tg32", False),
        # the runner of B is of 1.6.0: its name may say so, or be that of the farm's own version
        ("executorch", "toy@export=1.5.1,runner=1.5.1", "toy@export=1.6.0,runner=1.6.0", True),
        ("executorch", "toy", "toy@runner=1.6.0", True),
        ("executorch", "toy", "toy@export=1.4.1,runner=1.6.0", False),
        ("night", "toy", "toy@runner=1.6.0", False),
        ("delegate", "toy@tg64,load=mmap", "toy@tg64,delegate=openvino+xnnpack,load=mmap", True),
        ("delegate", "toy", "toy@tg64,delegate=portable", False),
        ("night", "toy", "toy@delegate=portable", False),
    ],
)
def test_delegates_versions_and_options_that_are_compared_do_not_keep_cells_apart(
    kind: str, model_a: str, model_b: str, match: bool
) -> None:
    a, b = replace(TOY, model=model_a), replace(NEXT, model=model_b, executorch_version="1.6.0")
    assert match_cells([a], [b], kind).pairs == ([(a, b)] if match else [])


def test_versions_and_files_do_not_keep_cells_of_two_nights_apart_and_nothing_keeps_two_named_cells() -> None:
    other = replace(NEXT, pte_sha256="p2", runner_sha256="r2", executorch_version="1.6.0", build="b2", executions=20)
    assert match_cells([TOY], [other], "night").pairs == [(TOY, other)]
    for kind in ("cell", "session"):
        assert match_cells([TOY], [other := replace(NEXT, **SERIES)], kind).pairs == [(TOY, other)]


def test_of_several_cells_of_a_series_the_one_measured_last_counts_and_the_others_are_listed() -> None:
    # given a model that was changed between two starts of the second sweep
    changed = replace(NEXT, cell="c3", session_ids=("s3",), last_started_at=datetime(2026, 11, 2, 2), pte_sha256="p2")
    for cells in ([NEXT, changed], [changed, NEXT]):
        matched = match_cells([TOY], cells, "night")
        assert (matched.pairs, matched.older_b) == ([(TOY, changed)], [NEXT])
    # and arms that share a session are refused
    with pytest.raises(InputError, match="A and B share 1 session; compare two without a common session"):
        match_cells([TOY], [TOY], "night")


def test_what_differs_is_named_in_few_words() -> None:
    upgraded = replace(NEXT, executorch_version="1.6.0", pte_sha256="p2", runner_sha256="r2", build=None)
    assert differing(TOY, upgraded) == ["executorch 1.5.1 -> 1.6.0", "pte", "runner", "build"]
    assert differing(TOY, replace(TOY, executions=20, seed=None)) == ["seed 0 -> unknown", "executions 55 -> 20"]
    assert differing(TOY, NEXT) == []
    # and what two models or two devices never share is no difference
    assert differing(TOY, replace(NEXT, model="other", pte_sha256="p2")) == []
    assert differing(TOY, replace(NEXT, device="phone", serial="1", platform="android-arm64", soc="s")) == ["SoC"]


@pytest.mark.parametrize(
    "changed", ["pte_sha256", "runner_sha256", "serial", "seed", "executions", "warmup_executions", *SERIES]
)
def test_a_difference_is_the_device_s_only_if_both_cells_have_the_same_content_on_it(changed: str) -> None:
    assert have_same_content(TOY, NEXT)
    value: Any = 7 if changed in ("seed", "executions", "warmup_executions") else "other"
    assert not have_same_content(TOY, replace(NEXT, **{changed: value}))
    # and versions or delegates that made the same program and runner are the same, options never
    for words in ("export=1.4.1", "delegate=openvino+xnnpack"):
        assert have_same_content(TOY, replace(NEXT, model=f"toy@{words}"))
    assert not have_same_content(TOY, replace(NEXT, model="toy@load=mmap"))
    # and unknown content is never the same
    for unknown in ({"pte_sha256": None}, {"runner_sha256": None}):
        assert not have_same_content(*(replace(each, **unknown) for each in (TOY, NEXT)))  # type: ignore[arg-type]


def test_nights_differ_as_the_cell_with_more_nights_states_and_by_an_assumed_amount_without_any() -> None:
    later = replace(NEXT, sweep_id="smoke-2026-11-02")
    # given nights that scatter by 1.1 %: two of them differ by 3.2 % at most, in 19 of 20 cases
    measured = replace(TOY, noise_floor=0.03, baseline_nights=21)
    for other in (later, replace(later, noise_floor=0.5, baseline_nights=1)):
        assert nights_differ_by(measured, other) == pytest.approx(0.032, abs=0.001)
    assert nights_differ_by(TOY, later) == pytest.approx(0.047, abs=0.001)
    # and neither one sweep nor two devices are two nights of a series
    assert nights_differ_by(TOY, NEXT) is None
    assert nights_differ_by(TOY, replace(later, device="phone")) is None


def test_nights_without_a_change_are_of_one_content_and_the_later_was_judged_so_against_the_earlier() -> None:
    before = replace(TOY, night=date(2026, 11, 1), verdict="new")
    after = replace(NEXT, night=date(2026, 11, 9), verdict="no change", baseline_from=date(2026, 11, 1))
    assert is_no_change(before, after)
    assert is_no_change(after, before)
    for other in (
        replace(after, verdict="device slower"),
        replace(after, pte_sha256="p2"),
        replace(after, baseline_from=date(2026, 11, 2)),
        replace(after, night=None),
    ):
        assert not is_no_change(before, other)
