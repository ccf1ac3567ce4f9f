"""The progress of a sweep: which step a long export is in, on the terminal, in a log file and in Prefect."""

import io
import re
from datetime import datetime, timedelta
from unittest.mock import Mock

import pytest
from rich.console import Console
from rich.text import Text

from flows.progress import _DoingColumn, board, export_status, show_step
from flows.status.expected_time import ExpectedEnd


def test_steps_are_drawn_by_a_clock_and_not_whenever_one_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a log, in which no clock draws
    draw = Mock(return_value=Text())
    monkeypatch.setattr(_DoingColumn, "render", draw)
    with board.display(Console(file=io.StringIO())):
        for number in range(3):
            board.expect(f"step {number}", 1)
            board.done(f"step {number}", "ready")
        assert draw.call_count == 0
        assert [each.done for each in board.steps()] == [1, 1, 1]


def test_a_log_has_lines_for_long_steps_only_and_a_terminal_shows_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps, told = (
        (("tracing forward", False), ("lowering", False), ("lowering", True)),
        "export: voice fp16: lowering ...\n",
    )
    # given the log of an export, and that of a sweep
    with export_status("voice fp16") as tell:
        for step in steps:
            tell(*step)
    assert capsys.readouterr().err == told
    stream = io.StringIO()
    with board.display(Console(file=stream, width=200)):
        board.expect("export", 1)
        for step in steps:
            show_step("voice fp16", *step)
    assert f"export: 1 to do\n{told}" in stream.getvalue()
    assert "tracing" not in stream.getvalue()
    # and a terminal
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the output for a terminal
    with export_status("voice [fp16]") as tell:
        tell("tracing forward", False)
    assert "voice [fp16]: tracing forward" in capsys.readouterr().err


def test_a_narrow_terminal_drops_the_bar_and_shortens_the_case_but_never_the_count() -> None:
    now = datetime(2126, 11, 28, 21, 10)
    for width, has_bar in ((80, False), (120, True)):
        stream = io.StringIO()
        with board.display(Console(file=stream, width=width, force_terminal=True)):
            board.expect("this-machine", 298)
            board.set_end("this-machine", ExpectedEnd(now, now + timedelta(minutes=2)))
            board.doing("this-machine", f"./net.py:build fp32 {'SME2 off ' * 9}", item="a")
        drawn = stream.getvalue()
        assert re.search(r" 0/298.*0:00:0\d.* until 21:10 to 21:12 .*\./net.*…", drawn)
        assert ("━" in drawn) is has_bar


def test_a_log_has_no_bars_at_its_end() -> None:
    stream = io.StringIO()
    with board.display(Console(file=stream, width=120)):
        board.expect("load", 1)
    assert stream.getvalue().strip() == "load: 1 to do"
