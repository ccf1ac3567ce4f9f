"""The plan: which sessions a device owes a sweep, in which order, and under which id."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.ondevice.facts import Facts
from tasks.bundle.cell import VARIANTS, Cell, Use
from tasks.bundle.record import SweepNight
from tasks.export.entry import ExportRequest, ModelEntry
from tasks.export.exported import Case, Export, ExportError
from tasks.export.key import export_key
from tasks.measure.interleaved import Side, plan_batch, plan_noise
from tasks.measure.matrix_rules import possible_variants, thread_counts
from tasks.measure.plan import (
    DISCARDED_REPETITION,
    FIRST_SESSION,
    PlannedSession,
    attempts_among,
    planned_session,
    remaining_sessions,
)
from tasks.measure.prepare import (
    ExportSettings,
    ExportSnapshot,
    make_export,
    quick_export_status,
    start_exports,
    verified_export_status,
)
from tasks.measure.sweep_plan import DeviceResults, plan_rest
from tests.fixtures.plans import NIGHT, a_spec, an_export, ended, planned
from tests.fixtures.stand_in import write_export


def test_every_cell_gets_its_sessions_and_one_more_is_discarded_first() -> None:
    # given two models in two precisions, on and off, four sessions a cell
    sessions = planned(a_spec())
    # then the first is the one discarded automatically, each of the twelve cells has four, and kernels come last
    assert sessions[0].repetition == DISCARDED_REPETITION
    assert set(Counter(session.cell for session in sessions[1:]).values()) == {4}
    assert len({session.session_id for session in sessions}) == len(sessions) == 1 + 2 * 2 * 3 * 4
    modes = [session.cell.mode for session in planned(a_spec(modes=["profile", "timing"]))]
    assert modes == sorted(modes, key=["timing", "profile"].index)
    assert thread_counts([1, 2, "all"], Facts(cores=8)) == [1, 2, 8]
    assert thread_counts([1, 2, "all"], Facts(cores=2)) == thread_counts([1, 2, "all"], Facts()) == [1, 2]
    # and a record answers the session that was planned, which is another one with another model or runner
    for session in sessions:
        assert planned_session(ended(session, "succeeded")) == session
    others = [*planned(a_spec(), pte="b"), *planned(a_spec(), runner="b")]
    assert len({session.session_id for session in [*sessions, *others]}) == 3 * len(sessions)


def test_the_discarded_session_is_one_that_can_run() -> None:
    # given a model whose export failed, first in the seeded order or not
    for name in ("linear", "conv"):
        sessions = planned(a_spec(models=["linear", "conv"], precisions=["fp32"]), exports=[an_export(name)])
        assert (sessions[0].repetition, sessions[0].cell.model) == (DISCARDED_REPETITION, name)


def test_variants_stand_side_by_side_and_swap_each_round() -> None:
    sessions = planned(a_spec(models=["linear"], precisions=["fp32"]))[1:]
    # then each round is the one before in reverse
    order = " ".join(session.cell.variant.removeprefix("sme2_") for session in sessions)
    assert order == "on sme1 off off sme1 on on sme1 off off sme1 on"


def test_versions_and_options_of_a_model_stand_side_by_side_and_are_cells_of_their_own() -> None:
    # given a sweep that states a version of ExecuTorch and an option, beside the defaults
    spec = a_spec(executorch=["own", "1.5.0"], options=[{}, {"load": "mmap"}], variants=["sme2_off"], sessions=2)
    rounds = [session for session in planned(spec) if session.repetition >= 0]
    # then a round measures all four of a model and recipe one after the other, and the next one backwards
    of_runtime = ["", "@load=mmap", "@export=1.5.0,runner=1.5.0", "@export=1.5.0,runner=1.5.0,load=mmap"]
    for number in range(2):
        of_round = [session.cell for session in rounds if session.repetition == number]
        for at in range(0, len(of_round), 4):
            block = of_round[at : at + 4]
            subject = block[0].program[0].partition("@")[0], block[0].precision
            names = [f"{subject[0]}{words}" for words in of_runtime]
            assert [cell.model for cell in block] == names[:: 1 - 2 * number]
            assert {cell.precision for cell in block} == {subject[1]}
    # and the default is the same session as in a sweep that states nothing
    default = [session.session_id for session in planned(a_spec(variants=["sme2_off"], sessions=2))]
    assert set(default[1:]) <= {session.session_id for session in rounds}


def test_pairs_of_a_round_are_adjacent_in_a_seeded_order() -> None:
    sessions = planned(a_spec())[1:]
    for first, second in list(pairwise(sessions))[::3]:
        assert replace(first.cell, variant=second.cell.variant) == second.cell
    assert planned(a_spec())[1:] == sessions
    assert planned(a_spec(seed=1))[1:] != sessions


def test_a_device_runs_the_variants_that_it_supports_or_all_if_that_is_unknown() -> None:
    assert {s.cell.variant for s in planned(a_spec(), facts=Facts(sme=False, sme2=False))} == {"sme2_off"}
    assert {s.cell.variant for s in planned(a_spec(), facts=Facts())} == {"sme2_on", "sme1", "sme2_off"}
    assert planned(a_spec(variants=["sme2_on"]), facts=Facts(sme=False, sme2=False)) == []
    assert possible_variants(VARIANTS, Facts(sme=True, sme2=False)) == ["sme1", "sme2_off"]


@pytest.mark.parametrize(
    ("platform", "planned_modes"),
    [("linux-aarch64", {"counts"}), ("android-arm64", {"counts"}), (None, {"counts"}), ("linux-x86_64", set())],
)
def test_kernels_are_counted_where_they_can_be(platform: str | None, planned_modes: set[str]) -> None:
    sessions = planned(a_spec(modes=["counts"]), facts=Facts(platform=platform))
    assert {session.cell.mode for session in sessions} == planned_modes


def test_what_succeeded_is_not_run_again() -> None:
    sessions = planned(a_spec())
    done = [ended(sessions[0], "invalid", FIRST_SESSION), *(ended(s, "succeeded") for s in sessions[1:4])]
    # then the rest is left, in the same order, at its first attempt
    assert remaining_sessions(sessions, done) == sessions[4:]


def test_sessions_of_a_model_that_was_edited_since_are_counted_apart() -> None:
    sessions = [each for each in planned(a_spec()) if each.pte_sha256 and each.runner_sha256]
    edited, forgotten = (ended(replace(each, pte_sha256="f" * 64), "succeeded") for each in sessions[1:3])
    records = [ended(sessions[1], "succeeded"), edited, forgotten]
    results = DeviceResults(records, excluded=frozenset({forgotten.session_id}))
    rest = plan_rest(sessions, ExportSnapshot(), results, None)
    assert (rest.already_done, rest.of_others) == (1, 1)


@pytest.mark.parametrize(
    ("second", "is_forgotten"), [("invalid", False), ("succeeded", True)], ids=["failed twice", "forgotten"]
)
def test_what_failed_or_was_forgotten_is_measured_again_under_a_new_id(second: str, is_forgotten: bool) -> None:
    # given a session that failed once, and then failed again, or succeeded and was forgotten
    sessions = planned(a_spec())
    records = [ended(sessions[1], "failed", "device_lost"), ended(replace(sessions[1], attempt=2), second)]
    again = remaining_sessions(sessions, records, forgotten={records[1].session_id} if is_forgotten else set())
    # then it is its third attempt, whose id is that of no bundle
    assert len(again) == len(sessions)
    assert again[1].attempt == 3
    assert again[1].session_id not in {record.session_id for record in records}


def test_a_session_whose_bundle_cannot_be_read_is_measured_again_under_an_id_that_no_bundle_has() -> None:
    # given three sessions: one with an unreadable bundle, one with two, one with a readable one after an unreadable one
    sessions = planned(a_spec())
    once, twice, between = sessions[1:4]
    taken = {once.session_id, twice.session_id, replace(twice, attempt=2).session_id, between.session_id}
    failed = ended(replace(between, attempt=2), "failed", "device_lost")
    again = remaining_sessions(sessions, [failed], used_ids={*taken, failed.session_id})
    # then each gets the first attempt whose id is free
    assert [session.attempt for session in again[1:4]] == [2, 3, 3]
    assert {session.session_id for session in again}.isdisjoint({*taken, failed.session_id})


def test_attempts_of_planned_sessions_are_recognized_by_their_ids() -> None:
    sessions = planned(a_spec())
    mine = {sessions[1].session_id, replace(sessions[2], attempt=7).session_id}
    assert attempts_among(sessions, {*mine, "0" * 16}) == mine
    assert attempts_among(sessions, set()) == set()


def test_a_session_has_an_execution_for_each_token_that_its_case_writes() -> None:
    # given a sweep with 20 executions, 3 of them warm-up, and cases of 64 and of 2 tokens
    def executions(steps: int | None) -> tuple[int, int]:
        case = Export(Path(), "k", "linear", "fp32", 0, "p", 1, {}, [], [], 0.0, Case(steps=steps))
        spec = a_spec(models=["linear"], precisions=["fp32"], executions=20, warmup_executions=3)
        cell = planned(spec, exports=[an_export("linear", executions=case.executions)])[0].cell
        return cell.executions, cell.warmup_executions

    assert [executions(steps) for steps in (None, 64, 2)] == [(20, 3), (64, 3), (2, 1)]


LINEAR = ModelEntry.model_validate("linear")


@pytest.mark.parametrize(
    ("exported", "has_numerics", "state"),
    [
        ([], False, "to export"),
        ([False], False, "ready"),
        ([False], True, "to export"),
        ([True], True, "to export"),
        ([False, True], True, "ready"),
    ],
)
def test_numerics_need_both_programs(tmp_path: Path, exported: list[bool], has_numerics: bool, state: str) -> None:
    for taps in exported:
        write_export(tmp_path / export_key(ExportRequest(LINEAR, "fp32", tmp_path, taps=taps)))
    settings = ExportSettings(tmp_path, 0, None, has_numerics)
    statuses = [status(LINEAR, "fp32", settings) for status in (quick_export_status, verified_export_status)]
    assert [each.state for each in statuses] == [state, state]
    assert [bool(each.cases and each.cases[0].tapped) for each in statuses] == [len(exported) == 2] * 2


def test_a_numerics_program_that_failed_is_ready_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def export(request: ExportRequest, **_: object) -> tuple[Export, ...]:
        if request.taps:
            raise ExportError("no layer can be read", Path("numerics.log"))
        return (write_export(tmp_path / export_key(request)),)

    def statuses() -> list[tuple[str, str | None]]:
        both = [status(LINEAR, "fp32", settings) for status in (quick_export_status, verified_export_status)]
        return [(each.state, each.cases[0].tapped_error) for each in both]

    # given a model whose program for numerics cannot be exported
    monkeypatch.setattr("tasks.measure.prepare.export_cases", export)
    settings = ExportSettings(tmp_path, 0, None, True)
    make_export(LINEAR, "fp32", settings, lambda *_: None)
    assert statuses() == [("ready", "no layer can be read")] * 2
    # when it is exported after all, then the error is gone
    write_export(tmp_path / export_key(ExportRequest(LINEAR, "fp32", tmp_path, taps=True)))
    assert statuses() == [("ready", None)] * 2


@pytest.mark.parametrize("is_exported", [False, True])
def test_the_export_server_starts_early_only_if_a_model_has_to_be_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_exported: bool
) -> None:
    started: list[Path] = []
    monkeypatch.setattr("tasks.export.process.run.start_server", started.append)
    if is_exported:
        write_export(tmp_path / export_key(ExportRequest(LINEAR, "fp32", tmp_path)))
    start_exports(a_spec(models=["linear"], precisions=["fp32"]), ExportSettings(tmp_path, 0, None, False))
    assert started == ([] if is_exported else [tmp_path / "logs"])


@pytest.mark.fault
def test_an_export_server_that_cannot_start_early_is_no_error_of_the_sweep(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.touch()  # where its folder belongs
    start_exports(a_spec(models=["linear"], precisions=["fp32"]), ExportSettings(tmp_path, 0, None, False))
    # then it returned, and the sweep finds the file as it was
    assert logs.is_file()


CELL = Cell("phone", "linear", "fp32", 1, "sme2_off", "timing", 20, 3)


def a_side(pte: str, runner: str = "r1", cell: Cell = CELL) -> Side:
    bundle: Any = SimpleNamespace(runner_sha256=runner)
    return Side(cell, an_export("linear", pte), bundle)


def interleaved(sessions: int, second: str = "p2", sweep: SweepNight = NIGHT) -> list[PlannedSession]:
    """Plan a comparison of the program p1 with another one."""
    return plan_batch(sweep, [(a_side("p1"), a_side(second))], "same_night", sessions).sessions


def test_two_sides_take_turns_after_a_session_that_is_discarded() -> None:
    planned = plan_batch(NIGHT, [(a_side("p1"), a_side("p2"))], "same_night", 4)
    # then the order is A B, B A, A B, B A
    assert [(session.repetition, session.pte_sha256) for session in planned.sessions] == [
        (DISCARDED_REPETITION, "p1"),
        *[(0, "p1"), (0, "p2"), (1, "p2"), (1, "p1"), (2, "p1"), (2, "p2"), (3, "p2"), (3, "p1")],
    ]
    # and what they run is at hand by its hash
    assert {pte for pte, _ in planned.exports} == {"p1", "p2"}
    assert set(planned.runners) == {"r1"}
    # and nothing to compare plans nothing
    assert plan_batch(NIGHT, [], "same_night", 8).sessions == []


def test_a_comparison_is_continued_and_not_repeated() -> None:
    # given a comparison of which five sessions were measured
    sessions = interleaved(4)
    records = [ended(session, "succeeded") for session in sessions[:5]]
    # then the other four are left, under the same ids
    left = remaining_sessions(interleaved(4), records)
    assert [each.session_id for each in left] == [each.session_id for each in sessions[5:]]
    # and a record names its side
    assert planned_session(records[1]) == sessions[1]


def test_a_session_of_the_matrix_is_never_one_of_a_comparison() -> None:
    session = interleaved(4)[1]
    of_matrix = replace(session, cell=CELL)
    assert remaining_sessions([of_matrix], [ended(session, "succeeded")]) == [of_matrix]
    assert session.title == "linear fp32 SME2 off t1 same night A #0 on phone"
    assert of_matrix.title == "linear fp32 SME2 off t1 #0 on phone"


def test_another_night_or_another_content_is_another_comparison() -> None:
    def arm_of(pte: str, sweep_id: str) -> str:
        arm = interleaved(1, pte, NIGHT.model_copy(update={"sweep_id": sweep_id}))[1].cell.arm
        assert arm
        return arm.comparison

    assert len({arm_of("p2", "smoke-1"), arm_of("p3", "smoke-1"), arm_of("p2", "smoke-2")}) == 3
    assert arm_of("p2", "smoke-1") == arm_of("p2", "smoke-1")


def planned_noise(**changes: Any) -> list[PlannedSession]:
    side, spec = a_side("p1"), a_spec(**changes)
    return plan_noise(
        spec, NIGHT, "phone", {("linear", "fp32"): (side.export,)}, {Use("sme2_off", "timing"): side.runner}
    )


def test_noise_sessions_compare_the_first_model_with_itself() -> None:
    assert planned_noise() == []
    sessions = planned_noise(noise_sessions=5)
    assert (len({each.cell for each in sessions}), len({each.session_id for each in sessions})) == (2, 10)
    assert [session.cell.arm.side for session in sessions if session.cell.arm] == list("abbaabbaab")
    assert {(session.cell.model, session.cell.variant, session.repetition) for session in sessions} == {
        ("linear", "sme2_off", index) for index in range(5)
    }
