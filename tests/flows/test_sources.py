"""A sweep of a model with named modules shows its time by module, also for a .pte file with an ETRecord."""

import json
from typing import Any

import pytest

from tests.fixtures.farm import Farm, sweep_of

pytestmark = [pytest.mark.torch, pytest.mark.timeout(400)]

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
def test_the_time_of_a_model_is_shown_by_its_modules(farm: Farm) -> None:
    # given a model whose blocks have a 1x1 convolution with an activation and a layer norm, which stays portable
    (farm.folder / "net.py").write_text(NET, encoding="utf-8")
    ended = farm.sweep(sweep_of("./net.py:net", sessions=1))
    assert ended.returncode == 0, ended.stderr
    [model] = {row["model"] for row in farm.ask("SELECT model FROM module_time")}
    rows = sources(farm, model)
    # then a 1x1 convolution that runs as a fully connected operator is a convolution of its module
    pointwise = [row for row in rows if row["operator"].startswith("Fully Connected")]
    assert [(row["source_operator"], row["module_path"]) for row in pointwise] == [
        ("aten.convolution.default", "blocks.0.pointwise"),
        ("aten.convolution.default", "blocks.1.pointwise"),
    ]
    assert pointwise[0]["fused_with"] == "aten.relu.default of blocks.0.act"
    # and the portable layer norm has its path and its line
    norms = [row for row in rows if row["operator"] == "native_call_native_layer_norm.out"]
    assert [(row["module_path"], row["file_line"]) for row in norms] == [
        ("blocks.0.norm", "net.py:10"),
        ("blocks.1.norm", "net.py:10"),
    ]
    assert {row["certainty"] for row in rows} == {"known", "inserted"}
    # and the shares add up to 1
    [total] = farm.ask("SELECT sum(own_share) AS own, max(share) AS whole FROM module_time")
    assert total["own"] == pytest.approx(1)
    assert total["whole"] == 1
    # and the report has the module with the most time, whichever that was
    [heaviest] = farm.ask("SELECT module_path AS path FROM module_time ORDER BY own_share DESC LIMIT 1")
    assert f"`{heaviest['path']}`" in next(farm.data_dir.glob("reports/*/report.md")).read_text(encoding="utf-8")
    # when its program and ETRecord are given as files
    record = json.loads(next(farm.data_dir.glob("bundles/*/*/session.json")).read_bytes())
    export = farm.data_dir / "exports" / record["model"]["export_key"]
    given = {"name": "given", "pte": f"{export}/model.pte", "etrecord": f"{export}/model.etrecord"}
    ended = farm.sweep(sweep_of(given, name="again", sessions=1))
    assert ended.returncode == 0, ended.stderr
    # then the result is the same
    assert sources(farm, "given") == rows
