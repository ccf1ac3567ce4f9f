"""A runner of this machine and two tiny models for it, made once for all tests of runners."""

import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasks.runner import Runner, build_runner, host_platform

_EXPORT = """
import sys
from pathlib import Path
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower

class Convolved(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.linear = torch.nn.Conv2d(3, 16, 3), torch.nn.Linear(16 * 14 * 14, 32)
    def forward(self, image):
        scores = self.linear(torch.relu(self.convolution(image)).flatten(1))
        return scores, torch.cumsum(scores, 1)

class Lookup(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)
    def forward(self, index):
        return self.table(index)

folder = Path(sys.argv[1])
torch.manual_seed(0)
models = {"convolved": (Convolved(), torch.randn(1, 3, 16, 16)), "lookup": (Lookup(), torch.arange(3))}
for name, (model, example) in models.items():
    exported = torch.export.export(model.eval(), (example,))
    program = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch()
    (folder / f"{name}.pte").write_bytes(program.buffer)
    example.numpy().tofile(folder / f"{name}-input.bin")
    outputs = model(example)
    for number, output in enumerate(outputs if isinstance(outputs, tuple) else (outputs,)):
        output.detach().numpy().tofile(folder / f"{name}-output-{number}.bin")
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Program:
    """A way to start a runner."""

    command: list[str]

    def __call__(self, *flags: object) -> Ended:
        done = subprocess.run(
            [*self.command, *map(str, flags)], capture_output=True, timeout=120, check=False, restore_signals=False
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of `convolved` (two outputs, one of a portable operator) and `lookup` (fails on an index above 9).

    Beside each NAME.pte lie NAME-input.bin and eager's NAME-output-N.bin.
    """
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("executorch") is None:
        pytest.skip("torch and executorch are not installed (extra `export`)")
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, "-c", _EXPORT, str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def host_runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """The runner bundle of this machine."""
    if importlib.util.find_spec("executorch") is None:
        pytest.skip("executorch is not installed (extra `export`)")
    return build_runner(host_platform(), tmp_path_factory.mktemp("var") / "runners")


@pytest.fixture(scope="session")
def run(host_runner: Runner) -> Program:
    """Start the runner of this machine with these flags."""
    return Program(host_runner.command(str(host_runner.folder)))
