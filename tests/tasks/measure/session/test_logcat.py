"""A phone's log is read for the runner alone, from the start of its session, and never cleared.

`logcat` is a stand-in that answers as the real one does to these words; no registry has a phone's own.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from devices.ondevice.facts import Facts
from tasks.etdump.xnntrace import read_xnntrace
from tests.fixtures.stand_in import GOOD, a_bench, a_session, measured

# Refuses to clear, and to answer without a time stamp; lists one line per process that it is asked for.
STAND_IN = """#!/bin/sh
for word; do case $word in
    -c) echo "asked to clear" >&2; exit 9;;
    --pid=*) pid=${word#--pid=};;
    [0-9][0-9]-[0-9][0-9]' '*) since=$word;;
esac; done
[ -n "$since" ] || exit 8
echo "$since  $pid  $pid I XNNPACK : Using gemm microkernel 'xnn_f32_gemm_minmax_ukernel_6x8__neonfma'. (x, y.c:1)"
"""


@pytest.fixture
def _logcat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "logcat").write_text(STAND_IN, encoding="utf-8")
    (folder / "logcat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.usefixtures("_logcat")
def test_a_trace_session_on_a_phone_keeps_what_its_runner_logged(tmp_path: Path) -> None:
    # given a phone, and a runner that says which process it is
    bench = replace(a_bench(tmp_path, "echo $$\n" + GOOD), facts=Facts(os="android"))
    session = a_session()
    session = replace(session, cell=replace(session.cell, mode="trace"))
    # when a trace session is run
    record = measured(tmp_path, bench, session)
    # then its bundle has the log of that process, and the parser finds the kernel in it
    assert record.status == "succeeded", record.reason
    bundle = tmp_path / "bundles" / record.sweep.sweep_id / record.session_id
    log, pid = bundle / "logcat.txt", (bundle / "stdout.txt").read_text(encoding="utf-8").strip()
    assert f" {pid} " in log.read_text(encoding="utf-8")
    assert [selection.kernel.name for selection in read_xnntrace(log).selected] == [
        "xnn_f32_gemm_minmax_ukernel_6x8__neonfma"
    ]


@pytest.mark.fault(stage="pull", done="the log of a phone cannot be read", holds="the session fails with that reason")
def test_a_phone_without_a_readable_log_fails_the_session_with_the_reason(tmp_path: Path) -> None:
    bench = replace(a_bench(tmp_path, GOOD), facts=Facts(os="android"))
    session = a_session()
    record = measured(tmp_path, bench, replace(session, cell=replace(session.cell, mode="trace")))
    assert record.status == "failed"
    assert "cannot read its log (logcat: " in str(record.reason)
