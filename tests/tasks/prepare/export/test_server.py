"""The export server: one export that fails fails alone, and the server itself may fail once."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tasks.prepare.export import client, run
from tasks.prepare.export.export import export_model
from tasks.prepare.export.exported import ExportError
from tasks.prepare.export.places import NEED_BYTES, Places
from tests.fixtures.waiting import wait_for

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not run.HAS_SERVER, reason="exports are forked from a server on Linux only"),
]

MODELS = """
from pathlib import Path
import os
import time
import scipy
import torch

class Held(torch.nn.Module):
    def forward(self, values):
        if not torch.compiler.is_exporting():
            Path(f"started-{os.getpid()}").touch()
            while Path("hold").exists():
                time.sleep(0.02)
        return values + 1

def held():
    return Held(), (torch.rand(4),)

def large():
    torch.empty(int(float(Path("bytes").read_text())), dtype=torch.uint8)
    return Held(), (torch.rand(4),)
"""


@pytest.fixture
def exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An exports folder beside models of our own in the working directory."""
    pytest.importorskip("executorch")
    monkeypatch.chdir(tmp_path)
    Path("served.py").write_text(MODELS)
    return tmp_path / "exports"


def test_a_server_that_is_killed_is_replaced_and_the_export_succeeds(exports: Path) -> None:
    # given an export that runs
    Path("hold").touch()
    with ThreadPoolExecutor(1) as pool:
        exporting = pool.submit(export_model, "served:held", "fp32", exports)
        (child,) = _started(1)
        # when its server is killed
        server = _server_pid()
        os.kill(server, signal.SIGKILL)
        # then its process ends too, and another server makes the export
        wait_for(lambda: not _runs(child), "the export's process to end")
        (_, second) = sorted(_started(2), key=lambda pid: pid != child)
        Path("hold").unlink()
        made = exporting.result()
    assert second != child
    assert _server_pid() != server
    assert made.pte.is_file()
    # and a module that the server had loaded already counts as used
    (noted,) = (exports / "used").iterdir()
    assert {"scipy", "numpy"} <= set(json.loads(noted.read_text())["distributions"])
    assert [Path(name).name for name in json.loads(noted.read_text())["files"]] == ["served.py"]


def test_a_server_that_cannot_start_is_reported_with_its_log(exports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "export_server", client.ExportServer())
    monkeypatch.setattr(client, "export_command", lambda _: ([sys.executable, "-c", "exit(3)"], dict(os.environ)))
    with pytest.raises(ExportError, match=r"the export server exited with code 3; its log is .*server\.log"):
        export_model("linear", "fp32", exports)


def test_the_server_ends_with_the_farm_that_was_killed_and_after_its_last_export(exports: Path) -> None:
    # given a farm that has exported
    program = (
        "import pathlib, sys\nfrom tasks.prepare.export.export import export_model\n"
        "from tasks.prepare.export import client\n"
        "try: export_model('served:absent', 'fp32', pathlib.Path(sys.argv[1]))\n"
        "except Exception as error: print(client.export_server._server.process.pid, flush=True)\n"
        "if sys.argv[2] == 'close': client.export_server.close(); print('closed', flush=True)\n"
        "sys.stdin.read()"
    )
    for end in ("kill", "close"):
        command = [sys.executable, "-c", program, str(exports), end]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as farm:
            assert farm.stdout
            server = int(farm.stdout.readline())
            if end == "kill":
                assert _runs(server)
            else:
                assert farm.stdout.readline() == "closed\n"
                assert not _runs(server)
            farm.kill()
        wait_for(partial(_has_ended, server), "the server to end")


def test_an_export_that_needs_more_memory_than_its_limit_fails_alone(
    exports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "export_places", Places(1, 2 * NEED_BYTES))
    Path("bytes").write_text("4e9")
    with pytest.raises(ExportError, match=r"out of memory: it needs more than its limit of 2\.7 GB, .*; the full log"):
        export_model("served:large", "fp32", exports)
    assert export_model("served:held", "fp32", exports).pte.is_file()


def test_an_export_that_needs_more_than_its_share_is_made_alone(exports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "export_places", Places(2, 4 * NEED_BYTES))
    Path("bytes").write_text("3.5e9")
    assert export_model("served:large", "fp32", exports).pte.is_file()


def test_without_a_server_each_export_has_a_process_that_imports_everything(
    exports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = export_model("linear", "fp32", exports)
    monkeypatch.setattr(run, "HAS_SERVER", False)
    alone = export_model("linear", "fp32", exports / "alone")
    assert (alone.pte_sha256, alone.outputs) == (served.pte_sha256, served.outputs)


def _started(count: int) -> list[int]:
    """Wait until this many export processes have started in all, and return their ids."""
    wait_for(lambda: len(list(Path().glob("started-*"))) == count, "the export to start")
    return [int(path.name.split("-")[1]) for path in Path().glob("started-*")]


def _server_pid() -> int:
    server = client.export_server._server
    assert server is not None
    return server.process.pid


def _has_ended(pid: int) -> bool:
    return not _runs(pid)


def _runs(pid: int) -> bool:
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(said.stdout.strip()) and not said.stdout.startswith("Z")
