"""Incidents: what opens and closes one, what belongs together, and which night it began."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.bundle.robust_statistics import interquartile_mean
from tasks.judge.commits import Commit, commits_between
from tasks.judge.decisions import Decision, Decisions, Selector
from tasks.judge.incident_parts import Part, find_parts
from tasks.judge.incidents import Incident, find_incidents
from tasks.judge.verdicts.night import Night, NightVerdict
from tasks.judge.verdicts.rules import judge_all
from tests.fixtures.series import WEEKS, series

BEGIN = date(2026, 10, 1)
BAD = BEGIN + timedelta(days=len(WEEKS))


def day(number: int) -> date:
    """The first bad night is day 0."""
    return BAD + timedelta(days=number)


def levels(*after: float) -> list[Night]:
    """Two quiet weeks of 10 ms, then nights at these levels; the content changes with each new level."""
    nights = [replace(each, content="content 10") for each in series(*WEEKS, *after)]
    return [
        replace(each, content=f"content {after[number - len(WEEKS)]:g}") if number >= len(WEEKS) else each
        for number, each in enumerate(nights)
    ]


def rows_of(nights: Sequence[Night], verdicts: Sequence[NightVerdict] = (), **names: Any) -> list[dict[str, Any]]:
    """Rows as incident_nights.sql gives them."""
    rows = []
    for night, verdict in zip(nights, verdicts or judge_all(nights), strict=True):
        row: dict[str, Any] = {"series_id": "s", "device": "phone", "metric": "latency"}
        row |= {"model": "voice", "precision": "fp32", "variant": "sme2_on"}
        row |= {name: vars(verdict)[name] for name in ("verdict", "ratio", "low", "high", "baseline_value", "reason")}
        for name in ("night", "since", "baseline_from", "baseline_to"):
            text = getattr(verdict, name)
            row[name] = date.fromisoformat(text) if text else None
        row["value"] = interquartile_mean(night.figures) if night.figures else None
        row |= {"cell": f"cell {night.night}", "baseline_cell": f"cell {verdict.baseline_to}", "content": night.content}
        row |= {
            "program": night.content,
            "program_before": "content 10",
            "runner": "r1",
            "runner_before": "r1",
            "content_before": "content 10",
            "failures": [],
            "commits": None,
            "is_dirty": False,
        }
        rows.append(row | names)
    return rows


def parts_of(nights: Sequence[Night], *decisions: Decision, **names: Any) -> list[Part]:
    return find_parts(rows_of(nights, **names), Decisions(decisions))


def state(part: Part) -> tuple[str, date, date | None]:
    return part.state, part.onset, part.closed_on


@pytest.mark.parametrize(
    ("after", "states"),
    [
        pytest.param([11], [("suspected", day(0), None)], id="one night"),
        pytest.param([11, 11], [("confirmed", day(0), None)], id="two nights"),
        pytest.param([11] * 30, [("confirmed", day(0), None)], id="a month later it is the level, and still open"),
        pytest.param([11, 10, 10], [("withdrawn", day(0), day(1))], id="back before it was confirmed"),
        pytest.param([11, 11, 10], [("confirmed", day(0), None)], id="one night back"),
        pytest.param([11, 11, 10, 10], [("fixed", day(0), day(2))], id="two nights back"),
        pytest.param([11] * 12 + [10] * 3, [("fixed", day(0), day(12))], id="an improvement of the new level"),
        pytest.param([11] * 12 + [10.7] * 4, [("confirmed", day(0), None)], id="an improvement of less than half"),
        pytest.param([9, 9], [], id="faster"),
        pytest.param(
            [11] * 12 + [12.1] * 12,
            [("confirmed", day(0), None), ("confirmed", day(12), None)],
            id="a second one while the first is open",
        ),
        pytest.param(
            [11] * 3 + [13.2] * 8,
            [("confirmed", day(0), None), ("confirmed", day(3), None)],
            id="a second one while the nights of the first are not the level",
        ),
        pytest.param(
            [11] * 12 + [12.1] * 12 + [11] * 3,
            [("confirmed", day(0), None), ("fixed", day(12), day(24))],
            id="an improvement closes the newest",
        ),
        pytest.param(
            [11] * 12 + [12.1] * 12 + [10] * 3,
            [("fixed", day(0), day(24)), ("fixed", day(12), day(24))],
            id="a large improvement closes both",
        ),
    ],
)
def test_an_incident_is_open_until_the_time_of_before_is_back(
    after: list[float], states: list[tuple[str, date, date | None]]
) -> None:
    assert [state(part) for part in parts_of(levels(*after))] == states


def test_content_that_comes_back_opens_its_incident_again() -> None:
    # given a regression that was reverted, and the revert reverted
    (part,) = parts_of(levels(11, 11, 10, 10, 10, 11, 11))
    assert (*state(part), part.reopened) == ("confirmed", day(0), None, 1)
    # then the nights between are good ones
    assert part.good_nights == [day(2), day(3), day(4)]
    # other content that is as slow is another incident
    nights = levels(11, 11, 10, 10, 10, 11, 11, 11)
    nights[-3:] = [replace(each, content="other") for each in nights[-3:]]
    assert [part.state for part in parts_of(nights)] == ["fixed", "confirmed"]


def test_a_device_that_became_slower_has_an_incident_every_night_until_it_is_over() -> None:
    nights = [replace(each, content="same") for each in series(*WEEKS, *[20] * 10)]
    for end in range(len(WEEKS) + 2, len(nights) + 1):
        (part,) = parts_of(nights[:end])
        assert (part.kind, part.subject, *state(part)) == ("device", "phone", "confirmed", day(0), None)


def test_the_figures_of_an_incident_are_those_of_the_night_that_confirmed_it() -> None:
    (part,) = parts_of(levels(11, 11.1, 11.2, 11.2, 11.2))
    assert (part.confirmed_on, part.last_seen) == (day(1), day(4))
    assert part.headline["ratio"] == pytest.approx(1.11, abs=0.003)
    # what changed is what its first night had
    assert (part.first["content"], part.last_good) == ("content 11", day(-1))


@pytest.mark.parametrize("word", ["inaccurate", "failed"])
def test_inaccurate_outputs_and_failures_last_until_the_first_night_without(word: str) -> None:
    rows = rows_of(levels(10, 10, 10, 10))
    for row in rows[-4:-1]:
        row |= {"verdict": word, "ratio": None, "since": None, "baseline_to": None}
        row |= {"value": None} if word == "failed" else {}
    (part,) = find_parts(rows[:-1], Decisions())
    assert state(part) == ("confirmed", day(0), None)
    assert part.last_good == day(-1)
    (part,) = find_parts(rows, Decisions())
    assert state(part) == ("fixed", day(0), day(3))


@pytest.mark.parametrize(
    ("reason", "states"),
    [
        pytest.param("export_failed", [("fixed", day(0), day(1)), ("confirmed", day(2), None)], id="two of a model"),
        pytest.param("device_lost", [("confirmed", day(0), None)], id="one of a device"),
    ],
)
def test_a_failure_after_a_good_night_is_another_one_unless_its_device_failed(
    reason: str, states: list[tuple[str, date, date | None]]
) -> None:
    rows = rows_of(levels(10, 10, 10))
    for row in (rows[-3], rows[-1]):
        row |= {"verdict": "failed", "value": None, "since": None, "baseline_to": None}
        row |= {"failures": [reason], "content": ""}
    assert [state(part) for part in find_parts(rows, Decisions())] == states


def test_suspected_nights_after_one_good_night_have_one_onset() -> None:
    # given nights that are suspected again each night, as those beyond a step that is not the baseline yet
    rows = rows_of(levels(11, 11, 11))
    for row in rows[-3:]:
        row |= {"verdict": "suspected", "since": row["night"], "baseline_to": day(-1)}
    assert [state(part) for part in find_parts(rows, Decisions())] == [("suspected", day(0), None)]
    # but one whose last good night is later has another
    rows[-1] |= {"baseline_to": day(1)}
    assert [part.onset for part in find_parts(rows, Decisions())] == [day(0), day(2)]


@pytest.mark.parametrize(
    ("failures", "subject"),
    [(["export_failed"], "voice"), (["device_lost"], "phone"), (["device_lost", "model_crashed"], "voice")],
)
def test_a_failure_is_of_the_device_where_all_its_reasons_are(failures: list[str], subject: str) -> None:
    rows = rows_of(levels(10))
    rows[-1] |= {"verdict": "failed", "value": None, "failures": failures}
    (part,) = find_parts(rows, Decisions())
    assert (part.kind, part.subject) == ("failure", subject)


def accepted(onset: date, decided_on: date, **series_names: str) -> Decision:
    return Decision(
        id="1a2b3c4d", kind="acceptance", night=onset, reason="expected", decided_by="a@b",
        series=Selector(**series_names), decided_at=datetime(*decided_on.timetuple()[:3], 9, tzinfo=UTC),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (accepted(day(0), day(1), model="voice"), ("accepted", day(1))),
        (accepted(day(7), day(8), model="voice"), ("accepted", day(8))),  # its onset moved by a late bundle
        (accepted(day(8), day(9), model="voice"), ("confirmed", None)),
        (accepted(day(0), day(1), model="other"), ("confirmed", None)),
        (accepted(day(-3), day(-1), model="voice"), ("accepted", day(-1))),  # the date is another one in UTC
        (accepted(day(-3), day(-2), model="voice"), ("confirmed", None)),  # nobody had seen it yet
    ],
)
def test_an_accepted_incident_is_closed(decision: Decision, expected: tuple[str, date | None]) -> None:
    assert decision.night is not None
    is_of_series = decision.series.model == "voice"
    onsets = {
        each.night: ((decision.night, decision.decided_at.date()),)
        for each in levels(*[11] * 12)
        if is_of_series and each.night > str(decision.decided_at.date())
    }
    nights = [replace(each, accepted=onsets.get(each.night, ())) for each in levels(*[11] * 12)]
    (part,) = parts_of(nights, decision)
    assert (part.state, part.closed_on) == expected


@pytest.mark.parametrize(
    ("reset_on", "model", "expected"),
    [
        (day(5), "voice", ("accepted", day(5))),
        (day(1), "voice", ("accepted", day(1))),
        (day(0), "voice", ("accepted", day(0))),
        (day(-1), "voice", ("confirmed", None)),
        (day(5), "other", ("confirmed", None)),
    ],
)
def test_a_baseline_that_was_reset_accepts_the_changes_before_it(
    reset_on: date, model: str, expected: tuple[str, date | None]
) -> None:
    reset = accepted(reset_on, day(6), model=model).model_copy(update={"kind": "baseline_reset"})
    nights = levels(*[11] * 12)
    is_reset = [model == "voice" and each.night == str(reset_on) and reset_on >= day(0) for each in nights]
    judged = [
        replace(each, starts_baseline=is_first, is_reset=is_first)
        for each, is_first in zip(nights, is_reset, strict=True)
    ]
    (part,) = parts_of(judged, reset)
    assert (part.onset, part.state, part.closed_on) == (day(0), *expected)


def incidents_of(*parts: list[Part]) -> list[Incident]:
    return find_incidents(part for each in parts for part in each)


def test_one_cause_is_one_incident_and_two_models_are_two() -> None:
    slower, later = levels(11, 11, 11), levels(10, 11, 11)
    same = [
        parts_of(slower, series_id=f"{precision} {device}", device=device, precision=precision)
        for precision in ("fp32", "fp16")
        for device in ("phone", "mac")
    ]
    (incident,) = incidents_of(*same)
    assert (incident.kind, incident.subject, incident.onset, len(incident.parts)) == ("model", "voice", day(0), 4)
    # then another model in the same night, and the same model in the next night, have their own
    apart = incidents_of(*same, parts_of(slower, model="eyes"), parts_of(later, series_id="int8"))
    assert [(each.subject, each.onset) for each in apart] == [("eyes", day(0)), ("voice", day(0)), ("voice", day(1))]
    assert len({each.incident_id for each in apart}) == 3


def test_a_new_runner_is_one_incident_of_all_models_that_it_slows() -> None:
    runner = {"runner": "r2", "program_before": "p", "program": "p"}
    nights = levels(11, 11)
    (incident,) = incidents_of(*(parts_of(nights, model=model, series_id=model, **runner) for model in ("a", "b")))
    assert incident.subject == "runner r2"
    # where the program changed, too, each model has its own
    both = [parts_of(nights, model=model, series_id=model, runner="r2") for model in ("a", "b")]
    assert [each.subject for each in incidents_of(*both)] == ["a", "b"]


def commits_of(nights: Sequence[Night], **names: Any) -> list[Part]:
    """Parts of nights, with a commit each day."""
    rows = rows_of(nights, **names)
    for row in rows:
        ids = [f"{each:07x}" for each in range((row["night"] - BEGIN).days + 1, 0, -1)]
        row["commits"] = json.dumps([{"id": each, "author": f"Author {each}", "subject": "Change"} for each in ids])
    return find_parts(rows, Decisions())


ONE = f"commit {len(WEEKS) + 1:07x}"


def test_one_commit_that_slows_two_models_is_one_incident() -> None:
    voice, eyes = (commits_of(levels(11, 11), model=model, series_id=model) for model in ("voice", "eyes"))
    (incident,) = incidents_of(voice, eyes)
    assert (incident.subject, {part.first["model"] for part in incident.parts}) == (ONE, {"voice", "eyes"})
    # also if a device did not measure the last good night, so that several commits lie between its nights
    without = [each for each in levels(11, 11) if each.night != day(-1).isoformat()]
    rows = commits_of(without, model="voice", series_id="t", device="mac")
    assert [each.subject for each in incidents_of(voice, rows, eyes)] == [ONE]


@pytest.mark.parametrize("change", ["is_dirty", "commits"])
def test_without_certainty_about_the_only_commit_each_model_has_its_incident(change: str) -> None:
    unsure: dict[str, Any] = {"is_dirty": True} if change == "is_dirty" else {}
    parts = [commits_of(levels(11, 11), model=model, series_id=model, **unsure) for model in ("a", "b")]
    if change == "commits":
        for part in (each for same in parts for each in same):
            assert part.commits is not None
            part.commits = replace(part.commits, is_complete=False)
    assert [each.subject for each in incidents_of(*parts)] == ["a", "b"]


def test_the_commits_of_an_incident_are_those_that_the_last_good_night_did_not_have() -> None:
    def commits(*ids: str) -> list[Commit]:
        return [Commit(id=each, author="Ada", subject="Change") for each in ids]

    # given a branch with older commits that was merged
    merged = commits_between(commits("c", "b", "a"), commits("m", "c", "x", "b"))
    assert merged is not None
    assert ([each["id"] for each in merged.commits], merged.is_complete) == (["m", "x"], True)
    assert merged.candidates == frozenset({"m", "x"})
    # and a good night that is farther back than the recorded ones
    far = commits_between(commits("a"), commits("d", "c"))
    assert far is not None
    assert (len(far.commits), far.is_complete, far.candidates) == (2, False, None)
    assert commits_between([], commits("a")) is None


def test_series_whose_last_good_nights_differ_share_an_incident_if_one_night_can_have_caused_it() -> None:
    # given a device that did not measure the night before the onset
    without = [each for each in levels(11, 11) if each.night != day(-1).isoformat()]
    (incident,) = incidents_of(parts_of(levels(11, 11)), parts_of(without, series_id="t", device="mac"))
    assert [part.last_good for part in incident.parts] == [day(-1), day(-2)]


LEVELS = st.lists(st.sampled_from([9.0, 10.0, 11.0, 12.1, 14.0]), min_size=1, max_size=30)


@given(LEVELS)
def test_a_part_begins_after_its_last_good_night_and_ends_after_its_onset(after: list[float]) -> None:
    nights = levels(*after)
    parts = parts_of(nights)
    assert len({(part.kind, part.onset) for part in parts}) == len(parts)
    for part in parts:
        assert part.last_good is not None
        assert part.last_good < part.onset <= (part.last_seen or part.onset)
        assert part.closed_on is None or part.closed_on > part.onset
        assert (part.closed_on is None) == (part.state in ("suspected", "confirmed"))
    # and every regression of the newest night is in an open one
    newest = rows_of(nights)[-1]
    if newest["verdict"] == "regression":
        assert any(part.state == "confirmed" and part.last_seen == newest["night"] for part in parts)
