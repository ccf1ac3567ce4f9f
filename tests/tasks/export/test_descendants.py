"""What a model leaves running ends with its export, whatever session it moved to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.export.process.sandbox import end_below
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import wait_for
from tests.tasks.export.conftest import runs

# Each process states its pid; the last one is a daemon: its parent has ended, and it is in another session.
PARENT = """
import os, subprocess, sys, time
from pathlib import Path
from tasks.export.process.sandbox import adopt_orphans

adopt_orphans()
sleeper = [sys.executable, "-c", "import time; time.sleep(300)"]
pids = [subprocess.Popen(sleeper).pid for _ in range(2)]
pids.append(subprocess.Popen(sleeper, start_new_session=True).pid)
if os.fork() == 0:
    os.setsid()
    if (daemon := os.fork()) == 0:
        os.execv(sys.executable, sleeper)
    Path("daemon").write_text(str(daemon))
    os._exit(0)
os.wait()
Path("pids-").write_text("\\n".join([*map(str, pids), Path("daemon").read_text()]))
Path("pids-").rename("pids")
time.sleep(300)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process can adopt orphans")
def test_everything_below_a_process_is_ended_but_what_is_spared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.fspath(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.chdir(tmp_path)
    # given a process with children, one in another session, and a daemon
    with subprocess.Popen([sys.executable, "-c", PARENT]) as parent:
        try:
            wait_for(Path("pids").exists, "the processes to start")
            spared, *others = map(int, Path("pids").read_text().split())
            # when what is below it is ended
            end_below(parent.pid, {spared})
            # then only the spared one and the process itself are left
            assert [runs(pid) for pid in (parent.pid, spared, *others)] == [True, True, False, False, False]
            end_below(parent.pid)
            assert not runs(spared)
        finally:
            parent.kill()
