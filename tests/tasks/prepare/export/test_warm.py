import subprocess
import sys

import pytest

_PROGRAM = """
import copy, os
import torch
from torch.fx.traceback import NodeSource
from tasks.prepare.export import warm

def threads():
    return len(os.listdir("/proc/self/task"))

before = threads(), torch.get_num_threads()
warm.compute_patterns()
assert (threads(), torch.get_num_threads()) == before, threads()
child = os.fork()
if child == 0:
    image = torch.ones(4, 64, 64, 64)
    torch.nn.functional.conv2d(image, torch.ones(64, 64, 3, 3))  # with torch's threads
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0

warm.share_node_sources()
source = NodeSource(None, "a pass")
copied = copy.deepcopy([source])
copied.append(NodeSource(None, "a later pass"))
assert copied[0] is source
"""


@pytest.mark.skipif(sys.platform != "linux", reason="exports are forked on Linux only")
def test_a_process_that_has_computed_the_patterns_can_still_be_forked() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], timeout=300, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
