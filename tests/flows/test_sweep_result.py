"""What a sweep tells at its end, by message, state, table and event, and that none of these changes its end."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
from prefect import flow

from flows.artifacts import show_verdicts
from flows.device.job import DeviceTally
from flows.sweep_result import SweepResult, build_message, notify_end, notify_of_error, read_verdicts
from flows.warehouse.publish import load_store
from tasks.measure.health import Registry
from tasks.results.verdicts import VerdictRow
from tasks.store.workspace import Workspace
from tests.fixtures.command import DataFolder
from tests.fixtures.http_server import webhook
from tests.fixtures.nights import night_of, week_of
from tests.fixtures.prefect_server import asked
from tests.fixtures.waiting import wait_for

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


def test_what_devices_cannot_run_is_in_the_last_line_and_is_no_failure(tmp_path: Path) -> None:
    result = result_of(Workspace(tmp_path), [], DeviceTally("pixel-1", succeeded=5))
    result = replace(result, not_planned=["pixel-1: openvino: no library"], skipped={("toy", "fp16"): "no part"})
    assert result.sessions_line == ("sessions: 5 succeeded; skipped: toy fp16 (no part), pixel-1: openvino: no library")
    assert not result.is_bad


def test_a_model_that_failed_is_in_title_message_and_end_state_once_for_each_reason(tmp_path: Path) -> None:
    # given a model that could not be exported, on a device that was lost afterwards, and on two others
    why = "cannot export conv as fp32: ValueError: no weights"
    failed = replace(
        REGRESSION, model="conv", verdict="failed", value=None, baseline_value=None, ratio=None, low=None, high=None,
        baseline_nights=0, sessions=0, cause=None, changed=None, reason=f"2 of 2 sessions failed (x): {why}",
    )  # fmt: skip
    rows = [failed, *(replace(failed, device=name, variant=each) for name in "ab" for each in ("sme2_on", "sme1"))]
    tallies = [DeviceTally("here", failed=2, first_reason="it crashed")]
    tallies += [DeviceTally(name, failed=4, first_reason=why) for name in "ab"]
    # when the sweep ends, on the first night of the model or later
    for others in ([], [QUIET]):
        result = replace(result_of(Workspace(tmp_path), [*rows, *others], tallies[0]), tallies=tallies)
        message = build_message(result, Workspace(tmp_path))
        # then the title counts its series, and a line has the reason, which its devices do not repeat
        assert message.title.endswith(
            f": 5 of {5 + len(others)} series failed{'; without a change: 1' if others else ''}."
        )
        line = f"failed: conv fp32 on here, conv fp32 on a, conv fp32 on b: {failed.reason}"
        assert message.body.splitlines()[:-1] == ["sessions: 10 failed", line, "here: it crashed"]
        assert result.message.startswith(f"sessions: 10 failed; {line}; here: it crashed; report: ")
        # and it is bad whatever verdicts the exit code is asked for, as with any failed session
        assert (result.is_bad, replace(result, fail_on="never").is_bad) == (True, True)


def test_a_session_that_cannot_be_loaded_fails_the_sweep_unless_it_is_measured_again(tmp_path: Path) -> None:
    for replaced in ({"0a"}, set[str]()):
        tally = DeviceTally("here", succeeded=4, replaced=replaced)
        result = replace(result_of(Workspace(tmp_path), [QUIET], tally), refused={"0a": "0a/model.etdump: missing"})
        assert result.is_bad != bool(replaced)
        assert ("; 1 could not be loaded: 0a/model.etdump: missing; " in result.message) != bool(replaced)


def test_a_message_lists_ten_regressions_and_ten_devices_and_the_end_state_three(tmp_path: Path) -> None:
    rows = [replace(REGRESSION, model=f"model_{number}") for number in range(13)]
    lost = DeviceTally("phone-1", failed=4, unusable="phone-1: too hot")
    tallies = [lost, *(DeviceTally(f"phone-{each}", invalid=1, first_reason="too hot") for each in range(2, 12))]
    for devices, left_out in ((10, []), (11, ["1 more devices in the report"])):
        result = replace(result_of(Workspace(tmp_path), rows, tallies[0]), tallies=tallies[:devices])
        lines = build_message(result, Workspace(tmp_path)).body.splitlines()
        assert [line.partition("_")[0] for line in lines[1:11]] == ["regression: model"] * 10
        assert lines[11] == "3 more in the report"
        assert lines[12:-1] == [*(f"phone-{each}: too hot" for each in range(1, 11)), *left_out]
        # and the end state has the reasons of three, between the counts and the report
        three = f"phone-1: too hot; phone-2: too hot; phone-3: too hot; and {devices - 3} more; "
        assert result.message.startswith(f"sessions: 4 failed, {devices - 1} invalid; {three}")
        assert result.is_bad


def test_a_quiet_night_is_notified_once_and_again_only_if_something_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    nothing_new = result_of(workspace, [QUIET], DeviceTally("here", already_done=4))
    more = result_of(workspace, [QUIET], DeviceTally("here", already_done=3, succeeded=1))
    with webhook() as hook:
        monkeypatch.setenv("ETFARM_NOTIFY", hook.url)
        # given a sweep that was killed before its message was sent: the next start measures nothing, but sends it
        # when it is started again, then nothing is sent, and if a start measured something, a message is sent
        for result, sent in ((nothing_new, 1), (nothing_new, 1), (more, 2)):
            notify_end(result, workspace)
            assert [each["type"] for each in hook.received] == ["success"] * sent
        # and an error that stops a sweep is notified and raised
        with pytest.raises(ValueError, match="out of range"), notify_of_error("nightly 2026-11-21"):
            raise ValueError("out of range")
    assert hook.received[-1]["title"] == "nightly 2026-11-21: the sweep stopped"
    assert hook.received[-1]["message"] == "ValueError: out of range; run the same command to resume"


def test_each_regression_is_an_event_that_an_automation_can_use(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a regression and a suspected series
    suspected = replace(REGRESSION, verdict="suspected")
    monkeypatch.setenv("PREFECT_API_URL", server)
    # when they are shown
    flow(validate_parameters=False)(show_verdicts)([REGRESSION, suspected], "nightly-2026-11-21")
    # then the table has the headline of the night
    tables = asked(f"{server}/artifacts/filter", {"artifacts": {"key": {"any_": ["verdicts"]}}})
    headline = "nightly-2026-11-21: 1 of 2 series slower: linear fp32 on here with SME2 off and one thread +10.0 %"
    assert any(str(table["description"]).startswith(headline) for table in tables)
    # and the server has one event, with what a message needs
    wanted = {"filter": {"event": {"name": ["etfarm.regression"]}, "occurred": {"since": "2020-01-01T00:00:00Z"}}}

    def payloads() -> list[dict[str, Any]]:
        events = [event["payload"] for event in asked(f"{server}/events/filter", wanted)["events"]]
        return [event for event in events if event["sweep"] == "nightly-2026-11-21"]  # not of another test

    (event,) = wait_for(payloads, "the event to arrive", pause_s=0.2)
    given = {"verdict": "regression", "series": "linear fp32 on here, SME2 off, one thread", "figure": "latency"}
    given |= {"before": "10 ms", "after": "11 ms", "change": "+10.0 %", "since": "2026-11-20", "changed": ".pte file"}
    assert event == event | given
    assert (event["cause"], event["reason"]) == (REGRESSION.cause, REGRESSION.reason)


@pytest.mark.parametrize("error", [httpx.ConnectError("no route"), RuntimeError("the event loop is closed")])
def test_an_event_that_cannot_be_sent_stops_no_sweep(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    for name in ("create_table_artifact", "create_markdown_artifact", "emit_event"):
        monkeypatch.setattr(f"flows.artifacts.{name}", fail)
    show_verdicts([REGRESSION], "nightly-2026-11-21")


def test_the_message_of_a_sweep_at_noon_claims_nothing_that_the_nightly_found(
    data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a nightly that found a slower model in two nights, and sweeps at noon of few sessions and of enough
    week_of(data)
    for day in (8, 9):
        night_of(data, day, 1.2, model__pte_sha256="p2")
    ends, reasons = {}, []
    for name, count in (("few", 2), ("enough", 8)):
        sweep = {"sweep_id": f"{name}-2026-11-09", "name": name, "night": "2026-11-09"}
        started_at = f"2026-11-09T{10 + count}:00:00+00:00"
        night_of(data, 9, 1.2, count, sweep=sweep, started_at=started_at, model__pte_sha256="p2")
        load_store(data.workspace)
        rows = read_verdicts(sweep["sweep_id"], data.workspace)
        monkeypatch.setenv("ETFARM_SITE_URL", "https://farm.example/farm")
        result = result_of(data.workspace, rows, DeviceTally("host", succeeded=count))
        result = replace(result, sweep_id=sweep["sweep_id"])
        message = build_message(result, data.workspace)
        # then each names the incident once, and who found it, with the page of all
        (line,) = [line for line in message.body.splitlines() if "incident " in line]
        assert line.startswith("- nightly-2026-11-08: toy slower since 2026-11-08 (confirmed, incident ")
        assert "all: https://farm.example/farm/incidents.html" in message.body
        ends[name] = message.title, result.is_bad
        reasons += [row.reason for row in rows if not row.sessions]
    # and only the sweep that was judged has a verdict
    assert ends["few"] == ("few-2026-11-09: 1 of 1 series cannot be judged, too little data.", False)
    assert ends["enough"][0].startswith("enough-2026-11-09 failed: 1 of 1 series slower: toy fp32 ")
    assert reasons == ["the verdict of this night is that on sweep nightly-2026-11-09"]
