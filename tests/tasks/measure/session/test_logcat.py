"""A phone's log is read for the runner alone, from the start of its session, and never cleared.

`logcat` is a stand-in that answers as the real one does to these words; no registry has a phone's own.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from devices.ondevice.facts import Facts
from tasks.bundle.record import SessionRecord
from tasks.etdump.xnntrace import selected_kernels
from tests.fixtures.stand_in import GOOD, a_context, a_session, measured, put_on_path

# Refuses to clear, and to answer without a time stamp; lists one line per process that it is asked for.
STAND_IN = """
for word; do case $word in
    -c) echo "asked to clear" >&2; exit 9;;
    --pid=*) pid=${word#--pid=};;
    [0-9][0-9]-[0-9][0-9]' '*) since=$word;;
esac; done
[ -n "$since" ] || exit 8
echo "$since  $pid  $pid I XNNPACK : Using gemm microkernel 'xnn_f32_gemm_minmax_ukernel_6x8__neonfma'. (x, y.c:1)"
"""


def traced(folder: Path) -> SessionRecord:
    """Measure a session in mode trace on a phone, whose runner says which process it is."""
    context = replace(a_context(folder, "echo $$\n" + GOOD), facts=Facts(os="android"))
    return measured(folder, context, a_session(mode="trace"))


def test_a_trace_session_on_a_phone_keeps_what_its_runner_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on_path(monkeypatch, tmp_path / "bin", logcat=STAND_IN)
    record = traced(tmp_path)
    # then its bundle has the log of that process, and the parser finds the kernel in it
    assert record.status == "succeeded", record.reason
    bundle = tmp_path / "bundles" / record.sweep.sweep_id / record.session_id
    log, pid = bundle / "logcat.txt", (bundle / "stdout.txt").read_text(encoding="utf-8").strip()
    assert f" {pid} " in log.read_text(encoding="utf-8")
    assert list(selected_kernels(log)) == ["xnn_f32_gemm_minmax_ukernel_6x8__neonfma"]


@pytest.mark.fault
def test_a_phone_without_a_readable_log_fails_the_session_with_the_reason(tmp_path: Path) -> None:
    record = traced(tmp_path)
    assert record.status == "failed"
    assert "cannot read its log (logcat: " in str(record.reason)
