"""Two contents measured alternately: the order of their sessions, their ids, and what belongs to no night."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from tasks.bundle.cell import Cell
from tasks.measure.interleaved import Side, plan_batch, plan_noise
from tasks.measure.plan import DISCARDED_REPETITION, PlannedSession, planned_session, remaining_sessions
from tests.fixtures.plans import NIGHT, a_spec, as_wanted, ended

CELL = Cell("phone", "linear", "fp32", 1, "sme2_off", "timing", 20, 3)


def a_side(pte: str, runner: str = "r1", cell: Cell = CELL) -> Side:
    export: Any = SimpleNamespace(
        model="linear", pte_sha256=pte, inputs_sha256="i", content=(pte, "i"), seed=0, executions=as_wanted
    )
    bundle: Any = SimpleNamespace(runner_sha256=runner)
    return Side(cell, export, bundle)


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


def test_the_same_content_on_both_sides_gives_two_cells() -> None:
    sessions = plan_batch(NIGHT, [(a_side("p1"), a_side("p1"))], "noise", 5).sessions[1:]
    assert len({session.cell for session in sessions}) == 2
    assert len({session.session_id for session in sessions}) == 10


def test_a_comparison_is_continued_and_not_repeated() -> None:
    # given a comparison of which five sessions were measured
    sessions = plan_batch(NIGHT, [(a_side("p1"), a_side("p2"))], "same_night", 4).sessions
    records = [ended(session, "succeeded") for session in sessions[:5]]
    # when it is planned again
    again = plan_batch(NIGHT, [(a_side("p1"), a_side("p2"))], "same_night", 4).sessions
    # then the other four are left, under the same ids
    assert [each.session_id for each in remaining_sessions(again, records)] == [
        each.session_id for each in sessions[5:]
    ]
    # and a record names its side
    assert planned_session(records[1]) == sessions[1]


def test_a_session_of_the_matrix_is_never_one_of_a_comparison() -> None:
    (session, *_) = plan_batch(NIGHT, [(a_side("p1"), a_side("p2"))], "same_night", 4).sessions[1:]
    of_matrix = replace(session, cell=CELL)
    assert remaining_sessions([of_matrix], [ended(session, "succeeded")]) == [of_matrix]
    assert session.title == "linear fp32 sme2_off t1 same night A #0 on phone"
    assert of_matrix.title == "linear fp32 sme2_off t1 #0 on phone"


def test_another_night_or_another_content_is_another_comparison() -> None:
    def arm_of(pte: str, sweep_id: str) -> str:
        sweep = NIGHT.model_copy(update={"sweep_id": sweep_id})
        arm = plan_batch(sweep, [(a_side("p1"), a_side(pte))], "same_night", 1).sessions[1].cell.arm
        assert arm
        return arm.comparison

    assert len({arm_of("p2", "smoke-1"), arm_of("p3", "smoke-1"), arm_of("p2", "smoke-2")}) == 3
    assert arm_of("p2", "smoke-1") == arm_of("p2", "smoke-1")


def planned_noise(**changes: Any) -> list[PlannedSession]:
    side, spec = a_side("p1"), a_spec(**changes)
    return plan_noise(spec, NIGHT, "phone", {("linear", "fp32"): (side.export,)}, {("sme2_off", "timing"): side.runner})


def test_noise_sessions_compare_the_first_model_with_itself() -> None:
    assert planned_noise() == []
    sessions = planned_noise(noise_sessions=5)
    assert [session.cell.arm.side for session in sessions if session.cell.arm] == list("abbaabbaab")
    assert {(session.cell.model, session.cell.variant, session.repetition) for session in sessions} == {
        ("linear", "sme2_off", index) for index in range(5)
    }


def test_the_noise_of_a_device_without_the_first_models_export_is_not_measured() -> None:
    assert planned_noise(noise_sessions=5, models=["conv"]) == []
    assert planned_noise(noise_sessions=5, modes=["profile"]) == []


def test_noise_needs_enough_sessions_for_an_interval() -> None:
    with pytest.raises(ValidationError, match="noise_sessions must be 0 or at least 5, which an interval needs"):
        a_spec(noise_sessions=3)
