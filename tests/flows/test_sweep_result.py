"""The message at the end of a sweep: what it contains, when it is sent, and that it never changes the sweep's end."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from flows.device.job import DeviceTally
from flows.server.states import state_data
from flows.sweep_result import SweepResult, build_message, notify_end, notify_of_error
from sql.errors import WarehouseError
from tasks.measure.health import Registry
from tasks.results.verdicts import VerdictRow
from tasks.store.workspace import Workspace
from tests.fixtures.http_server import PASSWORD, webhook
from tests.fixtures.stand_in_farm import StandInFarm

REGRESSION = VerdictRow(
    model="linear", device="here", without_times=None, precision="fp32", threads=1, differs=None, cell="c",
    variant="sme2_off", metric="latency", verdict="regression", baseline_value=10e6, value=11e6, ratio=1.1, low=1.08,
    high=1.12, noise_floor=0.02, baseline_nights=3, since=date(2026, 11, 20), changed=".pte file",
    reason="+10.0 % (11 ms) against 3 earlier nights", cause="`Convolution` +11.0 %",
    sessions=8, night=date(2026, 11, 21), baseline_to=date(2026, 11, 20), series_id="0123456789abcdef",
)  # fmt: skip
QUIET = replace(REGRESSION, model="conv", verdict="no change", ratio=1.0)


def result_of(workspace: Workspace, rows: list[VerdictRow], tally: DeviceTally) -> SweepResult:
    """The result of a sweep whose steps all completed."""
    report = workspace.reports / "nightly-2026-11-21" / "report.html"
    return SweepResult("nightly-2026-11-21", [tally], {}, "regression", verdicts=rows, report=report)


def test_the_message_has_headline_counts_regressions_devices_and_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a night with a regression, and a device that was lost for the third time
    workspace = Workspace(tmp_path)
    monkeypatch.setenv("ETFARM_REPORT_URL", "https://farm.example/reports/")
    monkeypatch.setenv("ETFARM_SITE_URL", "https://farm.example/farm/")
    for _ in range(3):
        Registry(workspace.registry).strike("pixel-1", "no answer")
    tally = DeviceTally("pixel-1", succeeded=5, failed=2, unusable="pixel-1: no answer")
    # when its message is made
    message = build_message(result_of(workspace, [REGRESSION, QUIET], tally), workspace)
    # then it states all of that, numbers first
    assert message.title == (
        "nightly-2026-11-21 failed: 1 of 2 series slower: linear fp32 on here with SME2 off and one thread +10.0 %"
        " since 2026-11-20; without a change: 1."
    )
    counts, regression, lost, quarantined, link, page = message.body.splitlines()
    assert counts == "sessions: 5 succeeded, 2 failed"
    assert regression == (
        "regression: linear fp32 on here, SME2 off, one thread: +10.0 % (11 ms) against 3 earlier nights "
        "(eight sessions, 95 % interval +8.0 to +12.0 %); cause: `Convolution` +11.0 %; changed: .pte file"
    )
    assert lost == "pixel-1: no answer"
    assert quarantined.startswith("pixel-1 is quarantined until ")
    assert link == "report: https://farm.example/reports/nightly-2026-11-21/report.html"
    assert page == "page: https://farm.example/farm/nights/2026-11-21.html"


def test_a_model_that_failed_is_in_title_message_and_end_state_once_for_each_reason(tmp_path: Path) -> None:
    # given a model that could not be exported, on a device that was lost afterwards, and on two others
    why = "cannot export conv as fp32: ValueError: no weights"
    failed = replace(
        REGRESSION, model="conv", verdict="failed", value=None, baseline_value=None, ratio=None, low=None, high=None,
        baseline_nights=0, sessions=0, cause=None, changed=None, reason=f"2 of 2 sessions failed (x): {why}",
    )  # fmt: skip
    rows = [
        failed,
        *(replace(failed, device=name, variant=variant) for name in "ab" for variant in ("sme2_on", "sme1")),
    ]
    tallies = [
        DeviceTally("here", failed=2, first_reason="it crashed"),
        *(DeviceTally(name, failed=4, first_reason=why) for name in "ab"),
    ]
    # when the sweep ends, on the first night of the model or later
    for others in ([], [QUIET]):
        result = replace(result_of(Workspace(tmp_path), [*rows, *others], tallies[0]), tallies=tallies)
        message = build_message(result, Workspace(tmp_path))
        # then the title counts its series, and a line has the reason, which its devices do not repeat
        assert message.title.endswith(
            f": No series slower: {len(others)} of {5 + len(others)} without a change; failed: 5."
        )
        line = f"failed: conv fp32 on here, conv fp32 on a, conv fp32 on b: {failed.reason}"
        assert message.body.splitlines()[:-1] == ["sessions: 10 failed", line, "here: it crashed"]
        assert result.message.startswith(f"sessions: 10 failed; {line}; here: it crashed; report: ")
        # and it is bad whatever verdicts the exit code is asked for, as with any failed session
        assert (result.is_bad, replace(result, fail_on="never").is_bad) == (True, True)


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_session_that_cannot_be_loaded_fails_the_sweep_unless_it_is_measured_again(
    tmp_path: Path, is_replaced: bool
) -> None:
    tally = DeviceTally("here", succeeded=4, replaced={"0a"} if is_replaced else set())
    result = replace(result_of(Workspace(tmp_path), [QUIET], tally), refused={"0a": "0a/model.etdump: missing"})
    assert result.is_bad != is_replaced
    assert ("; 1 could not be loaded: 0a/model.etdump: missing; " in result.message) != is_replaced


def test_the_end_names_three_devices_with_failed_sessions_and_counts_the_others(tmp_path: Path) -> None:
    # given a night in which sessions of four devices failed or were invalid, and of one none
    result = result_of(Workspace(tmp_path), [QUIET], DeviceTally("good", succeeded=4))
    lost = DeviceTally("a", failed=4, unusable="a: no answer")
    crashed = [DeviceTally(name, succeeded=3, failed=1, first_reason="it crashed") for name in "bc"]
    hot = DeviceTally("d", succeeded=3, invalid=1, first_reason="too hot")
    result = replace(result, tallies=[*result.tallies, lost, *crashed, hot])
    # then the end state has the reasons of three, between the counts and the report
    assert result.is_bad
    assert result.message.startswith(
        "sessions: 13 succeeded, 6 failed, 1 invalid; a: no answer; b: it crashed; c: it crashed; and 1 more; report: "
    )
    # and the message has all
    body = build_message(result, Workspace(tmp_path)).body.splitlines()
    assert body[1:-1] == ["a: no answer", "b: it crashed", "c: it crashed", "d: too hot"]


@pytest.mark.parametrize(("devices", "last"), [(10, "phone-10: too hot"), (11, "1 more devices in the report")])
def test_a_message_lists_ten_devices_and_counts_the_others(tmp_path: Path, devices: int, last: str) -> None:
    tallies = [DeviceTally(f"phone-{each}", failed=1, first_reason="too hot") for each in range(1, devices + 1)]
    result = replace(result_of(Workspace(tmp_path), [QUIET], tallies[0]), tallies=tallies)
    lines = build_message(result, Workspace(tmp_path)).body.splitlines()
    assert lines[10] == "phone-10: too hot"
    assert lines[-2] == last


def test_a_message_lists_ten_regressions_and_counts_the_others(tmp_path: Path) -> None:
    rows = [replace(REGRESSION, model=f"model_{number}") for number in range(13)]
    result = result_of(Workspace(tmp_path), rows, DeviceTally("here", succeeded=13))
    lines = build_message(result, Workspace(tmp_path)).body.splitlines()
    assert [line.startswith("regression: model_") for line in lines] == [False, *[True] * 10, False, False]
    assert lines[-2] == "3 more in the report"
    assert lines[-1] == f"report: {tmp_path}/reports/nightly-2026-11-21/report.html"


def test_a_quiet_night_is_notified_once_and_again_only_if_something_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    nothing_new = result_of(workspace, [QUIET], DeviceTally("here", already_done=4))
    with webhook() as hook:
        monkeypatch.setenv("ETFARM_NOTIFY", hook.url)
        # given a sweep that was killed before its message was sent: the next start measures nothing, but sends it
        notify_end(nothing_new, workspace)
        assert [each["type"] for each in hook.received] == ["success"]
        # when it is started again, then nothing is sent
        notify_end(nothing_new, workspace)
        assert len(hook.received) == 1
        # and if a start measured something, a message is sent
        more = result_of(workspace, [QUIET], DeviceTally("here", already_done=3, succeeded=1))
        notify_end(more, workspace)
        assert len(hook.received) == 2


def test_an_error_that_stops_a_sweep_is_notified_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook() as hook:
        monkeypatch.setenv("ETFARM_NOTIFY", hook.url)
        with pytest.raises(ValueError, match="out of range"), notify_of_error("nightly 2026-11-21"):
            raise ValueError("out of range")
    (received,) = hook.received
    assert received["title"] == "nightly 2026-11-21: the sweep stopped"
    assert received["message"] == "ValueError: out of range; run the same command to resume"


def test_a_sweep_sends_one_message_and_a_refusing_service_changes_nothing_but_a_warning(
    stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with webhook() as good, webhook(500) as bad:
        # given two services, of which one refuses
        monkeypatch.setenv("ETFARM_NOTIFY", f"{good.url} {bad.url}")
        # when a sweep ends
        done = stand_in_farm.sweep()
    # then it succeeded, and there is one message with headline and report
    assert done.is_completed()
    (received,) = good.received
    assert "Nothing to compare with" in received["title"]
    report = state_data(done).message.rpartition("report: ")[2]
    assert received["message"].splitlines() == ["sessions: 2 succeeded, 1 discarded", f"report: {report}"]
    # and one warning, which names the scheme only
    (warning,) = {each.getMessage() for each in caplog.records if each.name == "flows.warehouse.publish"}
    assert warning.startswith("notification to `json` not sent: it answered with HTTP status 500; ")
    # and the secret is in no file and in no output
    assert PASSWORD not in caplog.text
    written = [path for path in stand_in_farm.folder.rglob("*") if path.is_file()]
    assert any(path.name == "session.json" for path in written)
    assert [path for path in written if PASSWORD.encode() in path.read_bytes()] == []


def test_verdicts_are_reported_also_if_the_noise_of_the_devices_cannot_be_read(
    stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[str]:
        raise WarehouseError("a column is missing")

    monkeypatch.setattr("flows.sweep.read_noise_lines", fail)
    with webhook() as hook:
        monkeypatch.setenv("ETFARM_NOTIFY", hook.url)
        done = stand_in_farm.sweep()
    assert "; the noise of the devices could not be read: " in str(done.message)
    assert "verdicts" not in hook.received[0]["title"]
