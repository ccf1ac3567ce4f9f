"""The plan: which sessions a device owes a sweep, in which order, and under which id."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.ondevice.facts import Facts
from tasks.bundle.cell import VARIANTS
from tasks.export.exported import Case, Export
from tasks.measure.plan import (
    DISCARDED_REPETITION,
    FIRST_SESSION,
    attempts_among,
    plan_device,
    planned_session,
    possible_variants,
    remaining_sessions,
    thread_counts,
)
from tasks.measure.sweep_filter import selector_mismatches
from tests.fixtures.plans import NIGHT, a_spec, as_wanted, ended, planned


def test_every_cell_gets_its_sessions_and_one_more_is_discarded_first() -> None:
    # given two models in two precisions, on and off, four sessions a cell
    sessions = planned(a_spec())
    # then the first is the one discarded automatically, and each of the eight cells has four
    assert sessions[0].repetition == DISCARDED_REPETITION
    assert set(Counter(session.cell for session in sessions[1:]).values()) == {4}
    assert len(sessions) == 1 + 2 * 2 * 3 * 4


def test_the_discarded_session_is_one_that_can_run() -> None:
    # given a model whose export failed, first in the seeded order or not
    spec = a_spec(models=["linear", "conv"], precisions=["fp32"])
    exports: Any = {
        ("conv", "fp32"): (SimpleNamespace(model="conv", pte_sha256="p", inputs_sha256="i", executions=as_wanted),)
    }
    runners: Any = {(variant, "timing"): SimpleNamespace(runner_sha256="r") for variant in spec.variants}
    # then the other model's session is the one to discard
    sessions = plan_device(spec, NIGHT, "phone", facts=Facts(), exports=exports, runners=runners)
    assert (sessions[0].repetition, sessions[0].cell.model) == (DISCARDED_REPETITION, "conv")


def test_variants_stand_side_by_side_and_swap_each_round() -> None:
    # given the order of one cell's variants over the rounds
    sessions = planned(a_spec(models=["linear"], precisions=["fp32"]))[1:]
    # then each round is the one before in reverse
    order = " ".join(session.cell.variant.removeprefix("sme2_") for session in sessions)
    assert order == "on sme1 off off sme1 on on sme1 off off sme1 on"


def test_pairs_of_a_round_are_adjacent_in_a_seeded_order() -> None:
    sessions = planned(a_spec())[1:]
    for first, second in list(pairwise(sessions))[::3]:
        assert replace(first.cell, variant=second.cell.variant) == second.cell
    assert planned(a_spec())[1:] == sessions
    assert planned(a_spec(seed=1))[1:] != sessions


def test_a_device_runs_the_variants_that_it_supports_or_all_if_that_is_unknown() -> None:
    assert {s.cell.variant for s in planned(a_spec(), sme2=False)} == {"sme2_off"}
    assert {s.cell.variant for s in planned(a_spec(), sme2=None)} == {"sme2_on", "sme1", "sme2_off"}
    assert planned(a_spec(variants=["sme2_on"]), sme2=False) == []
    assert possible_variants(VARIANTS, Facts(sme=True, sme2=False)) == ["sme1", "sme2_off"]


def test_all_threads_are_the_cores_of_the_device_once_and_none_if_these_are_unknown() -> None:
    assert thread_counts([1, 2, "all"], Facts(cores=8)) == [1, 2, 8]
    assert thread_counts([1, 2, "all"], Facts(cores=2)) == [1, 2]
    assert thread_counts([1, 2, "all"], Facts()) == [1, 2]


def test_sessions_for_kernels_come_last() -> None:
    modes = [session.cell.mode for session in planned(a_spec(modes=["profile", "timing"]))]
    assert modes == sorted(modes, key=["timing", "profile"].index)
    assert modes.count("profile") == 12


@pytest.mark.parametrize(
    ("platform", "planned_modes"),
    [("linux-aarch64", {"selected"}), ("android-arm64", {"selected"}), (None, {"selected"}), ("linux-x86_64", set())],
)
def test_selected_kernels_are_planned_on_platforms_that_show_them(
    platform: str | None, planned_modes: set[str]
) -> None:
    spec, facts = a_spec(modes=["selected"]), Facts(platform=platform)
    sessions = plan_device(spec, NIGHT, "phone", facts=facts, exports={}, runners={})
    assert {session.cell.mode for session in sessions} == planned_modes


def test_ids_are_the_same_every_time_and_no_two_sessions_share_one() -> None:
    sessions = planned(a_spec())
    assert [s.session_id for s in sessions] == [s.session_id for s in planned(a_spec())]
    assert len({s.session_id for s in sessions}) == len(sessions)


@pytest.mark.parametrize("changed", [{"pte": "other"}, {"runner": "other"}])
def test_another_model_or_runner_is_another_session(changed: dict[str, Any]) -> None:
    before, after = planned(a_spec()), planned(a_spec(), **changed)
    assert {s.session_id for s in before}.isdisjoint(s.session_id for s in after)


def test_what_succeeded_is_not_run_again() -> None:
    # given a sweep of which three sessions and the discarded one have ended
    sessions = planned(a_spec())
    done = [ended(sessions[0], "invalid", FIRST_SESSION), *(ended(s, "succeeded") for s in sessions[1:4])]
    # then the rest is left, in the same order, at its first attempt
    assert remaining_sessions(sessions, done) == sessions[4:]


@pytest.mark.parametrize(
    ("second", "is_forgotten"), [("invalid", False), ("succeeded", True)], ids=["failed twice", "forgotten"]
)
def test_what_failed_or_was_forgotten_is_measured_again_under_a_new_id(second: str, is_forgotten: bool) -> None:
    # given a session that failed once, and then failed again, or succeeded and was forgotten
    sessions = planned(a_spec())
    records = [ended(sessions[1], "failed", "device_lost"), ended(replace(sessions[1], attempt=2), second)]
    # when the sweep is started again
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
    # when the sweep is started again
    again = remaining_sessions(sessions, [failed], used_ids={*taken, failed.session_id})
    # then each gets the first attempt whose id is free
    assert [session.attempt for session in again[1:4]] == [2, 3, 3]
    assert {session.session_id for session in again}.isdisjoint({*taken, failed.session_id})


def test_attempts_of_planned_sessions_are_recognized_by_their_ids() -> None:
    sessions = planned(a_spec())
    mine = {sessions[1].session_id, replace(sessions[2], attempt=7).session_id}
    assert attempts_among(sessions, {*mine, "0" * 16}) == mine
    assert attempts_among(sessions, set()) == set()


def test_a_record_answers_the_session_that_was_planned() -> None:
    for session in planned(a_spec()):
        assert planned_session(ended(session, "succeeded")) == session


def test_a_mismatch_names_the_label_and_both_values() -> None:
    assert selector_mismatches({"tier": "a"}, {"tier": "a", "site": "b"}) == []
    assert selector_mismatches({"tier": "a", "soc": "m4"}, {"tier": "b"}) == [
        "label tier is b, the sweep selects a",
        "label soc is not set, the sweep selects m4",
    ]


def test_a_session_has_an_execution_for_each_token_that_its_case_writes() -> None:
    # given a sweep with 20 executions, 3 of them warm-up, and cases of 64 and of 2 tokens
    def executions(steps: int | None) -> tuple[int, int]:
        case = Case(steps=steps)
        made = Export(Path(), "k", "llm", "fp32", 0, "p", 1, {}, [], [], 0.0, case)
        exports: Any = {("linear", "fp32"): (made,)}
        spec = a_spec(models=["linear"], precisions=["fp32"], executions=20, warmup_executions=3)
        runners: Any = {(variant, "timing"): SimpleNamespace(runner_sha256="r") for variant in spec.variants}
        cell = plan_device(spec, NIGHT, "phone", facts=Facts(), exports=exports, runners=runners)[0].cell
        return cell.executions, cell.warmup_executions

    assert [executions(steps) for steps in (None, 64, 2)] == [(20, 3), (64, 3), (2, 1)]
