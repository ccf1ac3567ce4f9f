"""A cause that all sessions of a model share is reported once, and each session is recorded with it."""

import io
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from devices.device import Device
from devices.errors import FarmError
from flows.device.job import DeviceJob
from flows.device.measure import log_failed, measure_device
from flows.dispatch import export_step
from flows.export_queue import ExportQueue
from flows.progress import board
from tasks.bundle.record import SessionRecord
from tasks.export.entry import parse_entry
from tasks.export.exported import ExportError
from tasks.measure.prepare import ExportSettings, Runners
from tasks.measure.session.measure import measure
from tests.fixtures.program_builder import Signature, build_program
from tests.fixtures.stand_in import GOOD, write_export
from tests.fixtures.stand_in_job import stand_in_job

BROKEN = "cannot export linear as fp32: ValueError: the weights are missing"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "machine_folder", str(tmp_path / "machine"))


def measured(job: DeviceJob) -> tuple[list[SessionRecord], list[str], str]:
    """Return the records of a job, the titles of the sessions that were shown, and what was printed."""
    shown: list[str] = []
    printed = io.StringIO()
    with board.display(Console(file=printed, width=1000)):
        measure_device(job, lambda title, _: shown.append(title))
    return list(job.results().records), shown, printed.getvalue()


def test_a_model_that_cannot_be_exported_is_not_reported_again_for_its_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def export(*_: object) -> Any:
        raise ExportError(BROKEN, Path("export.log"))

    # given an export that failed, which its step has reported, with the path of the log on this machine
    monkeypatch.setattr("flows.dispatch.make_export", export)
    exports = ExportQueue([("linear", "fp32")])
    export_step.fn(parse_entry("linear"), "fp32", ExportSettings(tmp_path, 0, None, False), exports)
    assert caplog.messages == [f"linear fp32: {BROKEN}; the full log is export.log"]
    records, shown, printed = measured(replace(stand_in_job(tmp_path), exports=exports))
    # then every session is recorded with the cause
    reasons = [(record.status, record.reason_code, record.reason) for record in records]
    assert reasons == [("failed", "export_failed", BROKEN)] * 4
    assert printed.count("acquiring the device") == 1
    # and none repeats it, or seems to run
    assert (shown, BROKEN in printed, "linear" in printed) == ([], False, False)


@pytest.mark.parametrize("cause", ["the device", "the time"])
def test_a_model_that_cannot_be_exported_is_recorded_even_if_no_session_could_run(tmp_path: Path, cause: str) -> None:
    # given a model that could not be exported and another one, on a device that is lost, or after the end of the sweep
    job = stand_in_job(tmp_path, models=["linear", "conv"])
    exports = ExportQueue([("conv", "fp32")], job.exports.now().ready)
    exports.fail(("conv", "fp32"), BROKEN)
    unusable = replace(job, probe=replace(job.probe, unusable="here: no answer"))
    job = unusable if cause == "the device" else replace(job, finish_by=datetime(2026, 1, 2, tzinfo=UTC))
    tally = measure_device(replace(job, exports=exports))
    # then its sessions failed for that reason; those of the other model for that of the device, or are left for later
    reasons = Counter((record.model.name, record.reason_code, record.reason) for record in job.results().records)
    lost = {("linear", "device_unusable", "here: no answer"): 5} if cause == "the device" else {}
    assert reasons == Counter({("conv", "export_failed", BROKEN): 4, **lost})
    assert (tally.failed, tally.dropped) == ((9, 0) if lost else (4, 5))
    # and the device ends badly for its own reason only; the program that is missing is named
    assert (tally.is_bad, tally.without_program) == (bool(lost), {"conv fp32": 4})
    assert tally.summary.endswith("; no program, export failed: conv fp32")


def test_a_backend_that_the_farms_runner_lacks_is_reported_once_and_nothing_is_run(tmp_path: Path) -> None:
    # given a program with two delegates, of which one is not in the runner that the farm builds
    content = build_program({"forward": Signature(chains=[["XnnpackBackend", "CoreMLBackend"]])})
    job = stand_in_job(tmp_path, f'case "$*" in *--etdump_path=*) : >"{tmp_path}/ran";; esac\n{GOOD}')
    job = replace(job, exports=ExportQueue(ready={("linear", "fp32"): (write_export(tmp_path / "mixed", content),)}))
    wheels = {use: replace(runner, kind="wheel") for use, runner in job.runners.by_use.items()}
    records, shown, printed = measured(replace(job, runners=Runners(wheels)))
    # then every session names the model and the backend, and the cause is reported once
    cause = "linear: its program calls CoreMLBackend, which the farm's runner for linux-x86_64 does not have; "
    assert {(record.status, record.reason_code) for record in records} == {("failed", "no_backend")}
    assert all(str(record.reason).startswith(cause) for record in records)
    assert (len(shown), printed.count(cause)) == (1, 1)
    assert not (tmp_path / "ran").exists()
    # and a registered runner may have any backend
    sweep = job.sweep.model_copy(update={"sweep_id": "other-2026-01-02"})
    records, _, _ = measured(replace(job, sweep=sweep))
    assert "no_backend" not in {record.reason_code for record in records}
    assert (tmp_path / "ran").exists()


def test_a_delegate_that_a_device_cannot_run_has_a_reason_and_no_session(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = stand_in_job(tmp_path, sessions=1, delegates=["xnnpack", "mlx"])
    skipped = [(each.model, each.precision, each.device) for each in job.skipped]
    assert skipped == [("linear@delegate=mlx", "fp32", "here")]
    (reason,) = job.skip_reasons
    assert reason.startswith("here: mlx: executorch's wheel has no library of MLXBackend for linux-x86_64; ")
    with caplog.at_level("INFO"):
        tally = measure_device(job)
    assert f"skipped: {reason}" in caplog.messages
    assert (tally.failed, {record.model.name for record in job.results().records}) == (0, {"linear"})


def test_a_session_without_a_result_is_one_line_with_its_reason_and_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # given sessions of a runner that ends with an error
    job = stand_in_job(tmp_path, "exit 3\n")
    # when they are measured, without anything that shows them elsewhere
    measure_device(job)
    # then each is an error that names session, model, device, reason and next step
    failed = [record for record in job.results().records if record.status == "failed"]
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert failed
    for record in failed:
        wanted = f" on {record.device.name}: failed: {record.reason} (session {record.session_id}); next: Read the last"
        [line] = [line for line in lines if wanted in line]
        assert line.startswith("linear fp32 ")
    # and an invalid one is a warning
    caplog.clear()
    invalid = failed[0].model_copy(update={"status": "invalid", "reason": "31 C", "reason_code": "thermal"})
    log_failed("linear on here", invalid)
    (warning,) = caplog.records
    assert warning.levelname == "WARNING"
    assert warning.getMessage().startswith(f"linear on here: invalid: 31 C (session {invalid.session_id}); next: Cool")


def test_a_device_whose_results_cannot_be_written_stops_and_is_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a farm that can record two sessions and no more
    left = [2, 1]

    def measure_two(*words: Any) -> SessionRecord:
        if not left:
            raise FarmError("the disk is full")
        left.pop()
        return measure(*words)

    monkeypatch.setattr("flows.device.measure.measure", measure_two)
    tally = measure_device(stand_in_job(tmp_path))
    assert (tally.succeeded, tally.discarded, tally.is_bad) == (1, 1, True)
    assert "the bundle could not be written: the disk is full" in str(tally.stopped_by)
