"""`etfarm decisions` and its commands: recorded beside the bundles, shown, revoked, never lost."""

import re
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from sql.warehouse import query
from tasks.judge.decisions import read_decisions
from tests.fixtures.command import Command, DataFolder, Etfarm
from tests.fixtures.gated import stopped_at

OVERVIEW = "SELECT * FROM decision_overview ORDER BY decision_id"


def fill(data: DataFolder) -> None:
    """Write two nights of `toy` on host and phone, and of `other` on host."""
    for night in ("2026-11-19", "2026-11-20"):
        for model, device in (("toy", "host"), ("toy", "phone"), ("other", "host")):
            data.session(
                [100],
                model__name=model,
                device__name=device,
                sweep={"sweep_id": f"smoke-{night}", "name": "smoke", "night": night},
            )


def decision_id(printed: str) -> str:
    match = re.match(r"[0-9a-f]{8}(?=: )", printed)
    assert match, printed
    return match[0]


def test_a_reset_is_recorded_shown_and_named_in_one_line(farm: DataFolder, etfarm: Etfarm) -> None:
    # when the baseline of one model is reset without naming a night
    code, printed = etfarm("decisions", "reset-baseline", "--model", "toy", "--reason", "new quantization, accepted")
    # then it starts at the newest night, and the line states what it concerns and how to take it back
    number = decision_id(printed)
    assert code == 0
    assert printed == (
        f"{number}: baseline reset from 2026-11-20 for model toy (2 series); "
        f"undo with: etfarm decisions revoke {number} --reason TEXT\n"
    )
    # and it is in the snapshot and in the list, with who and when
    columns = "decision_id, kind, night, model, COALESCE(precision, variant, device), reason, in_force, revoked_at"
    row = (number, "baseline_reset", date(2026, 11, 20), "toy", None, "new quantization, accepted", True, None)
    assert farm.ask(f"SELECT {columns} FROM decision_overview") == [row]
    assert farm.ask("SELECT decided_by LIKE '_%@_%', now() - decided_at::TIMESTAMPTZ < INTERVAL 1 HOUR "
                      "FROM decision_overview") == [(True, True)]  # fmt: skip
    code, listed = etfarm("decisions")
    assert (code, len(listed.splitlines())) == (0, 4)
    assert re.search(rf"{number} +baseline reset +2026-11-20 +model toy +new quantization, accepted +in force", listed)


def test_an_excluded_night_keeps_its_figures(farm: DataFolder, etfarm: Etfarm) -> None:
    before = farm.ask("SELECT * FROM series_latency ORDER BY ALL")
    assert "(3 series)" in etfarm("decisions", "exclude", "2026-11-20", "--reason", "air conditioning failed")[1]
    assert farm.ask("SELECT * FROM series_latency ORDER BY ALL") == before
    assert len(farm.session_ids()) == 6
    assert etfarm("warehouse", "load") == (0, "0 loaded, 6 already in the warehouse, 0 refused\n")


def test_a_revocation_is_a_record_too(farm: DataFolder, etfarm: Etfarm) -> None:
    number = decision_id(etfarm("decisions", "exclude", "2026-11-20", "--reason", "hot")[1])
    # when a decision is revoked
    code, printed = etfarm("decisions", "revoke", number, "--reason", "was another night")
    # then nothing was removed, and list and view show both reasons
    assert (code, printed) == (0, f"{number}: revoked; its record stays\n")
    assert len(list((farm.bundles / "decisions").iterdir())) == 2
    assert re.search(rf"{number} .* hot +revoked: was another night", etfarm("decisions")[1])
    columns = "in_force, reason, revoked_reason, revoked_by = decided_by, revoked_at >= decided_at"
    assert farm.ask(f"SELECT {columns} FROM decision_overview") == [(False, "hot", "was another night", True, True)]
    # and it is revoked once; the night can be excluded again
    assert f"{number}: already revoked on 20" in etfarm("decisions", "revoke", number, "--reason", "x")[1]
    assert decision_id(etfarm("decisions", "exclude", "2026-11-20", "--reason", "hot after all")[1]) != number


def test_the_same_decision_is_recorded_once_and_found_by_an_id_like_its_own(farm: DataFolder, etfarm: Etfarm) -> None:
    number = decision_id(etfarm("decisions", "exclude", "2026-11-20", "--reason", "hot")[1])
    code, printed = etfarm("decisions", "exclude", "2026-11-20", "--reason", "hot, really")
    assert (code, printed.startswith(f"{number}: already recorded by ")) == (0, True)
    assert len(farm.ask(OVERVIEW)) == 1
    code, printed = etfarm("decisions", "revoke", number[:7], "--reason", "x")
    assert (code, f"did you mean `{number}`?" in printed) == (2, True)


def test_a_note_on_a_series_is_recorded_shown_revoked_and_rebuilt(farm: DataFolder, etfarm: Etfarm) -> None:
    # when a note is written on a series, and one on a night of it
    series = ["--model", "toy", "--device", "phone", "--precision", "fp32"]
    code, printed = etfarm("decisions", "note", "  known, ticket 12 ", *series)
    number = decision_id(printed)
    # then the line states what it concerns and how to take it back
    assert (code, printed) == (
        0,
        f"{number}: note for model toy, precision fp32, device phone (1 series); "
        f"undo with: etfarm decisions revoke {number} --reason TEXT\n",
    )
    on_night = etfarm("decisions", "note", "fan replaced", "--device", "phone", "--night", "2026-11-20")[1]
    assert ": note on 2026-11-20 for device phone (1 series); undo with: " in on_night
    # and both are in the snapshot and the list
    query_text = "SELECT kind, night, model, device, reason, in_force FROM decision_overview ORDER BY reason"
    fan = ("note", date(2026, 11, 20), None, "phone", "fan replaced", True)
    assert farm.ask(query_text) == [fan, ("note", None, "toy", "phone", "known, ticket 12", True)]
    assert re.search(rf"{number} +note +model toy, .* +known, ticket 12 +in force", etfarm("decisions")[1])
    # and a revoked one stays revoked in a warehouse that is created again
    assert etfarm("decisions", "revoke", number, "--reason", "fixed")[0] == 0
    farm.warehouse.unlink()
    assert etfarm("warehouse", "load")[0] == 0
    assert farm.ask(query_text) == [fan, ("note", None, "toy", "phone", "known, ticket 12", False)]


def test_a_series_can_have_several_notes_but_each_text_once(farm: DataFolder, etfarm: Etfarm) -> None:
    number = decision_id(etfarm("decisions", "note", "ticket 12", "--model", "toy")[1])
    assert decision_id(etfarm("decisions", "note", "ticket 13", "--model", "toy")[1]) != number
    code, printed = etfarm("decisions", "note", "ticket 12", "--model", "toy")
    assert (code, printed.startswith(f"{number}: already recorded by ")) == (0, True)
    assert len(farm.ask(OVERVIEW)) == 2


def test_a_note_has_at_most_500_characters(farm: DataFolder, etfarm: Etfarm) -> None:
    assert etfarm("decisions", "note", "n" * 501) == (2, "etfarm: TEXT: 501 characters; write at most 500\n")
    assert not (farm.bundles / "decisions").exists()
    assert etfarm("decisions", "note", "n" * 500)[0] == 0


TOMORROW = str(date.today() + timedelta(days=1))
EXCLUDE = ["decisions", "exclude", "2026-11-20", "--reason", "x"]
RESET = ["decisions", "reset-baseline", "--reason", "x"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*EXCLUDE[:4], " "], "--reason: the text is empty; state why"),
        ([*EXCLUDE[:4], "hot\nhumid"], "--reason: the text has several lines; write one"),
        (["decisions", "note", " "], "TEXT: the text is empty; state why"),
        (["decisions", "note", "one\u2028two"], "TEXT: the text has several lines; write one"),
        (["decisions", "note", "x", "--precision", "fp31"], "--precision fp31: unknown to the warehouse"),
        (["decisions", "note", "x", "--night", "2026-11-21"], "no sessions of that night; did you mean `2026-11-20`?"),
        (["decisions", "exclude", "20.11.2026", "--reason", "x"], "`20.11.2026` is not a night; write a date such as"),
        (
            ["decisions", "exclude", "2026-11-21", "--reason", "x"],
            "no sessions of that night; did you mean `2026-11-20`?",
        ),
        (
            ["decisions", "exclude", "1999-01-01", "--reason", "x"],
            "no sessions of that night; their newest night is 2026",
        ),
        ([*EXCLUDE, "--device", "phon"], "--device phon: unknown to the warehouse; did you mean `phone`?"),
        ([*EXCLUDE, "--model", "zzz"], "--model zzz: unknown to the warehouse; known: other, toy"),
        ([*EXCLUDE, "--model", "other", "--device", "phone"], "model other, device phone: no series has all of these"),
        ([*RESET, "--variant", "sme2_of"], "--variant sme2_of: unknown to the warehouse; did you mean `sme2_off`?"),
        ([*RESET, "--night", TOMORROW], f"--night {TOMORROW}: outside the nights of the matching series; use one"),
        (["decisions", "revoke", "12345678", "--reason", "x"], "list them with `etfarm decisions`"),
    ],
)
def test_a_mistake_is_answered_in_one_sentence_and_records_nothing(
    loaded: Path, command: Command, words: list[str], sentence: str
) -> None:
    ended = command(*words, "--data-dir", loaded)
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    assert sentence in ended.err
    assert not (loaded / "bundles" / "decisions").exists()


def test_without_a_warehouse_a_decision_is_recorded_as_it_was_typed(data: DataFolder, etfarm: Etfarm) -> None:
    code, printed = etfarm(
        "decisions", "reset-baseline", "--night", "2026-11-01", "--model", "anything", "--reason", "x"
    )
    assert (code, "baseline reset from 2026-11-01 for model anything (0 series)" in printed) == (0, True)
    assert not data.warehouse.exists()
    assert len(read_decisions(data.store).in_force) == 1


@pytest.mark.thorough
def test_a_damaged_record_is_named_by_every_command_and_stops_none(
    farm: DataFolder, etfarm: Etfarm, caplog: pytest.LogCaptureFixture
) -> None:
    # series two decisions, the file of the first of which is damaged
    first, second = decision_id(etfarm(*EXCLUDE)[1]), decision_id(etfarm(*RESET)[1])
    (farm.bundles / "decisions" / f"{first}.json").write_text("{", encoding="utf-8")
    farm.session([100])
    # when the list, a load, a rebuild and a check read them
    listed, loaded, checked = etfarm("decisions"), etfarm("warehouse", "load"), etfarm("warehouse", "check")
    rebuilt = etfarm("warehouse", "rebuild")
    # then the load and the rebuild do their work, and the list has the other decision
    assert (listed[0], loaded[0], checked[0], rebuilt[0]) == (1, 0, 1, 0)
    assert second in listed[1]
    assert "1 loaded, 6 already" in loaded[1]
    for _, printed in (listed, checked):
        assert f"{first}.json: not a decision" in printed
    warnings = [each.levelname for each in caplog.records if f"{first}.json: not a decision" in each.message]
    assert set(warnings) == {"WARNING"}
    assert [row[0] for row in farm.ask(OVERVIEW)] == [second]


@pytest.mark.thorough
def test_a_command_that_is_killed_after_recording_is_finished_by_the_next_load(
    farm: DataFolder, etfarm: Etfarm
) -> None:
    # series a command that is killed between the record and the warehouse
    with stopped_at("decision ", *EXCLUDE, "--data-dir", farm.workspace.root):
        pass
    assert query(farm.warehouse, OVERVIEW)[1] == []
    assert "recorded, but not in the warehouse; run `etfarm warehouse load`" in etfarm("warehouse", "check")[1]
    # then the next load does the rest
    etfarm("warehouse", "load")
    assert len(farm.ask(OVERVIEW)) == 1
    assert etfarm("warehouse", "check")[0] == 0


@pytest.mark.thorough
def test_decisions_in_object_storage_reach_the_warehouse_of_another_machine(
    farm: DataFolder, etfarm: Etfarm, bucket: str, tmp_path: Path
) -> None:
    # series decisions recorded in S3 on one machine, one of them revoked
    store = ["--bundles", f"s3://{bucket}/farm"]
    etfarm("decisions", "reset-baseline", "--reason", "accepted", *store)
    number = decision_id(etfarm(*EXCLUDE, *store)[1])
    etfarm("decisions", "revoke", number, "--reason", "no", *store)
    assert not (farm.bundles / "decisions").exists()
    # when another machine loads from there into its warehouse
    other = tmp_path / "other.duckdb"
    shutil.copyfile(farm.warehouse, other)
    rows = farm.ask(OVERVIEW)
    etfarm("warehouse", "load", *store, "--warehouse", other)
    # then it has the same decisions, and lists them
    assert query(other, OVERVIEW)[1] == rows
    assert len(rows) == 2
    assert "revoked: no" in etfarm("decisions", *store)[1]
