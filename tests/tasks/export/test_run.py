"""The processes of exports: started warm, limited, ended with the farm, and each fails alone."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tasks.export.exported import Export, ExportError
from tasks.export.process import run
from tasks.export.process.sandbox import NEED_BYTES, ExportSlots
from tests.fixtures.exports import export_model
from tests.fixtures.waiting import wait_for
from tests.tasks.export.conftest import runs

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

MODELS = '''
from pathlib import Path
import gc
import json
import os
import subprocess
import time
import scipy
import torch

class Waiting(torch.nn.Module):
    """Waits while a file exists."""
    def __init__(self, name):
        super().__init__()
        self.name = name

    def forward(self, values):
        if not torch.compiler.is_exporting():
            process = {"pid": os.getpid(), "server": os.getppid(), "objects_of_server": gc.get_freeze_count()}
            Path(f"writing-{os.getpid()}").write_text(json.dumps(process))
            Path(f"writing-{os.getpid()}").rename(f"started-{os.getpid()}")
            while Path(self.name).exists():
                time.sleep(0.02)
        return values + 1

def waiting(name="wait"):
    return Waiting(name), (torch.rand(4),)

def large():
    torch.empty(int(float(Path("bytes").read_text())), dtype=torch.uint8)
    return waiting()

def littering():
    pids = [subprocess.Popen(["sleep", "300"], start_new_session=is_leader).pid for is_leader in (False, True)]
    daemon = "setsid sleep 300 >/dev/null 2>&1 & echo $!"
    pids.append(int(subprocess.run(["sh", "-c", daemon], capture_output=True).stdout))
    Path("left").write_text(json.dumps(pids))
    return waiting()

def hanging():
    littering()
    return waiting("model.py")

def aborting():
    littering()
    os.abort()

def killed():
    os.kill(os.getpid(), 9)

def leaving():
    os._exit(255)
'''
# It is not guarded by `if __name__ == "__main__"`: an export that imported it would start a farm again.
FARM = """
from pathlib import Path
from tasks.export.entry import ExportRequest
from tasks.export.export import export_cases

with Path("farms").open("a") as stream:
    stream.write("a farm\\n")
export_cases(ExportRequest("model:waiting", "fp32", Path("exports")))
"""


@pytest.fixture
def exports(exports: Path) -> Path:
    """The exports folder beside models of our own; `waiting` ends when `wait` is removed."""
    Path("wait").touch()
    return exports


@pytest.fixture
def two_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "export_slots", ExportSlots(2, 4 * NEED_BYTES))


@pytest.fixture
def own_server(exports: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test starts a server that loads modules of the working directory; servers before and after it end."""
    run.end_server()
    monkeypatch.setenv("PYTHONPATH", os.fspath(exports.parent))
    yield
    run.end_server()


def started(count: int = 1, exporting: Sequence[Future[Export]] = ()) -> list[dict[str, Any]]:
    """Wait until this many export processes have started in all, unless one of `exporting` fails; return their ids."""

    def have_started() -> bool:
        for each in exporting:
            if each.done():
                each.result()
        return len(list(Path().glob("started-*"))) == count

    wait_for(have_started, "the exports to start")
    return [json.loads(path.read_text()) for path in Path().glob("started-*")]


def left() -> list[int]:
    """The processes that a model has left running: one of its session, one of another, and a daemon."""
    pids = json.loads(Path("left").read_text())
    assert len(pids) == 3
    return [pid for pid in pids if runs(pid) and (pid == pids[0] or sys.platform == "linux")]


@pytest.mark.usefixtures("two_slots")
def test_exports_run_side_by_side_from_a_server_that_has_imported_torch(exports: Path) -> None:
    # given slots for two exports that wait for each other
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(export_model, f"model:{name}", "fp32", exports) for name in ("waiting", "littering")]
        try:
            first, second = started(2, running)
        finally:
            Path("wait").unlink()  # what has started ends, also where the other one failed
        ended = [each.result() for each in running]
    # then both are processes of one server
    assert first["server"] == second["server"] != os.getpid()
    assert all(each.pte.is_file() for each in ended)
    # which has imported what exports need, hundreds of thousands of objects
    if sys.platform == "linux":
        assert min(first["objects_of_server"], second["objects_of_server"]) > 100_000
    # and a process that a model leaves running neither delays its export nor outlives it, in any session
    wait_for(lambda: not left(), "the processes that the model started to end")
    # and modules that the server had loaded already count as used
    used = [json.loads(path.read_text()) for path in (exports / "used").iterdir()]
    assert all({"scipy", "numpy"} <= set(each["distributions"]) for each in used)
    assert [[Path(name).name for name in each["files"]] for each in used] == [["model.py"], ["model.py"]]


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("aborting", "was killed by SIGABRT while loading the model"),
        ("killed", "was killed (possibly out of memory) while loading the model"),
        # multiprocessing reports this code also for a server that has ended
        ("leaving", "exited with code 255 while loading the model"),
    ],
)
def test_a_process_that_ends_is_reported_in_one_sentence(exports: Path, model: str, sentence: str) -> None:
    title = rf"^cannot export model:{model} as fp32: the export process {re.escape(sentence)}; the full log is .+$"
    with pytest.raises(ExportError, match=title):
        export_model(f"model:{model}", "fp32", exports)
    assert model != "aborting" or not left()


@pytest.mark.usefixtures("two_slots")
def test_one_that_hangs_is_killed_at_its_deadline_with_what_it_started_and_stops_no_other(
    exports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def follow_when_started(sentinel: int, receiver: Any, deadline_s: float, on_step: run.OnStep) -> Any:
        if deadline_s == 1:
            started(2)  # its deadline begins when it hangs, however long it took to get there
        return follow(sentinel, receiver, deadline_s, on_step)

    follow = run.follow
    monkeypatch.setattr(run, "follow", follow_when_started)
    # given an export that hangs beside another one
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(export_model, "model:waiting", "fp32", exports)
        try:
            started()
            sentence = r"the export was stopped after 1 s while .+; raise the limit \(`export_deadline_s` in"
            with pytest.raises(ExportError, match=sentence):
                export_model("model:hanging", "fp32", exports, deadline_s=1)
        finally:
            Path("wait").unlink()
        assert other.result().pte.is_file()
    assert not any(runs(each["pid"]) for each in started(2))
    wait_for(lambda: not left(), "the processes that the model started to end")
    # and leaves nothing
    assert not list(exports.glob(".part-*"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
@pytest.mark.usefixtures("exports")
def test_exports_and_their_server_end_with_the_farm(number: signal.Signals) -> None:
    # given a farm that waits for an export
    Path("farm.py").write_text(FARM)
    with subprocess.Popen([sys.executable, "farm.py"], stderr=subprocess.DEVNULL) as farm:
        [export] = started()
        farm.send_signal(number)
    # then the export and the server end too, and neither had imported the farm's program
    wait_for(lambda: not runs(export["pid"]), "the export's process to end")
    wait_for(lambda: not runs(export["server"]), "the server to end")
    assert Path("farms").read_text() == "a farm\n"


def test_a_server_that_is_killed_is_replaced_and_the_export_succeeds(exports: Path) -> None:
    # given an export that runs
    with ThreadPoolExecutor(1) as pool:
        exporting: Future[Export] = pool.submit(export_model, "model:waiting", "fp32", exports)
        [before] = started(1, [exporting])
        # when its server is killed
        os.kill(before["server"], signal.SIGKILL)
        # then its process ends too, and another server makes the export
        wait_for(lambda: not runs(before["pid"]), "the export's process to end")
        [after] = [each for each in started(2) if each != before]
        Path("wait").unlink()
        assert exporting.result().pte.is_file()
    assert after["server"] != before["server"]
    # and the server ends on request
    run.end_server()
    assert not runs(after["server"])


@pytest.mark.usefixtures("linear", "own_server")  # in this order
def test_without_a_warm_server_bytes_are_the_same(
    exports: Path, linear: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a server as on macOS, where torch cannot be imported before a fork
    as_elsewhere = 'sys.platform, here = "darwin", sys.platform\nimport tasks.export.process.server\n'
    Path("light.py").write_text(
        f"import sys\nfrom tasks.export.process import child, dependencies\n{as_elsewhere}sys.platform = here\n"
    )
    monkeypatch.setattr(run, "_PRELOADED", ["light"])
    alone = export_model("linear", "fp32", exports)
    assert (alone.pte_sha256, alone.outputs) == (linear.pte_sha256, linear.outputs)


@pytest.mark.parametrize(("slots", "model_bytes", "fits"), [(1, "4e9", False), (2, "3.5e9", True)])
def test_an_export_that_needs_more_than_its_share_is_made_alone_or_fails_alone(
    exports: Path, monkeypatch: pytest.MonkeyPatch, slots: int, model_bytes: str, fits: bool
) -> None:
    # given 2.7 GB for each export
    monkeypatch.setattr(run, "export_slots", ExportSlots(slots, slots * 2 * NEED_BYTES))
    Path("bytes").write_text(model_bytes)
    Path("wait").unlink()
    if fits:
        assert export_model("model:large", "fp32", exports).pte.is_file()
        return
    with pytest.raises(ExportError, match=r"out of memory: it needs more than its limit of 2\.7 GB, .*; the full log"):
        export_model("model:large", "fp32", exports)
