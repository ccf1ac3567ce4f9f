"""Nothing that a file, a device or a server wrote acts on the terminal, whichever way it gets there."""

import csv
import io
import json
import logging
import re
from pathlib import Path

import pytest
from rich.console import Console

from flows.progress import Board
from flows.server.settings import set_up_log
from flows.terminal import show, show_pieces, show_table
from tasks.results.text import Toned
from tests.fixtures.command import Command, Etfarm, run_python
from tests.fixtures.paths import ROOT
from tests.fixtures.report import report_of
from tests.fixtures.warehouse import BundleMaker, etdump_of

BAD = "a\x1b[31mred\x1b]0;title\x07\u202ebad\r"
SHOWN = "a\ufffd[31mred\ufffd]0;title\ufffd\ufffdbad"
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# What ways to the terminal there are besides flows/terminal.py. A device runs no Python of ours, so none is exempt.
PRINTS = re.compile(r"\bprint\(|\becho\(|\bsecho\(|console\.print|sys\.std(out|err)\.(write|buffer)|__stderr__")
MS = 1_000_000


def test_only_one_module_prints() -> None:
    files = [path for room in ("flows", "tasks", "devices", "sql") for path in sorted((ROOT / room).rglob("*.py"))]
    prints = [path for path in files if PRINTS.search(path.read_text(encoding="utf-8"))]
    assert [path.relative_to(ROOT).as_posix() for path in prints] == ["flows/terminal.py"]


def test_lines_and_pieces_are_printed_without_what_acts(capsys: pytest.CaptureFixture[str]) -> None:
    show(f"{BAD}\nmore", err=True)
    show_pieces([f"{BAD}\n", "more\n"])
    printed = capsys.readouterr()
    assert (ACTING.search(printed.out + printed.err), printed.err.count("\n")) == (None, 1)
    assert printed.out == f"{SHOWN}\ufffd\nmore\n"


def test_only_words_of_the_farm_are_colored_and_lines_fit_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    show(f"failed: {BAD} with a long reason")
    show_table([(Toned(f"slower {BAD}", "bad"), "  ", BAD)])
    first, second, table = capsys.readouterr().out.split("\n", 2)
    assert first.startswith("\x1b[31mfailed\x1b[0m: a\ufffd[31mred")
    assert second == "  long reason"
    assert table == f"\x1b[31mslower {SHOWN} \x1b[0m  {SHOWN} \n"
    # and not where colours are not wanted
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
        show("failed: x")
        assert capsys.readouterr().out == "failed: x\n"
        monkeypatch.delenv(name)


def test_rows_are_printed_and_written_without_what_acts_and_lose_nothing_else(
    etfarm: Etfarm, command: Command, tmp_path: Path
) -> None:
    # given a loose ETDump whose name and whose operators act
    loose = tmp_path / f"{BAD}.etdump"
    loose.write_bytes(etdump_of([(9 * MS, {f"{BAD}\nx": MS}), (8 * MS, {f"{BAD}\nx": MS})]))
    assert etfarm("warehouse", "load", loose)[0] == 0
    operators = "SELECT DISTINCT operator FROM operator_time"
    for form in ("table", "markdown"):
        code, printed = etfarm("sql", operators, "--format", form)
        assert (code, ACTING.search(printed), "red" in printed, "title" in printed) == (0, None, True, True)
    # then CSV replaces what acts, printed and written, and keeps lines and characters
    query = "SELECT chr(27) || '[2J' || chr(8238) || chr(13) AS bad, 'é模' || chr(10) || chr(9) || 'b' AS good"
    printed = etfarm("sql", query, "--format", "csv")[1]
    assert etfarm("sql", query, "--output", tmp_path / "rows.csv")[0] == 0
    written = (tmp_path / "rows.csv").read_bytes().decode()
    rows = [list(csv.reader(io.StringIO(text))) for text in (printed, written)]
    assert rows == [[["bad", "good"], ["\ufffd[2J\ufffd\ufffd", "é模\n\tb"]]] * 2
    # and JSON escapes it
    printed = etfarm("sql", "SELECT chr(27) || chr(127) || chr(155) || chr(8238) AS bad", "--format", "json")[1]
    assert ACTING.search(printed) is None
    assert json.loads(printed) == [{"bad": "\x1b\x7f\x9b\u202e"}]
    # and an ETDump that is inspected, and a usage error with the name of a file (a shell's `*` may stand for it)
    for ended, code in ((command("trace", loose), 0), (command("trace", f"--{BAD}"), 2)):
        assert (ended.code, ACTING.search(ended.out + ended.err), "red" in ended.out + ended.err) == (code, None, True)


def test_a_report_shows_logs_and_names_without_what_acts(tmp_path: Path) -> None:
    maker = BundleMaker(tmp_path)
    maker.session([(20 * MS, {f"native_call_{BAD}": 4 * MS})], model__name=BAD, device__name=BAD)
    maker.session(status="failed", reason_code=BAD, reason=BAD, log_tail=f"é模\n{BAD}", model__name=BAD)
    report = report_of(maker)
    for text in (report.html, report.markdown):
        assert ACTING.search(text) is None
        assert f"é模\n{SHOWN}" in text


def test_the_log_and_its_traces_do_not_act(caplog: pytest.LogCaptureFixture) -> None:
    set_up_log()
    set_up_log()
    log, stream = logging.getLogger("tasks.measure"), io.StringIO()
    handler = logging.StreamHandler(stream)
    log.addHandler(handler)
    try:
        log.warning("%s printed %s", BAD, "é模\nb")
        try:
            raise ValueError(BAD)
        except ValueError:
            log.exception("it failed")
    finally:
        log.removeHandler(handler)
    assert ACTING.search(stream.getvalue()) is None
    assert stream.getvalue().startswith(f"{SHOWN}\ufffd printed é模\nb\n")
    assert f"ValueError: {SHOWN}" in stream.getvalue()


def test_an_error_of_the_farm_itself_does_not_act() -> None:
    code = f"from flows.cli import main\ndef bug(**_): raise ValueError({BAD!r})\nmain.app = bug\nmain.main()"
    ended = run_python("-c", code)
    assert (ended.returncode, ACTING.search(ended.stderr)) == (1, None)
    assert ended.stderr.startswith("Traceback")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_shows_names_without_what_acts(is_terminal: bool) -> None:
    stream, board = io.StringIO(), Board()
    with board.display(Console(file=stream, force_terminal=is_terminal, width=200)):
        board.expect("export", 2)
        board.doing("export", BAD)
        board.done("export", f"{BAD}: failed", failed=True)
    assert not any(acting in stream.getvalue() for acting in ("\x1b[31mred", "\x1b]0;", "\u202e"))
    assert SHOWN in stream.getvalue()
