"""What makes exports faster."""

import subprocess
import sys

import pytest

_PROGRAM = """
import copy, os
import torch
from torch.fx.traceback import NodeSource
from tasks.export.process import warm

def threads():
    return len(os.listdir("/proc/self/task")), torch.get_num_threads()

before = threads()
warm.compute_patterns()
assert threads() == before, threads()

warm.share_node_sources()
source = NodeSource(None, "a pass")
assert copy.deepcopy([source])[0] is source
"""


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="exports are forked on Linux only")
def test_a_process_that_has_computed_the_patterns_has_no_thread_more() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], timeout=300, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
