"""`etfarm decisions` and its commands: recorded beside the bundles, shown, revoked, never lost."""

import re
from datetime import date, timedelta
from pathlib import Path

import pytest

from sql.warehouse import query
from tasks.judge.decisions import read_decisions
from tests.fixtures.command import Command, DataFolder, Etfarm
from tests.fixtures.gated import stopped_at
from tests.fixtures.nights import night_of, week_of

OVERVIEW = "SELECT * FROM decision_overview ORDER BY decision_id"
TOMORROW = str(date.today() + timedelta(days=1))
EXCLUDE = ["decisions", "exclude", "2026-11-20", "--reason", "x"]
RESET = ["decisions", "reset-baseline", "--reason", "x"]
NOTE = ["decisions", "note"]


def fill(data: DataFolder) -> None:
    """Write two nights of `toy` on host and phone, and of `other` on host."""
    for night in ("2026-11-19", "2026-11-20"):
        sweep = {"sweep_id": f"smoke-{night}", "name": "smoke", "night": night}
        for model, device in (("toy", "host"), ("toy", "phone"), ("other", "host")):
            data.session([100], model__name=model, device__name=device, sweep=sweep)


def decision_id(printed: str) -> str:
    match = re.match(r"[0-9a-f]{8}(?=: )", printed)
    assert match, printed
    return match[0]


def test_a_reset_is_recorded_shown_and_named_in_one_line(data_folder: DataFolder, etfarm: Etfarm) -> None:
    # when the baseline of one model is reset without naming a night
    code, printed = etfarm("decisions", "reset-baseline", "--model", "toy", "--reason", "new quantization, accepted")
    # then it starts at the newest night, and the line states what it concerns and how to take it back
    number = decision_id(printed)
    undo = f"undo with: etfarm decisions revoke {number} --reason TEXT\n"
    assert (code, printed) == (0, f"{number}: baseline reset from 2026-11-20 for model toy (2 series); {undo}")
    # and it is in the snapshot and in the list, with who and when
    columns = "decision_id, kind, night, model, COALESCE(precision, variant, device), reason, in_force, revoked_at"
    row = (number, "baseline_reset", date(2026, 11, 20), "toy", None, "new quantization, accepted", True, None)
    who_and_when = "decided_by LIKE '_%@_%', now() - decided_at::TIMESTAMPTZ < INTERVAL 1 HOUR"
    assert data_folder.ask(f"SELECT {columns}, {who_and_when} FROM decision_overview") == [(*row, True, True)]
    listed = etfarm("decisions")[1]
    assert re.search(rf"{number} +baseline reset +2026-11-20 +model toy +new quantization, accepted +in force", listed)


def test_an_excluded_night_keeps_its_figures_and_is_recorded_and_revoked_once(
    data_folder: DataFolder, etfarm: Etfarm
) -> None:
    before = data_folder.ask("SELECT * FROM series_latency ORDER BY ALL")
    printed = etfarm("decisions", "exclude", "2026-11-20", "--reason", "hot")[1]
    number = decision_id(printed)
    assert "(3 series)" in printed
    assert data_folder.ask("SELECT * FROM series_latency ORDER BY ALL") == before
    # when it is decided again, then nothing new is recorded, and an id like its own leads to it
    code, printed = etfarm("decisions", "exclude", "2026-11-20", "--reason", "hot, really")
    assert (code, printed.startswith(f"{number}: already recorded by ")) == (0, True)
    code, printed = etfarm("decisions", "revoke", number[:7], "--reason", "x")
    assert (code, f"did you mean `{number}`?" in printed) == (2, True)
    # when it is revoked, then nothing is removed, and list and view show both reasons
    revoked = etfarm("decisions", "revoke", number, "--reason", "was another night")
    assert revoked == (0, f"{number}: revoked; its record stays\n")
    assert len(list((data_folder.bundles / "decisions").iterdir())) == 2
    assert re.search(rf"{number} .* hot +revoked: was another night", etfarm("decisions")[1])
    columns = "in_force, reason, revoked_reason, revoked_by = decided_by, revoked_at >= decided_at"
    assert data_folder.ask(f"SELECT {columns} FROM decision_overview") == [
        (False, "hot", "was another night", True, True)
    ]
    # and it is revoked once; the night can be excluded again
    assert f"{number}: already revoked on 20" in etfarm("decisions", "revoke", number, "--reason", "x")[1]
    assert decision_id(etfarm("decisions", "exclude", "2026-11-20", "--reason", "hot after all")[1]) != number


def test_the_nights_of_an_incident_are_excluded_by_its_id(data: DataFolder, etfarm: Etfarm) -> None:
    # given a model that is slower in one precision for two nights, and another that is not
    week_of(data)
    for day in (8, 9):
        night_of(data, day, 1.2, model__pte_sha256="p2")
        night_of(data, day, sessions=2, model__precision="fp16")
    assert etfarm("warehouse", "load")[0] == 0
    ((incident,),) = data.ask("SELECT incident_id FROM incident")
    code, printed = etfarm("decisions", "exclude", "--incident", incident, "--reason", "wrong file")
    # then these nights of that precision are not compared, and there is no incident
    assert (code, len({decision_id(line) for line in printed.splitlines()})) == (0, 2)
    decided = data.ask("SELECT kind, night, precision, reason FROM decision_overview ORDER BY night")
    assert decided == [("night_exclusion", date(2026, 11, day), "fp32", "wrong file") for day in (8, 9)]
    assert data.ask("SELECT * FROM incident") == []
    assert etfarm("decisions", "exclude", "--incident", incident, "--reason", "x")[0] == 2


def test_notes_on_a_series_are_recorded_each_once_shown_revoked_and_rebuilt(
    data_folder: DataFolder, etfarm: Etfarm
) -> None:
    # when notes are written on a series and on a night, one of them twice
    series = ["--model", "toy", "--device", "phone", "--precision", "fp32"]
    printed = [etfarm(*NOTE, text, *series)[1] for text in ("  known, ticket 12 ", "n" * 500, "known, ticket 12")]
    printed.append(etfarm(*NOTE, "fan replaced", "--device", "phone", "--night", "2026-11-20")[1])
    number = decision_id(printed[0])
    assert ": note for model toy, precision fp32, device phone (1 series); undo with: " in printed[0]
    assert printed[2].startswith(f"{number}: already recorded by ")
    assert ": note on 2026-11-20 for device phone (1 series); undo with: " in printed[3]
    # and a revoked one stays revoked in a warehouse that is created again
    assert etfarm("decisions", "revoke", number, "--reason", "fixed")[0] == 0
    data_folder.warehouse.unlink()
    assert etfarm("warehouse", "load")[0] == 0
    assert data_folder.ask(
        "SELECT kind, night, model, device, reason, in_force FROM decision_overview ORDER BY reason"
    ) == [
        ("note", date(2026, 11, 20), None, "phone", "fan replaced", True),
        ("note", None, "toy", "phone", "known, ticket 12", False),
        ("note", None, "toy", "phone", "n" * 500, True),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*EXCLUDE[:4], " "], "--reason: the text is empty; state why"),
        ([*NOTE, "one\u2028two"], "TEXT: the text has several lines; write one"),
        ([*NOTE, "n" * 501], "TEXT: 501 characters; write at most 500"),
        ([*NOTE, "x", "--precision", "fp31"], "--precision fp31: unknown to the warehouse"),
        ([*NOTE, "x", "--night", "2026-11-21"], "no sessions of that night; nearest: 2026-11-20"),
        (["decisions", "exclude", "20.11.2026", "--reason", "x"], "`20.11.2026` is not a night; write a date such as"),
        (
            ["decisions", "exclude", "1999-01-01", "--reason", "x"],
            "no sessions of that night; nearest: 2",
        ),
        ([*EXCLUDE, "--incident", "3f0c1a2b"], "name a night or an --incident"),
        ([*EXCLUDE[:2], *EXCLUDE[3:]], "name a night or an --incident"),
        ([*EXCLUDE, "--device", "phon"], "--device phon: unknown to the warehouse; did you mean `phone`?"),
        ([*EXCLUDE, "--model", "other", "--device", "phone"], "model other, device phone: no series has all of these"),
        ([*RESET, "--night", TOMORROW], f"--night {TOMORROW}: outside the nights of the matching series; use one"),
        (["decisions", "revoke", "12345678", "--reason", "x"], "list them with `etfarm decisions`"),
    ],
)
def test_a_mistake_records_nothing(loaded: Path, command: Command, words: list[str], sentence: str) -> None:
    assert sentence in command(*words, "--data-dir", loaded).refusal
    assert not (loaded / "bundles" / "decisions").exists()


def test_without_a_warehouse_a_decision_is_recorded_as_it_was_typed(data: DataFolder, etfarm: Etfarm) -> None:
    data.warehouse.unlink()
    code, printed = etfarm(*RESET, "--night", "2026-11-01", "--model", "anything")
    assert (code, "baseline reset from 2026-11-01 for model anything (0 series)" in printed) == (0, True)
    assert not data.warehouse.exists()
    assert len(read_decisions(data.store).in_force) == 1


@pytest.mark.thorough
def test_a_damaged_record_is_named_everywhere(
    data_folder: DataFolder, etfarm: Etfarm, caplog: pytest.LogCaptureFixture
) -> None:
    # given two decisions, the file of the first of which is damaged
    first, second = decision_id(etfarm(*EXCLUDE)[1]), decision_id(etfarm(*RESET)[1])
    (data_folder.bundles / "decisions" / f"{first}.json").write_text("{", encoding="utf-8")
    data_folder.session([100])
    ended = [etfarm("decisions"), *(etfarm("warehouse", word) for word in ("load", "check", "rebuild"))]
    # then the load and the rebuild do their work, and the list has the other decision
    assert [code for code, _ in ended] == [1, 0, 1, 0]
    assert second in ended[0][1]
    assert all(f"{first}.json: not a decision" in text for text in (ended[0][1], ended[2][1], caplog.text))
    assert [row[0] for row in data_folder.ask(OVERVIEW)] == [second]


@pytest.mark.thorough
def test_a_command_killed_after_recording_is_finished_by_the_next_load(data_folder: DataFolder, etfarm: Etfarm) -> None:
    # given a command that is killed between the record and the warehouse
    with stopped_at("decision ", *EXCLUDE, "--data-dir", data_folder.workspace.root):
        pass
    assert query(data_folder.warehouse, OVERVIEW)[1] == []
    assert "recorded, but not in the warehouse; run `etfarm warehouse load`" in etfarm("warehouse", "check")[1]
    etfarm("warehouse", "load")
    assert (len(data_folder.ask(OVERVIEW)), etfarm("warehouse", "check")[0]) == (1, 0)


def test_an_incident_is_accepted_by_its_id_until_the_decision_is_revoked(
    data_folder: DataFolder, etfarm: Etfarm
) -> None:
    # given a model that no session measured
    sweep = {"sweep_id": "smoke-2026-11-20", "name": "smoke", "night": "2026-11-20"}
    data_folder.session(
        sweep=sweep, model__name="third", status="failed", reason_code="export_failed", reason="weights"
    )
    etfarm("warehouse", "load")
    [(incident, state)] = data_folder.ask("SELECT incident_id, state FROM incident")
    assert state == "confirmed"
    printed = etfarm("decisions", "accept", incident, "--reason", "it is gone")[1]
    assert data_folder.ask("SELECT state FROM incident") == [("accepted",)]
    etfarm("decisions", "revoke", decision_id(printed), "--reason", "it is back")
    assert data_folder.ask("SELECT state FROM incident") == [("confirmed",)]
    # and an unknown id is a mistake
    code, printed = etfarm("decisions", "accept", "00000000", "--reason", "x")
    assert code == 2
    assert "`00000000` is not an incident" in printed
