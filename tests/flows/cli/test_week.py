"""The triage report of a week: each event of an incident once, with the decisions on it, in every format."""

import json
from datetime import date

import pytest

from tests.fixtures.command import DataFolder, Etfarm
from tests.fixtures.documented import assert_documented
from tests.fixtures.nights import failed_night_of, night_of, week_of


def fill(data: DataFolder) -> None:
    """Write weeks of models: two that got slower on the 8th, one of which came back, and one that failed."""
    for model, factors in {"slow": [1.2] * 8, "back": [1.2, 1.2, *[1.0] * 6]}.items():
        week_of(data, model__name=model)
        for day, factor in enumerate(factors, 8):
            night_of(data, day, factor, model__name=model, model__pte_sha256=f"p{factor}")
    failed_night_of(data, 15, 2, model__name="lost")


@pytest.fixture
def ids(data_folder: DataFolder) -> dict[str, str]:
    """The ids of the incidents by the name of their model."""
    return dict(data_folder.ask("SELECT subject, incident_id FROM incident"))


def test_a_week_has_each_event_of_its_incidents(etfarm: Etfarm, ids: dict[str, str]) -> None:
    code, printed = etfarm("verdicts", "2026-11-14", "--week", "--format", "json")
    document = json.loads(printed)
    assert_documented("verdicts --week", document)
    assert code == 0
    # the week of the onset has both, and the failure of the next night is open although it is later
    both = sorted([ids["slow"], ids["back"]])
    events = {name: sorted(document[name]) for name in ("opened", "confirmed", "fixed", "open")}
    assert events == {
        "opened": both,
        "confirmed": both,
        "fixed": [ids["back"]],
        "open": sorted([ids["slow"], ids["lost"]]),
    }
    # and one that ends a night later has no longer the onsets
    later = json.loads(etfarm("verdicts", "2026-11-15", "--week", "--format", "json")[1])
    assert (later["first"], later["opened"]) == ("2026-11-09", [ids["lost"]])


def test_decisions_are_below_their_incident(etfarm: Etfarm, ids: dict[str, str]) -> None:
    etfarm("decisions", "note", "ticket 12", "--incident", ids["back"])
    etfarm("decisions", "accept", ids["slow"], "--reason", "more accurate")
    document = json.loads(etfarm("verdicts", "--week", "--format", "json")[1])
    assert (document["last"], document["accepted"]) == (str(date.today()), [ids["slow"]])
    decisions = {name: [text.split(": ")[1] for text in texts] for name, texts in document["decisions"].items()}
    assert [decisions[ids[name]][0].split(" (")[0] for name in ("slow", "back")] == ["more accurate", "ticket 12"]
    assert decisions[ids["lost"]] == []
    # then text and Markdown have the same lines, but for what Markdown escapes
    text, markdown = (etfarm("verdicts", "--week", "--format", form)[1] for form in ("table", "markdown"))
    assert markdown.replace("\\", "") == text
    assert all(name in text for name in ids.values())


@pytest.mark.parametrize("night", ["2026-11-08", "2026-11-09"])
def test_a_baseline_that_is_reset_at_the_onset_or_later_closes_the_incident_under_its_id(
    etfarm: Etfarm, ids: dict[str, str], night: str
) -> None:
    etfarm("decisions", "reset-baseline", "--night", night, "--model", "slow", "--reason", "more accurate")
    # then its week has it, with the reason, and its change
    document = json.loads(etfarm("verdicts", "2026-11-10", "--week", "--format", "json")[1])
    assert (document["accepted"], ids["slow"] in document["open"]) == ([ids["slow"]], False)
    (shown,) = (each for each in document["incidents"] if each["incident"] == ids["slow"])
    assert (shown["onset"], shown["closed_on"], shown["ratio"]) == ("2026-11-08", night, pytest.approx(1.2))
    (decision,) = document["decisions"][ids["slow"]]
    assert "more accurate" in decision


@pytest.mark.parametrize("words", [["--format", "csv"], ["--output", "x.md"], ["--fail-on", "regression"]])
def test_a_week_has_no_other_output(etfarm: Etfarm, words: list[str]) -> None:
    assert etfarm("verdicts", "--week", *words)[0] == 2
