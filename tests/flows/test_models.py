"""Models of the user through the farm: a factory beside the sweep, a program from elsewhere, and a check before."""

import re
import shutil
from pathlib import Path

import pytest

from tests.fixtures.farm import Farm

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]
pytest.importorskip("executorch", reason="exports and the runner need the export extra")

FACTORIES = """
import torch
from torch import nn


def resizer():
    size = torch.export.Dim("size", min=4, max=32)
    shapes = {f"{wide}": (torch.rand(1, 3, 8, wide),) for wide in (4, 32)}
    return {"module": nn.Conv2d(3, 4, 3, padding=1), "inputs": (torch.rand(1, 3, 8, 16),),
            "dynamic_shapes": ({3: size},), "shapes": shapes}


class Summed(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(1, 4))

    def forward(self, values):
        self.total.add_(values)
        return self.total * 1.0


def summed():
    return Summed(), (torch.rand(1, 4) + 1,)
"""
SWEEP = """
name: mine
models:
  - {name: resizer, factory: "./models.py:resizer"}
  - {name: lookup, pte: lookup.pte, inputs: [lookup-input.bin], expected: [lookup-output-0.bin]}
  - ./convolved.pte
  - {name: outside, pte: outside.pte, data: [outside.ptd], inputs: [outside-input.bin], expected: [outside-output.bin]}
  - {name: summed, factory: "./models.py:summed"}
precisions: [fp32, int8_dynamic]
variants: [sme2_off]
executions: 4
warmup_executions: 1
sessions: 1
"""


@pytest.mark.long
@pytest.mark.thorough
def test_any_model_is_measured_from_a_sweep(farm: Farm, models: Path) -> None:
    # given factories beside the sweep file, and programs that this farm never exported
    (farm.folder / "models.py").write_text(FACTORIES)
    outside = [f"outside{end}" for end in (".pte", ".ptd", "-input.bin", "-output.bin")]
    for name in ("lookup.pte", "lookup-input.bin", "lookup-output-0.bin", "convolved.pte", *outside):
        shutil.copy(models / name, farm.folder / name)
    # when they are measured
    done = farm.sweep(SWEEP)
    # then each shape is a case, and a program has the precision as_is
    assert done.returncode == 0, done.stdout + done.stderr
    measured = farm.ask("SELECT model, precision, runs FROM session_latency ORDER BY ALL")
    assert [(row["model"], row["precision"], row["runs"]) for row in measured] == [
        ("./convolved.pte", "as_is", 3),
        ("lookup", "as_is", 3),
        ("outside", "as_is", 3),
        ("resizer@32", "fp32", 3),
        ("resizer@4", "fp32", 3),
        ("summed", "fp32", 3),
    ]
    # and recipes without meaning are skipped with their reason
    reason = "the model has no linear layers, so nothing can be quantized"
    assert f"skipped: resizer int8_dynamic ({reason})" in done.stdout
    # and outputs are compared where something is expected of them, of the first execution
    errors = farm.ask("SELECT model, max(max_abs_error) AS error FROM session_accuracy GROUP BY ALL ORDER BY ALL")
    assert [row["model"] for row in errors] == ["lookup", "outside", "resizer@32", "resizer@4", "summed"]
    assert max(row["error"] for row in errors) < 1e-5
    repeats = farm.ask("SELECT DISTINCT model FROM session_overview WHERE NOT outputs_repeat")
    assert [row["model"] for row in repeats] == ["summed"]
    costs = farm.ask("SELECT count(tracing_cost) AS known FROM session_latency")
    assert [row["known"] for row in costs] == [6]
    # and nothing is exported or measured again
    assert "sessions: 7 already done" in farm.sweep(SWEEP).stdout
    # and a check describes each case of the same export
    checked = farm.run("model", "check", "./models.py:resizer")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "./models.py:resizer@4 fp32: 0.0" in checked.stdout
    assert "operators: 1 delegated to XNNPACK, 0 portable\n" in checked.stdout
    assert "% delegated, 0.0 % (0.0 to 0.0 %) portable" in re.sub(r"% \([^)]*\) del", "% del", checked.stdout)
    assert "(five sessions, " in checked.stdout
    assert checked.stdout.count("outputs: largest absolute error against eager PyTorch") == 2
