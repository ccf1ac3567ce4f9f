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
from tasks.judge.decisions import Decision, Decisions, Selector, SeriesNight, starts_baseline
from tasks.judge.incident_parts import Part, find_parts
from tasks.judge.incidents import Incident, find_incidents
from tasks.judge.verdicts.night import Night
from tests.fixtures.nights import decision
from tests.fixtures.series import WEEKS, judge_all, series

BEGIN = date(2026, 10, 1)
BAD = BEGIN + timedelta(days=len(WEEKS))
ONE = f"commit {len(WEEKS) + 1:07x}"
FAILED = {"verdict": "failed", "value": None, "ratio": None, "since": None, "baseline_to": None}


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


def rows_of(nights: Sequence[Night], **names: Any) -> list[dict[str, Any]]:
    """Rows as incident_nights.sql gives them."""
    rows = []
    for night, verdict in zip(nights, judge_all(nights), strict=True):
        row: dict[str, Any] = {"series_id": "s", "device": "phone", "metric": "latency"}
        row |= {"model": "voice", "precision": "fp32", "variant": "sme2_on"}
        row |= {name: vars(verdict)[name] for name in ("verdict", "ratio", "low", "high", "baseline_value", "reason")}
        for name in ("night", "since", "baseline_from", "baseline_to"):
            text = getattr(verdict, name)
            row[name] = date.fromisoformat(text) if text else None
        row["value"] = interquartile_mean(night.figures) if night.figures else None
        row |= {"cell": f"cell {night.night}", "baseline_cell": f"cell {verdict.baseline_to}"}
        row |= {"program": night.content, "runner": "r1", "content": night.content}
        row |= {"program_before": "content 10", "runner_before": "r1", "content_before": "content 10"}
        rows.append(row | {"failures": [], "commits": None, "is_dirty": False, "measured_later": None} | names)
    return rows


def parts_of(nights: Sequence[Night], *decisions: Decision, **names: Any) -> list[Part]:
    """The parts of these nights, which are judged as a load does that has these decisions of the user."""
    made = Decisions(decisions)
    judged, previous = [], None
    for night in nights:
        series = SeriesNight("voice", "fp32", "sme2_on", "phone", date.fromisoformat(night.night))
        accepted = tuple(each for each in made.dates("acceptance", series) if each[1] < series.night)
        is_reset = starts_baseline(made, series, previous)
        judged.append(replace(night, accepted=accepted, starts_baseline=is_reset, is_reset=is_reset))
        previous = series.night
    return find_parts(rows_of(judged, **names), made)


def state(part: Part) -> str:
    """The state, the onset and the night of its end, counted from the first bad night."""
    end = f" to {(part.closed_on - BAD).days}" if part.closed_on else ""
    return f"{part.state} {(part.onset - BAD).days}{end}"


# Times after two quiet weeks, and the states of the incidents that they make.
STATES: dict[str, tuple[Sequence[float], list[str]]] = {
    "one night": ([11], ["suspected 0"]),
    "two nights": ([11, 11], ["confirmed 0"]),
    "a month later it is the level, and still open": ([11] * 30, ["confirmed 0"]),
    "back before it was confirmed": ([11, 10, 10], ["withdrawn 0 to 1"]),
    "one night back": ([11, 11, 10], ["confirmed 0"]),
    "one night faster, and one back": ([11, 9, 11, 10, 11], ["confirmed 0"]),
    "two nights back": ([11, 11, 10, 10], ["fixed 0 to 2"]),
    "an improvement of the new level": ([11] * 12 + [10] * 3, ["fixed 0 to 12"]),
    "an improvement of less than half": ([11] * 12 + [10.7] * 4, ["confirmed 0"]),
    "faster": ([9, 9], []),
    "a second one while the first is open": ([11] * 12 + [12.1] * 12, ["confirmed 0", "confirmed 12"]),
    "a second one before the first is the level": ([11] * 3 + [13.2] * 8, ["confirmed 0", "confirmed 3"]),
    "an improvement closes the newest": ([11] * 12 + [12.1] * 12 + [11] * 3, ["confirmed 0", "fixed 12 to 24"]),
    "a large improvement closes both": ([11] * 12 + [12.1] * 12 + [10] * 3, ["fixed 0 to 24", "fixed 12 to 24"]),
}


@pytest.mark.parametrize(("after", "states"), STATES.values(), ids=STATES)
def test_an_incident_is_open_until_the_time_of_before_is_back(after: Sequence[float], states: list[str]) -> None:
    assert [state(part) for part in parts_of(levels(*after))] == states


def test_content_that_comes_back_opens_its_incident_again() -> None:
    # given a regression that was reverted, and the revert reverted
    (part,) = parts_of(levels(11, 11, 10, 10, 10, 11, 11))
    assert (state(part), part.reopened) == ("confirmed 0", 1)
    # then the nights between are good ones
    assert part.good_nights == [day(2), day(3), day(4)]
    # also one that was withdrawn
    (part,) = parts_of(levels(11, 10, 10, 11, 11))
    assert (state(part), part.reopened) == ("confirmed 0", 1)
    # other content that is as slow is another incident
    nights = levels(11, 11, 10, 10, 10, 11, 11, 11)
    nights[-3:] = [replace(each, content="other") for each in nights[-3:]]
    assert [part.state for part in parts_of(nights)] == ["fixed", "confirmed"]


def test_a_device_that_became_slower_has_an_incident_every_night_until_it_is_over() -> None:
    nights = [replace(each, content="same") for each in series(*WEEKS, *[20] * 10)]
    for end in range(len(WEEKS) + 2, len(nights) + 1):
        (part,) = parts_of(nights[:end])
        assert (part.kind, part.subject, state(part)) == ("device", "phone", "confirmed 0")


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
        row |= FAILED | {"verdict": word, "value": None if word == "failed" else row["value"]}
    (part,) = find_parts(rows[:-1], Decisions())
    assert (state(part), part.last_good) == ("confirmed 0", day(-1))
    (part,) = find_parts(rows, Decisions())
    assert state(part) == "fixed 0 to 3"


@pytest.mark.parametrize(
    ("reason", "states"),
    [
        pytest.param("export_failed", ["fixed 0 to 1", "confirmed 2"], id="two of a model"),
        pytest.param("device_lost", ["confirmed 0"], id="one of a device"),
    ],
)
def test_a_failure_after_a_good_night_is_another_one_unless_its_device_failed(reason: str, states: list[str]) -> None:
    rows = rows_of(levels(10, 10, 10))
    for row in (rows[-3], rows[-1]):
        row |= FAILED | {"failures": [reason], "content": ""}
    assert [state(part) for part in find_parts(rows, Decisions())] == states


def test_suspected_nights_after_one_good_night_have_one_onset() -> None:
    # given nights that are suspected again each night, as those beyond a step that is not the baseline yet
    rows = rows_of(levels(11, 11, 11))
    for row in rows[-3:]:
        row |= {"verdict": "suspected", "since": row["night"], "baseline_to": day(-1)}
    assert [state(part) for part in find_parts(rows, Decisions())] == ["suspected 0"]
    # but one whose last good night is later has another
    rows[-1] |= {"baseline_to": day(1)}
    assert [state(part) for part in find_parts(rows, Decisions())] == ["suspected 0", "suspected 2"]


@pytest.mark.parametrize(
    ("failures", "subject"),
    [(["export_failed"], "voice"), (["device_lost"], "phone"), (["device_lost", "model_crashed"], "voice")],
)
def test_a_failure_is_of_the_device_where_all_its_reasons_are(failures: list[str], subject: str) -> None:
    rows = rows_of(levels(10))
    rows[-1] |= FAILED | {"failures": failures}
    (part,) = find_parts(rows, Decisions())
    assert (part.kind, part.subject) == ("failure", subject)


@pytest.mark.parametrize(
    ("kind", "night", "decided_on", "model", "expected"),
    [
        ("acceptance", 0, 1, "voice", "accepted 0 to 1"),
        ("acceptance", 7, 8, "voice", "accepted 0 to 8"),  # its onset moved by a late bundle
        ("acceptance", 8, 9, "voice", "confirmed 0"),
        ("acceptance", 0, 1, "other", "confirmed 0"),
        ("acceptance", -3, -1, "voice", "accepted 0 to -1"),  # the date is another one in UTC
        ("acceptance", -3, -2, "voice", "confirmed 0"),  # nobody had seen it yet
        ("baseline_reset", 5, 6, "voice", "accepted 0 to 5"),
        ("baseline_reset", 1, 6, "voice", "accepted 0 to 1"),
        ("baseline_reset", 0, 6, "voice", "accepted 0 to 0"),
        ("baseline_reset", -1, 6, "voice", "suspected 0"),
        ("baseline_reset", 5, 6, "other", "confirmed 0"),
    ],
)
def test_an_incident_that_was_accepted_or_began_before_a_reset_is_closed(
    kind: str, night: int, decided_on: int, model: str, expected: str
) -> None:
    at = datetime(*day(decided_on).timetuple()[:3], 9, tzinfo=UTC)
    made = decision(kind=kind, night=day(night), series=Selector(model=model), decided_at=at)
    (part,) = parts_of(levels(*[11] * 12), made)
    assert state(part) == expected


def incidents_of(*parts: list[Part]) -> list[Incident]:
    return find_incidents(part for each in parts for part in each)


# Two bad nights of a device that did not measure the night before them.
WITHOUT = [each for each in levels(11, 11) if each.night != day(-1).isoformat()]


def test_one_cause_is_one_incident_and_two_models_are_two() -> None:
    slower, later = levels(11, 11, 11), levels(10, 11, 11)
    same = [
        parts_of(slower, series_id=f"{precision} {device}", device=device, precision=precision)
        for precision in ("fp32", "fp16")
        for device in ("phone", "mac")
    ]
    (incident,) = incidents_of(*same)
    assert (incident.kind, incident.subject, incident.onset, len(incident.parts)) == ("model", "voice", day(0), 4)
    # also if their last good nights differ
    (incident,) = incidents_of(parts_of(slower), parts_of(WITHOUT, series_id="t", device="mac"))
    assert [part.last_good for part in incident.parts] == [day(-1), day(-2)]
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


def test_one_commit_that_slows_two_models_is_one_incident() -> None:
    voice, eyes = (commits_of(levels(11, 11), model=model, series_id=model) for model in ("voice", "eyes"))
    (incident,) = incidents_of(voice, eyes)
    assert (incident.subject, {part.first["model"] for part in incident.parts}) == (ONE, {"voice", "eyes"})
    # also if a device did not measure the last good night, so that several commits lie between its nights
    rows = commits_of(WITHOUT, model="voice", series_id="t", device="mac")
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


LEVELS = st.lists(st.sampled_from([9.0, 10.0, 11.0, 12.1, 14.0]), min_size=1, max_size=20)


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
