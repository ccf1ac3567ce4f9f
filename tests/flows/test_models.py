"""Models of the user through the farm: from a factory, from elsewhere, checked before, and their time by module."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.farm import Farm, sweep_of

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
    given, made = ("./convolved.pte", "lookup", "outside"), ("resizer@32", "resizer@4", "summed")
    expected = [(name, "as_is", 3) for name in given] + [(name, "fp32", 3) for name in made]
    assert [(row["model"], row["precision"], row["runs"]) for row in measured] == expected
    # and recipes without meaning are skipped with their reason
    reason = "the model has no linear layers, so nothing can be quantized"
    assert f"skipped: resizer int8_dynamic ({reason})" in done.stdout
    skipped = farm.ask("SELECT model, reason FROM skipped_model ORDER BY model")
    assert skipped == [{"model": name, "reason": reason} for name in ("resizer", "summed")]
    # and outputs are compared where something is expected of them, of the first execution
    errors = farm.ask("SELECT model, max(max_abs_error) AS error FROM session_accuracy GROUP BY ALL ORDER BY ALL")
    assert [row["model"] for row in errors] == ["lookup", "outside", "resizer@32", "resizer@4", "summed"]
    assert max(row["error"] for row in errors) < 1e-5
    unequal = "SELECT DISTINCT model FROM session_overview WHERE NOT outputs_repeat"
    assert farm.ask(unequal) == [{"model": "summed"}]
    assert farm.ask("SELECT count(tracing_cost) AS known FROM session_latency") == [{"known": 6}]
    # and nothing is exported or measured again
    assert "sessions: 7 already done" in farm.sweep(SWEEP).stdout
    # and a check describes each case of the same export
    checked = farm.run("model", "check", "./models.py:resizer")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert re.search(r"^\./models\.py:resizer@4 fp32: [0-9.]+ kB, exported in ", checked.stdout, re.MULTILINE)
    assert "operators: 1 delegated to XNNPACK, 0 portable\n" in checked.stdout
    assert "% delegated, 0.0 % (0.0 to 0.0 %) portable" in re.sub(r"% \([^)]*\) del", "% del", checked.stdout)
    assert "(five sessions, " in checked.stdout
    assert checked.stdout.count("input: largest absolute error against eager PyTorch") == 2


NET = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.pointwise, self.act, self.norm = nn.Conv2d(32, 32, 1), nn.ReLU(), nn.LayerNorm(16)
    def forward(self, features):
        return self.norm(self.act(self.pointwise(features)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(3, 32, 3, padding=1), nn.ModuleList([Block(), Block()])
    def forward(self, image):
        features = self.stem(image)
        for block in self.blocks:
            features = features + block(features)
        return features

def net():
    return Net(), (torch.rand(1, 3, 16, 16),)
"""


def sources(farm: Farm, model: str) -> list[dict[str, Any]]:
    columns = "instruction_id, operator, source_operator, fused_with, module_path, file_line, certainty"
    return farm.ask(f"SELECT {columns} FROM operator_source WHERE model = '{model}' ORDER BY ALL")


@pytest.mark.thorough
@pytest.mark.long
def test_the_time_of_a_model_is_shown_by_its_modules(farm: Farm) -> None:
    # given a model whose blocks have a 1x1 convolution with an activation and a layer norm, which stays portable
    (farm.folder / "net.py").write_text(NET, encoding="utf-8")
    ended = farm.sweep(sweep_of("./net.py:net", sessions=1))
    assert ended.returncode == 0, ended.stderr
    [model] = {row["model"] for row in farm.ask("SELECT model FROM module_time")}
    rows = sources(farm, model)
    # then a 1x1 convolution that runs as a fully connected operator is a convolution of its module
    pointwise = [row for row in rows if row["operator"].startswith("Fully Connected")]
    assert {row["source_operator"] for row in pointwise} == {"aten.convolution.default"}
    assert [row["module_path"] for row in pointwise] == ["blocks.0.pointwise", "blocks.1.pointwise"]
    assert pointwise[0]["fused_with"] == "aten.relu.default of blocks.0.act"
    # and the portable layer norm has its path and its line
    norms = [row for row in rows if row["operator"] == "native_call_native_layer_norm.out"]
    assert [row["module_path"] for row in norms] == ["blocks.0.norm", "blocks.1.norm"]
    assert {row["file_line"] for row in norms} == {"net.py:10"}
    assert {row["certainty"] for row in rows} == {"known", "inserted"}
    # and the shares add up to 1
    [total] = farm.ask("SELECT sum(own_share) AS own, max(share) AS whole FROM module_time")
    assert total["own"] == pytest.approx(1)
    assert total["whole"] == pytest.approx(1)
    # and the report has each module with 5 % of the time; so short a run may be mostly unattributed
    report = next(farm.data_dir.glob("reports/*/report.md")).read_text(encoding="utf-8")
    heavy = farm.ask("SELECT module_path AS path FROM module_time WHERE path LIKE 'blocks.%' AND own_share >= 0.05")
    assert [row["path"] for row in heavy if f"`{row['path']}`" not in report] == []
    # when its program and ETRecord are given as files
    record = json.loads(next(farm.data_dir.glob("bundles/*/*/session.json")).read_bytes())
    export = farm.data_dir / "exports" / record["model"]["export_key"]
    given = {"name": "given", "pte": f"{export}/model.pte", "etrecord": f"{export}/model.etrecord"}
    ended = farm.sweep(sweep_of(given, name="again", sessions=1))
    assert ended.returncode == 0, ended.stderr
    # then the result is the same
    assert sources(farm, "given") == rows
