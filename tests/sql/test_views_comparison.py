"""Interleaved comparisons of two sides: their results, which are no part of a night."""

from pathlib import Path
from typing import Any

import pytest

from flows.sweep_result import read_noise_lines
from flows.warehouse.publish import ask_warehouse
from sql.warehouse import writing
from tasks.maintain.check import check_aggregates
from tasks.maintain.forget import forget_sessions
from tasks.store.workspace import Workspace
from tests.fixtures.nights import fields_of, night_of, week_of
from tests.fixtures.warehouse import BundleMaker

ID = "c0ffee00c0ffee00"


def side(maker: BundleMaker, day: int, name: str, factor: float, pte: str, sessions: int = 8) -> list[Path]:
    """Write one side of a comparison that was measured on a night."""
    arm = {"purpose": "same_night", "comparison": ID, "side": name}
    return night_of(maker, day, factor, sessions, arm=arm, model__pte_sha256=pte)


def a_week_and_a_step(maker: BundleMaker) -> None:
    week_of(maker, model__pte_sha256="p1")
    night_of(maker, 8, 1.1, model__pte_sha256="p2")


VERDICT = "SELECT verdict, baseline_to::VARCHAR FROM verdict WHERE night = '2026-11-08'"


def test_a_step_that_shows_the_same_night_is_a_regression_at_once(maker: BundleMaker) -> None:
    a_week_and_a_step(maker)
    maker.load()
    assert maker.ask(VERDICT) == [("suspected", "2026-11-07")]
    # when the former file and that of the night were interleaved, and the latter is slower
    side(maker, 8, "a", 1.0, "p1")
    side(maker, 8, "b", 1.1, "p2")
    maker.load()
    assert maker.ask(VERDICT) == [("regression", "2026-11-07")]
    (reason,) = maker.ask("SELECT reason FROM verdict WHERE night = '2026-11-08'")[0]
    assert (
        "+10.0 % (+9.8 % to +10.2 %; 8 and 8 sessions) against model and runner of 2026-11-07, measured interleaved"
        in reason
    )


@pytest.mark.parametrize(
    ("before", "factor_before", "after", "verdict"),
    [
        ("p1", 1.1, "p2", "no change"),
        ("p0", 1.0, "p2", "suspected"),
        ("p1", 1.0, "p3", "suspected"),
    ],
    ids=["both are slow: it was the device", "another former file", "another file in the night"],
)
def test_a_step_is_no_regression_unless_these_two_files_differ_the_same_night(
    maker: BundleMaker, before: str, factor_before: float, after: str, verdict: str
) -> None:
    a_week_and_a_step(maker)
    side(maker, 8, "a", factor_before, before)
    side(maker, 8, "b", 1.1, after)
    maker.load()
    assert maker.ask(VERDICT) == [(verdict, "2026-11-07")]


def test_the_result_is_a_row_and_neither_side_counts_as_latency(maker: BundleMaker) -> None:
    night_of(maker, 1)
    side(maker, 1, "a", 1.0, "p1")
    side(maker, 1, "b", 1.1, "p2")
    maker.load()
    asked = "purpose, sessions_a, sessions_b, time_a_ms, time_b_ms, round(ratio, 3), answer, pte_sha256_b"
    assert maker.ask(f"SELECT {asked} FROM comparison") == [("same_night", 8, 8, 1.0, 1.1, 1.1, "different", "p2")]
    # then the night's own sessions alone are latencies of the night
    for view in ("session_latency", "series_latency", "verdict", "category_share", "portable_weight"):
        assert maker.ask(f"SELECT count(DISTINCT cell) FROM {view}") == [(1,)], view
    assert maker.ask("SELECT sum(sessions) FROM series_latency") == [(8,)]
    # and every session is listed with its side
    sides = "SELECT purpose, arm, count(*) FROM session_overview GROUP BY ALL ORDER BY ALL"
    assert maker.ask(sides) == [("same_night", "a", 8), ("same_night", "b", 8), (None, None, 8)]


def test_the_same_content_on_both_sides_is_never_pooled(maker: BundleMaker) -> None:
    side(maker, 1, "a", 1.0, "p1")
    side(maker, 1, "b", 1.0, "p1")
    maker.load()
    assert maker.ask("SELECT answer, sessions_a, cell_a <> cell_b FROM comparison") == [("same", 8, True)]


def test_a_side_with_two_cells_counts_with_the_newest_one_only(maker: BundleMaker, tmp_path: Path) -> None:
    # given a comparison that was continued after an update of the device's system
    side(maker, 1, "b", 1.1, "p2")
    arm = {"purpose": "same_night", "comparison": ID, "side": "a"}
    night_of(maker, 1, 5.0, 8, arm=arm, model__pte_sha256="p1", device__facts={"os_version": "14"})
    night_of(maker, 2, 1.0, 6, arm=arm, model__pte_sha256="p1", device__facts={"os_version": "15"})
    maker.load()
    assert maker.ask("SELECT sessions_a, time_a_ms FROM comparison") == [(6, pytest.approx(1.0, rel=1e-3))]
    # then what is printed of it is about the same sessions
    cells = pool(maker, tmp_path, ID)
    figures = {
        arm: times
        for arm, times, *_ in ask_warehouse("comparison_figures", Workspace(tmp_path, maker.warehouse), cells=cells)
    }
    assert (len(figures["a"]), max(figures["a"]) < 1_010_000) == (6, True)
    sides = {"cells_a": cells[:1], "cells_b": cells[1:]}
    operators = ask_warehouse("comparison_operators", Workspace(tmp_path, maker.warehouse), **sides)
    assert [row[0] for row in operators] == ["a"] * 6 + ["b"] * 8


def pool(maker: BundleMaker, data_dir: Path, *comparisons: str) -> list[str]:
    """Return the cells that are pooled with those of the last comparison."""
    return [
        cell
        for _, cell in ask_warehouse(
            "comparison_pool", Workspace(data_dir, maker.warehouse), comparisons=[*comparisons]
        )
    ]


@pytest.mark.parametrize(
    ("earlier", "calls"),
    [
        ({}, 2),
        ({"device__facts": {"os_version": "14"}}, 1),
        ({"warmup_executions": 2}, 1),
        ({"model__pte_sha256": "p3"}, 1),
    ],
    ids=["all equal", "an update of the device between", "another number of warm-up runs", "another program"],
)
def test_calls_are_pooled_only_if_both_sides_had_the_same_content_and_device(
    maker: BundleMaker, tmp_path: Path, earlier: dict[str, Any], calls: int
) -> None:
    # given two calls, of which the earlier one differs in one side
    for number, changes in enumerate((earlier, {})):
        for name in "ab":
            arm = {"purpose": "comparison", "comparison": f"{number:016x}", "side": name}
            fields = {"device__facts": {"os_version": "15"}, "model__pte_sha256": f"p{name}"}
            sweep = {"sweep_id": f"compare-2026-11-0{number + 1}", "name": "compare", "night": f"2026-11-0{number + 1}"}
            changed = changes if name == "b" else {}
            night_of(maker, number + 1, 1.0, 5, **{**fields, **changed, "sweep": sweep}, arm=arm)
    maker.load()
    cells = pool(maker, tmp_path, *(f"{number:016x}" for number in range(2)))
    rows = ask_warehouse("comparison_figures", Workspace(tmp_path, maker.warehouse), cells=cells)
    assert [(arm, len(times), count) for arm, times, count, _ in rows] == [
        ("a", 5 * calls, calls),
        ("b", 5 * calls, calls),
    ]


def test_an_emulated_device_is_not_compared(maker: BundleMaker) -> None:
    for name in "ab":
        arm = {"purpose": "comparison", "comparison": ID, "side": name}
        night_of(maker, 1, 1.0, 5, arm=arm, device__emulated=True)
    maker.load()
    assert maker.ask("FROM comparison") == []


def test_a_forgotten_session_is_taken_out_of_its_comparison(maker: BundleMaker) -> None:
    side(maker, 1, "a", 1.0, "p1")
    later = side(maker, 1, "b", 1.1, "p2")
    maker.load()
    forget_sessions(maker.warehouse, {later[0].name: "wrong governor"})
    assert maker.ask("SELECT sessions_a, sessions_b FROM comparison") == [(8, 7)]
    with writing(maker.warehouse) as connection:
        assert list(check_aggregates(connection)) == []


def noisy_night(maker: BundleMaker, day: int, scatter: float) -> None:
    """Write a night in which a device interleaved one model with itself."""
    for number in range(16):
        arm = {"purpose": "noise", "comparison": f"{day:016x}", "side": "ab"[number % 2]}
        factor = 1 + scatter * (number // 2 % 4 - 1.5)
        maker.session([round(1_000_000 * factor)] * 3, repetition=number // 2, arm=arm, **fields_of(day))


def test_a_device_whose_noise_doubles_is_named(maker: BundleMaker, tmp_path: Path) -> None:
    # given six nights with little noise, and one with three times as much
    for day in range(1, 7):
        noisy_night(maker, day, 0.004)
    noisy_night(maker, 7, 0.012)
    maker.load()
    # then only the last is more than twice as noisy as the nights before it
    asked = "SELECT night::VARCHAR, earlier_nights, round(change, 1) FROM device_noise WHERE is_doubled"
    assert maker.ask(asked) == [("2026-11-07", 6, 3.0)]
    # and it is no verdict on a model, but stands beside the verdicts of the night
    assert maker.ask("FROM verdict") == []
    night_of(maker, 7)
    maker.load()
    assert maker.ask("SELECT round(device_noise, 3), verdict FROM verdict") == [(0.012, "insufficient data")]
    (line,) = read_noise_lines("nightly-2026-11-07", Workspace(tmp_path, maker.warehouse))
    assert line.startswith("host: noise 1.2 %, 3.0 times that of 6 earlier nights; check what else runs on it")
    assert read_noise_lines("nightly-2026-11-06", Workspace(tmp_path, maker.warehouse)) == []


def test_a_device_that_was_busy_is_named_unless_its_own_threads_made_the_load(
    maker: BundleMaker, tmp_path: Path
) -> None:
    # given devices of four cores: one with two more processes, one with five, one that itself runs six threads, a phone
    devices = {"calm": (3, 1, "linux"), "busy": (6, 1, "linux"), "full": (6.5, 6, "macos"), "phone": (9, 1, "android")}
    for name, (load, threads, os) in devices.items():
        conditions = {"taken_at": "2026-11-20T00:59:00Z", "load_1m": load}
        facts = {"model": "board", "build": "b1", "cores": 4, "os": os}
        maker.session(
            [1_000_000], threads=threads, conditions__before=conditions, device__name=name, device__facts=facts
        )
    maker.load()
    # then
    (line,) = read_noise_lines("smoke-2026-11-20", Workspace(tmp_path, maker.warehouse))
    assert line == "busy was busy before its sessions: load 6.0 on 4 cores; measure again when it is idle"


def mixed_night(maker: BundleMaker, day: int, slow: int, factor: float = 1.0, **changes: Any) -> None:
    """Write a night of eight sessions of which the last ones are 15 % slower than the others."""
    fast = 8 - slow
    night_of(maker, day, factor, fast, **changes)
    for number in range(slow):
        time_ns = round(1_150_000 * factor * (1 + 0.002 * (-1, 0, 1, 0)[number % 4]))
        at_a_low_clock = {"conditions__after": conditions(2000.0)} if "conditions__after" in changes else {}
        maker.session([time_ns] * 3, repetition=fast + number, **(fields_of(day) | changes | at_a_low_clock))


def conditions(mhz: float) -> dict[str, Any]:
    return {"taken_at": "2026-11-08T01:00:08+00:00", "frequency_mhz": mhz}


def test_the_clocks_of_the_two_states_are_named_where_they_are_recorded(maker: BundleMaker) -> None:
    for day in range(1, 7):
        mixed_night(maker, day, 2 + day % 3, conditions__after=conditions(3000.0))
    maker.load()
    [(reason,)] = maker.ask("SELECT reason FROM verdict WHERE night = '2026-11-06'")
    assert (
        "6 fast and 2 slow in this night (clock after fast ones 3000 MHz or more, after slow ones 2000 MHz or less)"
        in reason
    )


def test_a_comparison_knows_the_two_states_that_the_nights_of_its_series_showed(maker: BundleMaker) -> None:
    # given a week on a device with two states, and a night in which another file is slower
    for day in range(1, 8):
        mixed_night(maker, day, 2 + day % 3, model__pte_sha256="p1")
    mixed_night(maker, 8, 3, 1.06, model__pte_sha256="p2")
    maker.load()
    assert maker.ask(VERDICT) == [("suspected", "2026-11-07")]
    # when both files were compared the same night, the slower one with a single slow session
    for name, slow, factor, pte in (("a", 4, 1.0, "p1"), ("b", 1, 1.06, "p2")):
        arm = {"purpose": "same_night", "comparison": ID, "side": name}
        mixed_night(maker, 8, slow, factor, arm=arm, model__pte_sha256=pte)
    maker.load()
    # then the comparison is within the states, and decides
    [(answer, ratio, note)] = maker.ask("SELECT answer, ratio, note FROM comparison")
    assert (answer, ratio) == ("different", pytest.approx(1.06, abs=0.002))
    assert "A 4 fast and 4 slow, B 7 fast and 1 slow, compared within each" in note
    [(verdict, reason)] = maker.ask("SELECT verdict, reason FROM verdict WHERE night = '2026-11-08'")
    assert verdict == "regression"
    assert reason.endswith(
        "5 fast and 3 slow in this night, compared within each; the baseline shown has as many of each"
    )
