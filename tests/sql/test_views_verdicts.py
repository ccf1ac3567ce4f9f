"""Verdicts in the warehouse: one row per night of a series on a device, made at the load."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sql.warehouse import writing
from tasks.judge.decisions import Decisions, Kind, Selector
from tasks.maintain.decisions import store_decisions
from tasks.maintain.forget import forget_sessions
from tests.fixtures.nights import WHY, decision, failed_night_of, fields_of, night_of, week_of
from tests.fixtures.warehouse import BundleMaker

NOON = {"sweep_id": "smoke-2026-11-05", "name": "smoke", "night": "2026-11-05"}
# what else differs in nights that are 10 % slower, and the verdict on them
CAUSES: list[tuple[dict[str, Any], str]] = [
    ({}, "device slower"),
    ({"model__pte_sha256": "p2"}, "regression"),
    ({"model__inputs_sha256": "i2"}, "regression"),
    ({"runner__runner_sha256": "r2"}, "regression"),
    ({"warmup_executions": 2}, "regression"),
    ({"command": ["nice", "trees/r1/executor_runner"]}, "regression"),
]


def write_sessions(maker: BundleMaker) -> None:
    """Write the nights of all questions, which have a model each."""
    week_of(maker, 4, sessions=5, model__name="step")
    for day in (5, 6):
        night_of(maker, day, 2.0, model__name="step", model__pte_sha256="p2", model__versions={"executorch": "1.6.0"})
    for number, (changes, _) in enumerate(CAUSES):
        week_of(maker, 3, sessions=5, model__name=f"cause {number}")
        for day in (4, 5):
            night_of(maker, day, 1.1, model__name=f"cause {number}", **changes)
    # a night whose sweep is followed by one at noon, of one session less than a verdict needs, or of as many
    for count in (4, 5):
        week_of(maker, 5, sessions=5, model__name=f"noon {count}")
        night_of(maker, 5, 1.5, count, model__name=f"noon {count}", sweep=NOON, started_at="2026-11-05T12:00:00+00:00")
    week_of(maker, 2, sessions=5, model__name="emulated", device__emulated=True)
    # two phones of one model, one of which is always 5 % slower, in use on alternate nights
    for day in range(1, 7):
        device = "slow" if day % 2 else "fast"
        night_of(maker, day, 1.05 if day % 2 else 1.0, 5, model__name="phones", device__name=device)
    week_of(maker, 2, sessions=5, model__name="invalid")
    ended: dict[str, Any] = {"status": "invalid", "reason_code": "thermal", "reason": "48 C"}
    for number in range(8):
        maker.session(repetition=number, model__name="invalid", **ended, **fields_of(3))
    for kind, slow_days in (("baseline_reset", (4, 5, 6)), ("night_exclusion", (4,))):
        for day in range(1, 7):
            pte = f"p{day in slow_days}"
            night_of(maker, day, 1.1 if day in slow_days else 1.0, 5, model__name=kind, model__pte_sha256=pte)
    # a model that could be exported in one precision only, and another one that could not be exported in one night
    failed_night_of(maker, 4, model__name="never")
    night_of(maker, 4, sessions=5, model__name="never", model__precision="fp16")
    week_of(maker, 3, sessions=5, model__name="once")
    failed_night_of(maker, 4, model__name="once")
    night_of(maker, 5, sessions=5, model__name="once")
    # a failure beside results in another mode and sweep, of another model and on another device
    failed_night_of(maker, 4, model__name="alone")
    fields = fields_of(4) | {"model__name": "alone"}
    again = {"sweep": {"sweep_id": "nightly-2026-11-04-2", "name": "nightly", "night": "2026-11-04"}}
    for changes in {"mode": "profile"}, {"model__name": "alones"}, {"device__name": "other"}, again:
        maker.session([100], **fields | changes)


def verdicts_of(farm: BundleMaker, model: str, columns: str = "day(night), verdict") -> list[tuple[Any, ...]]:
    return farm.ask(f"SELECT {columns} FROM verdict WHERE model = '{model}' ORDER BY precision, night")


def test_a_step_is_suspected_then_a_regression_with_what_changed(farm: BundleMaker) -> None:
    changed = [
        {"fact": ".pte file", "before": "p1", "after": "p2"},
        {"fact": "executorch", "before": "1.5.1", "after": "1.6.0"},
    ]
    columns = "day(night), verdict, round(ratio, 2), day(since), changed"
    assert verdicts_of(farm, "step", columns)[3:] == [
        (4, "no change", 1.0, None, None),
        (5, "suspected", 2.0, 5, changed),
        (6, "regression", 2.0, 5, changed),
    ]
    overview = "SELECT nights, verdict, day(since) FROM series_overview WHERE model = 'step'"
    assert farm.ask(overview) == [(6, "regression", 5)]


def test_a_step_is_the_devices_only_if_program_inputs_runner_and_settings_are_equal(farm: BundleMaker) -> None:
    newest = dict(farm.ask("SELECT model, verdict FROM verdict WHERE is_newest"))
    assert [newest[f"cause {number}"] for number in range(len(CAUSES))] == [verdict for _, verdict in CAUSES]


def test_emulated_devices_are_never_judged_and_two_phones_of_one_model_apart(farm: BundleMaker) -> None:
    assert verdicts_of(farm, "emulated") == []
    phones = "SELECT DISTINCT device, verdict FROM verdict WHERE model = 'phones' AND baseline_nights > 0 ORDER BY ALL"
    assert farm.ask(phones) == [("fast", "no change"), ("slow", "no change")]
    assert farm.ask("SELECT max(abs(ratio - 1)) < 0.001 FROM night_over_night WHERE model = 'phones'") == [(True,)]


def test_sessions_outside_the_limits_make_the_night_invalid(farm: BundleMaker) -> None:
    columns = "verdict, sessions, invalid_sessions, time_ms"
    assert verdicts_of(farm, "invalid", columns)[2] == ("invalid environment", 0, 8, None)


def test_a_night_without_an_export_failed_with_its_reason_and_is_no_baseline(farm: BundleMaker) -> None:
    failed = f"8 of 8 sessions failed (export_failed): {WHY}"
    fp16, fp32 = verdicts_of(farm, "never", "precision, verdict, reason, sessions")
    assert (fp16[:2], fp32) == (("fp16", "new"), ("fp32", "failed", failed, 0))
    columns = "day(night), verdict, baseline_nights"
    assert verdicts_of(farm, "once", columns)[3:] == [(4, "failed", 0), (5, "no change", 3)]


def test_a_result_in_another_mode_or_sweep_or_on_another_device_does_not_supersede_a_failure(farm: BundleMaker) -> None:
    assert farm.ask("SELECT DISTINCT superseded FROM failed_session WHERE model = 'alone'") == [(False,)]


def test_what_was_repaired_the_same_night_has_its_measured_result(maker: BundleMaker, tmp_path: Path) -> None:
    # given models that failed in a night, and a device whose facts were unknown while it could not be used
    failing = ("one", "three", "two", "two@export=1.4.1")
    for model in failing:
        failed_night_of(maker, 4, model__name=model)
    ended: dict[str, Any] = {"status": "failed", "reason_code": "device_unusable", "reason": "host: no answer"}
    maker.session(**fields_of(4), **ended, model__name="device", device__facts={})
    maker.load()
    asked = "SELECT model, day(night), verdict, sessions FROM verdict ORDER BY ALL"
    assert maker.ask(asked) == [(model, 4, "failed", 0) for model in ("device", *failing)]
    # when the sweep is started again and measures all but one, in fewer sessions than were planned, one in two cases,
    # and that one with an option
    repaired = ("device", "one", "three@decode,load=mmap", "two@decode", "two@export=1.4.1,decode", "two@prefill128")
    for case in repaired:
        night_of(maker, 4, sessions=5, model__name=case)
    maker.load()
    # then the night has these results only, and what failed before is listed as superseded
    measured = [(case, 4, "new", 5) for case in repaired]
    assert maker.ask(asked) == sorted([*measured, ("three", 4, "failed", 0)])
    superseded = (
        "SELECT model, superseded, count(*) FROM failed_session WHERE model <> 'device' GROUP BY ALL ORDER BY 1"
    )
    assert maker.ask(superseded) == [(model, model != "three", 8) for model in failing]
    # and a warehouse that is made again has the same rows
    again = BundleMaker(tmp_path / "again")
    again.load(maker.bundles)
    assert again.ask("FROM verdict ORDER BY ALL") == maker.ask("FROM verdict ORDER BY ALL")


def test_a_forgotten_night_is_judged_no_more_and_the_later_ones_again(copied_farm: BundleMaker) -> None:
    slow = copied_farm.ask("SELECT session_id FROM session_latency WHERE model = 'step' AND day(night) = 5")
    forget_sessions(copied_farm.warehouse, [session_id for (session_id,) in slow])
    # then that is so of the latency, and of the other figures
    for metric in ("latency", "first execution"):
        of_metric = f"model = 'step' AND metric = '{metric}' AND day(night) > 3"
        asked = f"SELECT day(night), verdict FROM metric_verdict WHERE {of_metric} ORDER BY night"
        assert copied_farm.ask(asked) == [(4, "no change"), (6, "suspected")]


def decided(kind: Kind, day: int | None, revokes: str | None = None, number: int = 10) -> Decisions:
    """One decision: about the model of its name, or all."""
    night = date(2026, 11, day) if day else None
    series = Selector(model=kind if kind in ("baseline_reset", "night_exclusion") else None)
    return Decisions((decision(number, kind=kind, night=night, series=series, revokes=revokes),))


@pytest.mark.parametrize(
    ("kind", "verdicts"),
    [
        # the nights since the reset are compared with each other only
        ("baseline_reset", [("insufficient data", 0), ("no change", 1), ("no change", 2)]),
        # the excluded night is compared with nothing, and nothing with it
        ("night_exclusion", [("insufficient data", 0), ("no change", 3), ("no change", 4)]),
    ],
)
def test_a_users_decision_about_a_slow_night_decides_what_is_compared(
    copied_farm: BundleMaker, kind: Kind, verdicts: list[tuple[str, int]]
) -> None:
    before = verdicts_of(copied_farm, kind)
    assert before[3] == (4, "suspected")
    made = decided(kind, 4, number=len(kind))
    store_decisions(copied_farm.warehouse, made)
    assert verdicts_of(copied_farm, kind, "verdict, baseline_nights")[3:] == verdicts
    # and its revocation judges as if it had not been made
    revocation = decided("revocation", None, made.records[0].id, 50)
    store_decisions(copied_farm.warehouse, Decisions(made.records + revocation.records))
    assert verdicts_of(copied_farm, kind) == before


def test_a_note_and_its_revocation_leave_all_verdicts_as_they_were_judged(copied_farm: BundleMaker) -> None:
    # given a mark that a new judgement would remove
    with writing(copied_farm.warehouse) as connection:
        connection.execute("UPDATE series_verdict SET reason = 'as judged'")
    marked = "SELECT count(*) FILTER (reason = 'as judged'), count(*) FROM series_verdict"
    [(_, count)] = copied_farm.ask(marked)
    # when a note on a night is added, then its revocation
    note, revocation = decided("note", 4), decided("revocation", None, "0000000a", 11)
    both = Decisions(note.records + revocation.records)
    assert (store_decisions(copied_farm.warehouse, note), store_decisions(copied_farm.warehouse, both)) == (1, 1)
    # then nothing was judged again, and no verdict is gone
    assert copied_farm.ask(marked) == [(count, count)]
    # but a decision that comes with a revoked note is obeyed: only its series is judged again
    store_decisions(copied_farm.warehouse, Decisions(both.records + decided("night_exclusion", 5, number=12).records))
    again = "FROM series_verdict JOIN series USING (series_id) WHERE reason != 'as judged'"
    assert copied_farm.ask(f"SELECT DISTINCT model {again}") == [("night_exclusion",)]


@pytest.mark.parametrize(("count", "judged"), [(4, ("nightly-2026-11-05", 5, "no change")), (5, (NOON["sweep_id"], 5))])
def test_a_sweep_at_noon_replaces_a_night_only_with_as_many_sessions_as_a_verdict_needs(
    farm: BundleMaker, count: int, judged: tuple[object, ...]
) -> None:
    asked = f"FROM verdict WHERE model = 'noon {count}' AND is_newest"
    (row,) = farm.ask(f"SELECT sweep_id, sessions, verdict {asked}")
    assert row[: len(judged)] == judged
    assert row[2] != "insufficient data"
