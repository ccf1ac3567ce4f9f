"""What makes exports faster."""

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import copy, os, sys
import torch
from torch.fx.traceback import NodeSource
from tasks.export.process.child import SERVER_LOG, share_node_sources

def threads():
    return len(os.listdir("/proc/self/task")), torch.get_num_threads()

share_node_sources()
source = NodeSource(None, "a pass")
assert copy.deepcopy([source])[0] is source

before = threads()
os.environ[SERVER_LOG] = sys.argv[1]
import tasks.export.process.server
assert "executorch.backends.xnnpack.partition.graphs.sdpa" in sys.modules
assert threads() == before, threads()
"""


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="exports are forked on Linux only")
def test_the_server_has_computed_the_patterns_and_has_no_thread_more(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    done = subprocess.run([sys.executable, "-c", _PROGRAM, log], timeout=300, check=False)
    assert done.returncode == 0, log.read_text()
