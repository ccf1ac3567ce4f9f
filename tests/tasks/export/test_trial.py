"""The execution after an export: a program for what this machine lacks is ready, and its export says so."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tasks.export.exported import read_exports
from tasks.export.lowering.trial import execute_on_host
from tests.fixtures.command import Command
from tests.fixtures.program_builder import Signature, build_program

MODEL = """
import torch

library = torch.library.Library("stand_in", "DEF")
library.define("doubled(Tensor values) -> Tensor")
library.define("doubled.out(Tensor values, *, Tensor(a!) out) -> Tensor(a!)")

@torch.library.impl(library, "doubled", "CompositeExplicitAutograd")
def doubled(values):
    return values * 2

@torch.library.impl(library, "doubled.out", "CompositeExplicitAutograd")
def doubled_out(values, *, out):
    return out.copy_(values * 2)

class Doubling(torch.nn.Module):
    def forward(self, values):
        return torch.ops.stand_in.doubled(values)

def make():
    return Doubling(), (torch.rand(4),)
"""


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A stand-in for ExecuTorch's runtime on this machine: it has the backends and operators that a test gives it."""
    runtime = SimpleNamespace(
        backend_registry=SimpleNamespace(registered_backend_names=[]),
        operator_registry=SimpleNamespace(operator_names=set()),
    )
    for name in ("executorch", "executorch.kernels", "executorch.kernels.quantized", "executorch.runtime"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["executorch.runtime"].__dict__["Runtime"] = SimpleNamespace(get=lambda: runtime)
    return runtime


@pytest.fixture
def pte(tmp_path: Path) -> Path:
    """A program that calls a portable operator and XNNPACK."""
    path = tmp_path / "model.pte"
    path.write_bytes(build_program({"forward": Signature(chains=[[None, "XnnpackBackend"]])}))
    return path


def test_a_program_for_a_backend_or_operator_that_is_missing_here_is_not_tried(
    runtime: SimpleNamespace, pte: Path
) -> None:
    def outcome(backend: str, operator: str) -> str:
        runtime.backend_registry.registered_backend_names = [backend]
        runtime.operator_registry.operator_names = {operator}
        return execute_on_host(pte, [], None).outcome

    assert outcome("XnnpackBackend", "aten::add.out") == "succeeded"
    missing = "not tried here: this machine does not have the "
    assert outcome("XnnpackBackend", "aten::mul.out") == f"{missing}operator aten::add.out"
    assert outcome("CoreMLBackend", "aten::add.out") == f"{missing}backend XnnpackBackend"


@pytest.mark.usefixtures("runtime")
def test_a_machine_without_the_runtime_does_not_try(pte: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "executorch.runtime", ModuleType("executorch.runtime"))
    trial = execute_on_host(pte, [], None)
    assert trial.outcome.startswith("not tried here: ExecuTorch's runtime cannot be imported (cannot import name")


@pytest.mark.torch
@pytest.mark.thorough
def test_an_export_that_cannot_be_tried_here_is_ready_and_has_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    # given a model with an operator that only eager PyTorch has: it stands in for a backend that this machine lacks
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL)
    # when it is exported
    ended = command("model", "export", "./model.py:make", "--data-dir", tmp_path / "var")
    # then it is ready, with the reason, and without outputs of this machine
    outcome = "not tried here: this machine does not have the operator stand_in::doubled.out"
    assert (ended.code, ended.err) == (0, f"execution on this machine after the export: {outcome}\n")
    (export,) = read_exports(Path(ended.lines[0]))
    assert (export.trial, export.case.outputs_host) == (outcome, [])
    assert len(export.outputs) == 1
