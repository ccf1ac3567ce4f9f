"""What a sweep tells of a model that got slower: terminal, exit code, Prefect's UI."""

from dataclasses import replace
from typing import Any

import httpx
import pytest
from prefect import flow

from flows.artifacts import show_verdicts
from tests.fixtures.farm import Farm, sweep_of
from tests.fixtures.prefect_server import asked
from tests.fixtures.waiting import wait_for
from tests.flows.test_sweep_result import REGRESSION

pytestmark = pytest.mark.torch
pytest.importorskip("executorch", reason="exports and the runner need the export extra")
SWEEP = sweep_of("team:model", name="watched", sessions=3)
MODEL = """
import torch

def model():
    return torch.nn.Conv2d(8, 8, {kernel}, padding="same"), (torch.randn(1, 8, 64, 64),)
"""


@pytest.mark.thorough
def test_a_model_that_got_slower_overnight_is_named_everywhere(farm: Farm, prefect_api: str) -> None:
    # given a night with a convolution of 3 x 3
    (farm.folder / "team.py").write_text(MODEL.format(kernel=3), encoding="utf-8")
    first = farm.sweep(SWEEP, "--night", "2026-11-01")
    assert first.returncode == 0, first.stdout + first.stderr
    # when it is one of 15 x 15 in the next night
    (farm.folder / "team.py").write_text(MODEL.format(kernel=15), encoding="utf-8")
    second = farm.sweep(SWEEP, "--night", "2026-11-02")
    # then the two are measured alternately, and the terminal names the model, the change, its cause and what changed
    assert second.returncode == 1, second.stdout + second.stderr
    line, *others = [line for line in second.stdout.splitlines() if line.startswith("regression: ")]
    assert line.startswith("regression: team:model fp32 on here, SME2 off, one thread: +")
    assert "against model and runner of 2026-11-01, measured interleaved the same night; cause: `Convolution" in line
    assert line.partition("; changed: ")[2].startswith(".pte file")
    # and so do the other figures that changed, the size of the file once
    (size,) = [line for line in others if line.startswith("regression: team:model fp32: .pte size ")]
    assert " kB -> " in size
    # and so do Prefect's UI and the run's end
    tables = asked(f"{prefect_api}/artifacts/filter", {"artifacts": {"key": {"any_": ["verdicts"]}}})
    assert any("team:model fp32 on here" in table["data"] for table in tables), second.stdout + second.stderr
    failed = asked(f"{prefect_api}/flow_runs/filter", {"flow_runs": {"state": {"type": {"any_": ["FAILED"]}}}})
    messages = [str(run["state"]["message"]) for run in failed]
    assert any("regression: team:model" in message for message in messages), (messages, second.stdout, second.stderr)
    # and another start measures nothing again, and ends in the same way
    third = farm.sweep(SWEEP, "--night", "2026-11-02")
    assert (third.returncode, "0 succeeded" in third.stdout) == (1, False), third.stdout
    # and a bisection measures the stored files of both nights again, and names the night and what changed
    found = farm.run("bisect", "team:model", "--inventory", farm.inventory)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "first bad night: 2026-11-02; last good content: 2026-11-01" in found.stdout
    assert "changed: .pte file" in found.stdout


def test_each_regression_is_an_event_that_an_automation_can_use(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a regression and a suspected series
    suspected = replace(REGRESSION, verdict="suspected")
    monkeypatch.setenv("PREFECT_API_URL", server)
    # when they are shown
    flow(validate_parameters=False)(show_verdicts)([REGRESSION, suspected], "nightly-2026-11-21")
    # then the table has the headline of the night
    tables = asked(f"{server}/artifacts/filter", {"artifacts": {"key": {"any_": ["verdicts"]}}})
    headline = "1 of 2 series slower: linear fp32 on here with SME2 off and one thread +10.0 % since 2026-11-20"
    headline += "; suspected: 1."
    assert f"nightly-2026-11-21: {headline}" in [table["description"] for table in tables]
    # and the server has one event, with what a message needs
    wanted = {"filter": {"event": {"name": ["etfarm.regression"]}, "occurred": {"since": "2020-01-01T00:00:00Z"}}}
    events = wait_for(lambda: events_of(server, wanted), "the event to arrive", pause_s=0.2)
    assert [event["payload"] for event in events] == [
        {
            "verdict": "regression",
            "series": "linear fp32 on here, SME2 off, one thread",
            "figure": "latency",
            "before": "10 ms",
            "after": "11 ms",
            "change": "+10.0 %",
            "since": "2026-11-20",
            "cause": "`Convolution` +11.0 %",
            "changed": ".pte file",
            "reason": "+10.0 % (11 ms) against 3 earlier nights",
            "sweep": "nightly-2026-11-21",
        }
    ]


@pytest.mark.parametrize("error", [httpx.ConnectError("no route"), RuntimeError("the event loop is closed")])
def test_an_event_that_cannot_be_sent_stops_no_sweep(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    for name in ("create_table_artifact", "create_markdown_artifact", "emit_event"):
        monkeypatch.setattr(f"flows.artifacts.{name}", fail)
    show_verdicts([REGRESSION], "nightly-2026-11-21")


def events_of(api: str, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    found = asked(f"{api}/events/filter", wanted)["events"]
    return [event for event in found if event["payload"]["sweep"] == "nightly-2026-11-21"]  # not of another test
