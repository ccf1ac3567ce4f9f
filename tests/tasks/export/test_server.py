"""What makes exports faster."""

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import copy, importlib, os, sys
import torch
from torch.fx.traceback import NodeSource
from tasks.export.process.child import SERVER_LOG, share_node_sources

def threads():
    return len(os.listdir("/proc/self/task")), torch.get_num_threads()

share_node_sources()
source = NodeSource(None, "a pass")
assert copy.deepcopy([source])[0] is source

# as on macOS, where importing the server imports no torch
os.environ[SERVER_LOG] = sys.argv[1]
here, sys.platform = sys.platform, "darwin"
from tasks.export.process import server
sys.platform = here
for name in server._IMPORTED:
    importlib.import_module(name)
before = threads()
server._compute_patterns()
assert threads() == before, threads()
"""


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="exports are forked on Linux only")
def test_a_server_that_has_computed_the_patterns_has_no_thread_more(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    done = subprocess.run([sys.executable, "-c", _PROGRAM, log], timeout=300, check=False)
    assert done.returncode == 0, log.read_text()
