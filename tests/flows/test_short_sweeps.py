"""What sweeps record, resume and tell, with stand-ins for export and runner, and when nothing is left to measure."""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings
from typer import Exit

from flows import complete_sweep
from flows import sweep as sweeps
from flows.cli.sweep import _print_end
from flows.cli.sweep_output import end_as_json
from flows.device_selection import SweepRequest, choose_devices
from flows.json_log import set_up_json_log
from flows.progress import board
from flows.server.states import state_data
from flows.sweep_preview import preview_sweep
from flows.sweep_result import SweepResult
from sql.errors import WarehouseError
from tasks.bundle.cell import Use
from tasks.maintain.forget import forget_target
from tasks.measure import prepare
from tasks.measure.prepare import ExportStatus, Runners
from tasks.measure.sweep_file import read_sweep
from tasks.measure.sweep_night import sweep_night
from tasks.measure.sweep_plan import SweepPlan
from tasks.store.skipped import read_skipped
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command, run_python
from tests.fixtures.http_server import PASSWORD, webhook
from tests.fixtures.s3 import s3_client
from tests.fixtures.stand_in_checkout import commit, git
from tests.fixtures.stand_in_farm import SWEEP, StandInFarm


@pytest.mark.thorough
def test_a_sweep_resumes_from_s3_and_another_machine_loads_and_traces_it_from_there(
    stand_in_farm: StandInFarm, bucket: str, command: Command, tmp_path: Path
) -> None:
    location = f"s3://{bucket}/farm"
    # when a sweep that keeps its bundles in S3 runs twice
    first, again = (state_data(stand_in_farm.sweep(bundles=location)).message for _ in range(2))
    # then all its sessions are in S3, and the second time there is nothing to measure
    assert first.startswith("sessions: 2 succeeded, 1 discarded; ")
    assert again.startswith("sessions: 3 already done; ")
    assert not (stand_in_farm.data_dir / "bundles").exists()
    listed = s3_client().list_objects_v2(Bucket=bucket)["Contents"]
    assert len([entry for entry in listed if entry["Key"].endswith("/session.json")]) == 3
    # and another machine loads each once, and traces a session by its id
    other = ("--data-dir", tmp_path / "other", "--bundles", location)
    for loaded, already in ((3, 0), (0, 3)):
        told = f"{loaded} loaded, {already} already in the warehouse, 0 refused\n"
        assert command("warehouse", "load", *other).out == told
    [(session_id,), _] = stand_in_farm.ask("SELECT session_id FROM session_latency ORDER BY 1")
    assert command("trace", session_id, "-o", tmp_path / "run.json", *other).code == 0
    about = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["otherData"]
    assert about["session_id"] == session_id


def request_of(farm: StandInFarm) -> SweepRequest:
    """What a start of today's sweep is asked for."""
    spec, workspace = read_sweep(farm.sweep_file), Workspace(farm.data_dir)
    sweep = sweep_night(spec.name, date.today(), workspace.store.sweep_ids(), again=False)
    return SweepRequest(spec, sweep, choose_devices(spec, str(farm.inventory)), workspace)


def ending(farm: StandInFarm) -> SweepResult | None:
    """What a start of today's sweep finds."""
    return complete_sweep.result_if_complete(request_of(farm))


def dry_run(farm: StandInFarm, monkeypatch: pytest.MonkeyPatch) -> SweepPlan:
    """The plan of the dry run of today's sweep, with the stand-ins for its export and its runner."""
    status = ExportStatus("ready", (replace(farm.export, model="linear"),))
    monkeypatch.setattr("flows.sweep_preview.quick_export_status", lambda *_: status)
    runners = Runners({Use("sme2_off", "timing"): farm.runner})
    monkeypatch.setattr("flows.sweep_preview.runners_without_build", lambda *_: runners)
    return preview_sweep(request_of(farm)).plan


def test_that_nothing_is_left_is_found_without_prefect_and_torch() -> None:
    loaded = "import sys, flows.complete_sweep; print({'prefect', 'torch', 'executorch'} & set(sys.modules))"
    assert run_python("-c", loaded).stdout == "set()\n"


@pytest.fixture(scope="module")
def swept(prefect_api: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A sweep, and all that it told: to two services, of which one refuses, in its log, and on the terminal.

    It has a result for every session that the dry run listed, and for no other.
    """
    log, warnings = list[str](), list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: log.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(room) for room in ("flows", "tasks", "devices", "sql")]
    before = [(each, list(each.handlers), each.level) for each in loggers]
    with (
        temporary_settings({PREFECT_API_URL: prefect_api}),
        pytest.MonkeyPatch.context() as patched,
        webhook() as good,
        webhook(500) as bad,
    ):
        # given a sweep file in a git repository with an edited file, a clock that is an hour ahead, and a JSON log
        farm = StandInFarm(tmp_path_factory.mktemp("told"), patched)
        git(farm.folder, "init", "--quiet")
        notes, file = farm.folder / "notes.txt", farm.folder / "etfarm.json"
        notes.write_text("one")
        commit(farm.folder)
        notes.write_text("two")
        patched.setattr(sweeps, "clock_difference_s", lambda: 3600.0)
        patched.setattr(board, "report", warnings.append)
        patched.setenv("ETFARM_NOTIFY", f"{good.url} {bad.url}")
        patched.setenv("ETFARM_LOG", str(file))
        set_up_json_log()
        for each in loggers:
            each.addHandler(handler)
        patched.setattr(prepare, "read_local_export", lambda *_, **__: (farm.export,))
        plan = dry_run(farm, patched)
        assert not plan.is_complete
        done = farm.sweep()
        for each, handlers, level in before:
            each.handlers[:] = handlers
            each.setLevel(level)
        assert done.is_completed()
        listed = {session.session_id for session in plan.devices["here"].left}
        assert {path.parent.name for path in farm.data_dir.glob("bundles/*/*/session.json")} == listed
        assert dry_run(farm, patched).is_complete
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        yield SimpleNamespace(farm=farm, sent=good, end=state_data(done), log=log, lines=lines, warnings=warnings)


def test_a_sweep_sends_one_message_and_a_refusing_service_changes_nothing_but_a_warning(swept: SimpleNamespace) -> None:
    # then there is one message with headline and report
    (received,) = swept.sent.received
    assert "1 of 1 series cannot be judged" in received["title"]
    report = swept.end.message.rpartition("report: ")[2]
    assert received["message"].splitlines() == ["sessions: 2 succeeded, 1 discarded", f"report: {report}"]
    # and one warning, which names the scheme only
    (warning,) = {line for line in swept.log if line.startswith("notification to ")}
    assert warning.startswith("notification to `json` not sent: it answered with HTTP status 500; ")
    # and the secret is in no file and in no output
    assert PASSWORD not in "".join(swept.log)
    written = [path for path in swept.farm.folder.rglob("*") if path.is_file()]
    assert any(path.name == "session.json" for path in written)
    assert [path for path in written if PASSWORD.encode() in path.read_bytes()] == []


def test_a_sweep_records_the_commit_of_its_file_and_warns_of_a_wrong_clock(swept: SimpleNamespace) -> None:
    (warning,) = [each for each in swept.warnings if "clock" in each]
    assert warning.startswith("this machine's clock is 3600 s ahead of the Prefect server's; ")
    sources = [record.sweep.source for record in Workspace(swept.farm.data_dir).store.records(swept.end.sweep_id)]
    found = [(source.commit, source.is_dirty, source.author) for source in sources if source]
    assert found == [(git(swept.farm.folder, "rev-parse", "HEAD"), True, "Test")] * 3


def test_the_lines_of_a_sweep_name_sweep_device_and_session(swept: SimpleNamespace) -> None:
    of_sessions = [line for line in swept.lines if "session" in line]
    sessions = {session for (session,) in swept.farm.ask("SELECT session_id FROM session")}
    assert {line["session"] for line in of_sessions} == sessions
    assert {line["device"] for line in of_sessions} == {"here"}
    # and all lines of the sweep name it
    begun = [line["message"] for line in swept.lines].index(f"sweep {swept.end.sweep_id} on here")
    assert {line.get("sweep") for line in swept.lines[begun:]} == {swept.end.sweep_id}


def test_verdicts_are_reported_also_if_the_noise_of_the_devices_cannot_be_read(
    swept: SimpleNamespace, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[str]:
        raise WarehouseError("a column is missing")

    monkeypatch.setattr(sweeps, "read_noise_lines", fail)
    again = swept.farm.sweep()
    assert again.is_failed()
    assert "; the noise of the devices could not be read: " in str(again.message)
    assert "verdicts could not" not in str(again.message)


def test_a_sweep_without_a_session_ends_with_its_failed_exports_and_skips(
    stand_in_farm: StandInFarm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.dispatch.build_runners", lambda *_: Runners())
    # given a sweep of delegates that this machine has no runner for, of which one does not exist
    stand_in_farm.sweep_file.write_text(f"{SWEEP}delegates: ['no_module:make', mlx]\n", encoding="utf-8")
    ended = stand_in_farm.sweep()
    end = state_data(ended)
    assert ended.is_failed()
    sessions, report = end.lines
    why = "cannot export linear@delegate=no_module:make as fp32: module no_module not found"
    assert sessions.startswith(f"sessions: nothing to do; {why}")
    assert "; skipped: here: no_module:make: your own partitioner needs a registered runner" in sessions
    assert "could not be" not in sessions
    assert report == "no session was recorded, so there is no report"
    # then the terminal and the document state the same, and what was skipped is kept with the failed export first
    workspace = Workspace(stand_in_farm.data_dir)
    with pytest.raises(Exit) as left:
        _print_end(end, True, "text", False, workspace)
    assert left.value.exit_code == 1
    assert capsys.readouterr().out.splitlines()[-2:] == end.lines
    assert json.loads(end_as_json(end, 1, workspace))["cells"] == []
    (file,) = workspace.store.skipped_files()
    reasons = [each.reason for each in read_skipped(workspace.store, file).models]
    assert sum(reason.startswith(why) and "needs a registered runner" in reason for reason in reasons) == 1


def test_a_sweep_with_nothing_left_ends_as_its_flow_does_until_something_changes(
    swept: SimpleNamespace, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given the end of the flow when it finds nothing to measure
    done: StandInFarm = swept.farm
    of_flow = state_data(done.sweep())
    assert of_flow.message.startswith("sessions: 3 already done; report: ")
    # when the same start is planned without it, then the end is the same, and the report is written
    found = ending(done)
    assert found is not None
    assert (found.sweep_id, found.message, found.is_bad) == (of_flow.sweep_id, of_flow.message, False)
    assert found.report is not None
    # but a changed model, one that must be exported, another runner, and a pending comparison are not missed
    for place, name, change in (
        (done, "export", replace(done.export, pte_sha256="f" * 64)),
        (prepare, "read_local_export", lambda *_, **__: None),
        (done, "runner", replace(done.runner, runner_sha256="e" * 64)),
        (complete_sweep, "same_night_jobs", lambda jobs, *_: jobs),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(place, name, change)
            assert ending(done) is None, name
    # nor more sessions, a new device, and a forgotten session
    done.sweep_file.write_text(SWEEP.replace("sessions: 2", "sessions: 3"), encoding="utf-8")
    assert ending(done) is None
    done.sweep_file.write_text(SWEEP, encoding="utf-8")
    inventory = done.inventory.read_text(encoding="utf-8")
    there = {"name": "there", "transport": "local", "root": str(done.folder / "there")}
    done.inventory.write_text(json.dumps({"devices": [*json.loads(inventory)["devices"], there]}), encoding="utf-8")
    assert ending(done) is None
    done.inventory.write_text(inventory, encoding="utf-8")
    assert ending(done) is not None
    session = next(done.data_dir.glob("bundles/*/*/session.json")).parent.name
    forget_target(Workspace(done.data_dir), session, "a test")
    assert ending(done) is None
