"""The progress of a sweep: which step a long export is in, on the terminal, in a log file and in Prefect."""

import io

import pytest
from rich.console import Console

from flows.progress import Board, board, export_status, show_step


def test_a_terminal_shows_what_runs_side_by_side() -> None:
    # given two exports at the same time
    stream, shown = io.StringIO(), Board()
    with shown.display(Console(file=stream, force_terminal=True, width=200)):
        shown.expect("export", 3)
        shown.doing("export", "voice fp16: lowering", item="voice fp16")
        shown.doing("export", "bert fp32: writing", item="bert fp32")
        before = shown.steps()[0]["doing"]
        # when one of them has ended
        shown.done("export", "bert fp32: ready", item="bert fp32")
        after = shown.steps()[0]["doing"]
    # then the other one stays
    assert before == "voice fp16: lowering; bert fp32: writing"
    assert after == "voice fp16: lowering"
    assert after in stream.getvalue()


def test_the_log_of_a_sweep_has_lines_for_long_steps_only() -> None:
    stream = io.StringIO()
    with board.display(Console(file=stream, width=200)):
        board.expect("export", 1)
        for step, is_long in (("tracing forward", False), ("lowering", False), ("lowering", True)):
            show_step("voice fp16", step, is_long)
    told = [line for line in stream.getvalue().splitlines() if line.startswith("export: ")]
    assert told == ["export: 1 to do", "export: voice fp16: lowering ..."]


def test_the_log_of_an_export_has_lines_for_long_steps_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with export_status("voice fp16") as tell:
        tell("tracing forward", False)
        tell("lowering", False)
        tell("lowering", True)
    assert capsys.readouterr().err == "export: voice fp16: lowering ...\n"


def test_a_terminal_shows_each_step_of_an_export(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the output for a terminal
    with export_status("voice [fp16]") as tell:
        tell("tracing forward", False)
    assert "voice [fp16]: tracing forward" in capsys.readouterr().err
