"""Interleaved comparisons of two sides: their results, which are no part of a night."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from flows.sweep_result import read_noise_lines
from flows.warehouse.readable import ask_warehouse, warehouse_reader
from sql.warehouse import writing
from tasks.maintain.check import check_aggregates
from tasks.maintain.forget import forget_sessions
from tasks.results.devices import noise_lines
from tasks.results.reader import open_reader
from tasks.results.series import SeriesNightRow, SeriesRow
from tasks.store.workspace import Workspace
from tests.fixtures.nights import fields_of, night_of, week_of
from tests.fixtures.warehouse import BundleMaker

# Which files were compared the same night after a step, how slow the former one was, and the verdict on the step.
CASES = {
    "alone": (None, 1.0, "p2", "suspected"),
    "both files": ("p1", 1.0, "p2", "regression"),
    "both are slow: it was the device": ("p1", 1.1, "p2", "unclear"),
    "another former file": ("p0", 1.0, "p2", "suspected"),
    "another file in the night": ("p1", 1.0, "p3", "suspected"),
}
# How an earlier call of a comparison differs in one side, and how many calls are pooled.
EARLIER: dict[str, tuple[dict[str, Any], int]] = {
    "all equal": ({}, 2),
    "an update of the device between": ({"device__facts": {"os_version": "14"}}, 1),
    "another number of warm-up runs": ({"warmup_executions": 2}, 1),
    "another program": ({"model__pte_sha256": "p3"}, 1),
}


def id_of(model: str) -> str:
    """The id of the comparison of a model."""
    return model.encode().hex()[:16].ljust(16, "0")


def side(maker: BundleMaker, model: str, day: int, name: str, factor: float, sessions: int = 8, **changes: Any) -> None:
    """Write one side of a comparison that was measured on a night; its file has the same name."""
    arm = {"purpose": "same_night", "comparison": id_of(model), "side": name}
    night_of(maker, day, factor, sessions, **{"model__pte_sha256": name, "arm": arm, "model__name": model} | changes)


def mixed_night(maker: BundleMaker, day: int, slow: int, factor: float = 1.0, **changes: Any) -> None:
    """Write a night of eight sessions of which the last ones are 15 % slower than the others, at a lower clock."""
    for number, is_slow in enumerate([False] * (8 - slow) + [True] * slow):
        time_ns = round((1.15 if is_slow else 1) * 1_000_000 * factor * (1 + 0.002 * (-1, 0, 1, 0)[number % 4]))
        state = {"taken_at": "2026-11-08T01:00:08+00:00", "frequency_mhz": 2000.0 if is_slow else 3000.0}
        fields = fields_of(day) | {"conditions__after": state, "model__name": "states"} | changes
        maker.session([time_ns] * 3, repetition=number, **fields)


def write_sessions(maker: BundleMaker) -> None:
    """Write the sessions of all questions, which have a model each."""
    write_steps(maker)
    write_pairs(maker)
    write_noise(maker)
    write_states(maker)


def write_steps(maker: BundleMaker) -> None:
    for model, (before, factor, after, _) in CASES.items():
        week_of(maker, 4, sessions=5, model__name=model)
        night_of(maker, 5, 1.1, model__name=model, model__pte_sha256="p2")
        if before:
            side(maker, model, 5, "a", factor, model__pte_sha256=before)
            side(maker, model, 5, "b", 1.1, model__pte_sha256=after)
    # a night that was hotter than its comparison
    week_of(maker, 4, sessions=5, model__name="hot")
    night_of(maker, 5, 1.3, sessions=5, model__name="hot", model__pte_sha256="p2")
    side(maker, "hot", 5, "a", 1.0, 5, model__pte_sha256="p1")
    side(maker, "hot", 5, "b", 1.1, 5, model__pte_sha256="p2")


def write_pairs(maker: BundleMaker) -> None:
    night_of(maker, 1, model__name="row")
    side(maker, "row", 1, "a", 1.0)
    side(maker, "row", 1, "b", 1.1)
    for name in "ab":
        side(maker, "same", 1, name, 1.0, 5, model__pte_sha256="p1")
        side(maker, "qemu", 1, name, 1.0, 5, device__emulated=True)
    # a comparison that was continued after an update of the device's system
    side(maker, "continued", 1, "b", 1.1)
    side(maker, "continued", 1, "a", 5.0, device__facts={"os_version": "14"})
    side(maker, "continued", 2, "a", 1.0, 6, device__facts={"os_version": "15"})
    # two calls, of which the earlier one differs in one side
    for model, (earlier, _) in EARLIER.items():
        for number, changes in enumerate((earlier, {})):
            sweep = {"sweep_id": f"compare-2026-11-0{number + 1}", "name": "compare", "night": f"2026-11-0{number + 1}"}
            for name in "ab":
                arm = {"purpose": "comparison", "comparison": f"{number}{id_of(model)[1:]}", "side": name}
                fields = {"device__facts": {"os_version": "15"}, "sweep": sweep, "arm": arm}
                side(maker, model, number + 1, name, 1.0, 5, **fields | (changes if name == "b" else {}))


def write_noise(maker: BundleMaker) -> None:
    # six nights in which a device interleaved one model with itself, and one with three times the noise
    for day in range(1, 8):
        for number in range(16):
            arm = {"purpose": "noise", "comparison": f"{day:016x}", "side": "ab"[number % 2]}
            factor = 1 + (0.012 if day == 7 else 0.004) * (number // 2 % 4 - 1.5)
            noisy: dict[str, Any] = {"arm": arm, "model__name": "noise", "device__name": "noisy"}
            maker.session([round(1_000_000 * factor)] * 3, repetition=number // 2, **noisy | fields_of(day))
    night_of(maker, 7, sessions=5, model__name="noise", device__name="noisy")
    # devices of four cores: one with two more processes, one with five, one that itself runs six threads, a phone
    devices = {"calm": (3, 1, "linux"), "busy": (6, 1, "linux"), "full": (6.5, 6, "macos"), "phone": (9, 1, "android")}
    for name, (load, threads, os) in devices.items():
        state = {"taken_at": "2026-11-20T00:59:00Z", "load_1m": load}
        facts = {"model": "board", "build": "b1", "cores": 4, "os": os}
        device: dict[str, Any] = {"device__name": name, "device__facts": facts, "conditions__before": state}
        maker.session([1_000_000], threads=threads, **device)


def write_states(maker: BundleMaker) -> None:
    # a week on a device with two states, a night in which another file is slower, and both files the same night
    for day in range(1, 8):
        mixed_night(maker, day, 2 + day % 3)
    mixed_night(maker, 8, 3, 1.06, model__pte_sha256="p2")
    for name, slow, factor, pte in (("a", 4, 1.0, "p1"), ("b", 1, 1.06, "p2")):
        arm = {"purpose": "same_night", "comparison": id_of("states"), "side": name}
        mixed_night(maker, 8, slow, factor, arm=arm, model__pte_sha256=pte)


def result_of(farm: BundleMaker, model: str, columns: str) -> list[tuple[Any, ...]]:
    return farm.ask(f"SELECT {columns} FROM comparison WHERE model_b = '{model}'")


def test_a_step_is_a_regression_at_once_only_if_these_two_files_differ_the_same_night(farm: BundleMaker) -> None:
    asked = "SELECT model, verdict, day(baseline_to), reason FROM verdict WHERE day(night) = 5"
    verdicts = {model: (verdict, day, reason) for model, verdict, day, reason in farm.ask(asked)}
    assert {model: verdicts[model][:2] for model in CASES} == {model: (case[3], 4) for model, case in CASES.items()}
    figures = "+10.00 % (+9.78 to +10.22 %; 1 ms -> 1.1 ms, 8 and 8 sessions) against model and runner of 2026-11-04"
    assert f"{figures}, measured interleaved" in verdicts["both files"][2]


def test_a_ratio_is_the_quotient_of_the_times_beside_it_wherever_it_stands(farm: BundleMaker) -> None:
    for before, after, source in (
        ("before_ms", "after_ms", "verdict"),
        ("baseline_value", "compared_value", "metric_verdict"),
        ("baseline_value", "value", "incident_part"),
        ("baseline_value", "value", "_shown_verdict"),
    ):
        other = f"abs({before} * ratio / {after} - 1) > 1e-6 AND NOT contains(reason, 'state')"
        assert farm.ask(f"SELECT * FROM {source} WHERE {other}") == [], source
    # and a comparison that decided is marked, beside the time of the night itself
    asked = "SELECT round(time_ms, 1), round(before_ms, 1), round(after_ms, 1) FROM verdict"
    marked = f"{asked} WHERE measured_again AND model = 'hot' AND is_newest"
    assert farm.ask(marked) == [(1.3, 1.0, 1.1)]


def test_the_result_is_a_row_and_neither_side_counts_as_latency(farm: BundleMaker) -> None:
    asked = "purpose, sessions_a, sessions_b, time_a_ms, time_b_ms, round(ratio, 3), answer, pte_sha256_b"
    assert result_of(farm, "row", asked) == [("same_night", 8, 8, 1.0, 1.1, 1.1, "different", "b")]
    # then the night's own sessions alone are latencies of the night
    for view in ("session_latency", "series_latency", "verdict", "category_share", "portable_weight"):
        assert farm.ask(f"SELECT count(DISTINCT cell) FROM {view} WHERE model = 'row'") == [(1,)], view
    assert farm.ask("SELECT sum(sessions) FROM series_latency WHERE model = 'row'") == [(8,)]
    # and every session is listed with its side
    sides = "SELECT purpose, arm, count(*) FROM session_overview WHERE model = 'row' GROUP BY ALL ORDER BY ALL"
    assert farm.ask(sides) == [("same_night", "a", 8), ("same_night", "b", 8), (None, None, 8)]
    # and the same content on both sides is never pooled, and an emulated device not compared
    assert result_of(farm, "same", "answer, sessions_a, cell_a <> cell_b") == [("same", 5, True)]
    assert result_of(farm, "qemu", "*") == []


def pool(workspace: Workspace, *comparisons: str) -> list[str]:
    """Return the cells that are pooled with those of the last comparison."""
    return [cell for _, cell in ask_warehouse("comparison_pool", workspace, comparisons=[*comparisons])]


def test_a_side_with_two_cells_counts_with_the_newest_one_only(farm: BundleMaker, tmp_path: Path) -> None:
    columns = "sessions_a, time_a_ms"
    assert result_of(farm, "continued", columns) == [(6, pytest.approx(1.0, rel=1e-3))]
    # then what is printed of it is about the same sessions
    workspace = Workspace(tmp_path, farm.warehouse)
    cells = pool(workspace, id_of("continued"))
    figures = {arm: times for arm, times, *_ in ask_warehouse("comparison_figures", workspace, cells=cells)}
    assert (len(figures["a"]), max(figures["a"]) < 1_010_000) == (6, True)
    operators = ask_warehouse("comparison_operators", workspace, cells_a=cells[:1], cells_b=cells[1:])
    assert [row[0] for row in operators] == ["a"] * 6 + ["b"] * 8


@pytest.mark.parametrize("model", EARLIER)
def test_calls_are_pooled_only_if_both_sides_had_the_same_content_and_device(
    farm: BundleMaker, tmp_path: Path, model: str
) -> None:
    workspace, (_, calls) = Workspace(tmp_path, farm.warehouse), EARLIER[model]
    cells = pool(workspace, *(f"{number}{id_of(model)[1:]}" for number in range(2)))
    rows = ask_warehouse("comparison_figures", workspace, cells=cells)
    pooled = [(arm, len(times), count) for arm, times, count, _ in rows]
    assert pooled == [("a", 5 * calls, calls), ("b", 5 * calls, calls)]


def test_a_device_whose_noise_doubles_or_that_was_busy_is_named(farm: BundleMaker, tmp_path: Path) -> None:
    asked = "SELECT day(night), earlier_nights, round(change, 1) FROM device_noise WHERE is_doubled"
    assert farm.ask(asked) == [(7, 6, 3.0)]
    # then it is no verdict on a model, but stands beside the verdicts of the night
    verdicts = farm.ask("SELECT round(device_noise, 3), verdict FROM verdict WHERE model = 'noise'")
    assert verdicts == [(0.012, "new")]
    workspace = Workspace(tmp_path, farm.warehouse)
    (line,) = read_noise_lines("nightly-2026-11-07", workspace)
    assert line.startswith("noisy: noise 1.2 %, 3.0 times that of 6 earlier nights")
    assert read_noise_lines("nightly-2026-11-06", workspace) == []
    # and a busy device is named unless its own threads made the load
    (line,) = read_noise_lines("smoke-2026-11-20", workspace)
    assert line.startswith("busy was busy before its sessions: load 6.0 on 4 cores")
    with warehouse_reader(workspace) as reader:
        assert any("noise 1.2 %" in line for line in noise_lines(reader, night="2026-11-07"))


def test_a_comparison_knows_the_two_states_that_the_nights_of_its_series_showed(farm: BundleMaker) -> None:
    # then the comparison is within the states, and decides
    [(answer, ratio, note)] = result_of(farm, "states", "answer, ratio, note")
    assert (answer, ratio) == ("different", pytest.approx(1.06, abs=0.002))
    assert "A 4 fast and 4 slow, B 7 fast and 1 slow, compared within each" in note
    reasons = "SELECT verdict, reason FROM verdict WHERE model = 'states' AND day(night) IN (6, 8) ORDER BY night"
    (_, clocks), (verdict, reason) = farm.ask(reasons)
    assert verdict == "regression"
    assert reason.endswith("the baseline shown has as many of each")
    assert "5 fast and 3 slow in this night" in reason
    # and the clocks of the two states are named
    assert "6 fast and 2 slow in this night (clock after fast ones 3000 MHz or more, after slow ones 2000 MHz" in clocks


def test_a_forgotten_session_is_taken_out_of_its_comparison(copied_farm: BundleMaker) -> None:
    [(session_id,)] = copied_farm.ask(
        "SELECT any_value(session_id) FROM session_overview WHERE model = 'row' AND arm = 'b'"
    )
    forget_sessions(copied_farm.warehouse, {session_id: "wrong governor"})
    assert result_of(copied_farm, "row", "sessions_a, sessions_b") == [(8, 7)]
    with writing(copied_farm.warehouse) as connection:
        assert list(check_aggregates(connection)) == []


def test_a_time_beside_a_change_is_of_the_same_sessions_or_the_change_is_marked(farm: BundleMaker) -> None:
    with open_reader(farm.warehouse) as reader:
        (newest,) = [row for row in reader.rows(SeriesRow) if row.model == "hot"]
        scope = {"devices": ["host"], "first": date(2026, 11, 1), "last": date(2026, 12, 1)}
        nights = [row for row in reader.rows(SeriesNightRow, scope) if row.series_id == newest.series_id]
    assert newest.time_ms == pytest.approx(1.1, abs=0.01)
    assert (newest.time_ms or 0) / (newest.ratio or 1) == pytest.approx(1.0, abs=0.01)
    # then the history has the time of the night, and marks the change
    assert [row.is_interleaved for row in nights] == [False] * 4 + [True]
    assert nights[-1].time_ms == pytest.approx(1.3, abs=0.01)
