"""Exporting models: what is written, when it is made again, and what it survives."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.export.entry import ExportRequest
from tasks.export.exported import Export, ExportError
from tasks.export.key import export_key, source_sha256
from tasks.export.process.child import ExportOutcome
from tasks.export.program import read_program
from tests.fixtures.exports import export_model
from tests.tasks.export.conftest import toy

pytestmark = pytest.mark.torch

MODELS = """
from pathlib import Path
import torch
from helper import SCALE

class Ours(torch.nn.Module):
    def forward(self, images):
        return images.mean((2, 3)) * SCALE

def make():
    print("a factory may print")
    float(Path("weights.txt").read_text())
    return Ours(), (torch.rand(1, 3, 8, 8),)

def branching():
    class Branching(torch.nn.Module):
        def forward(self, values):
            return values + 1 if values.sum() > 0 else values - 1
    return Branching(), (torch.rand(4),)
"""


@pytest.fixture
def exports(exports: Path) -> Path:
    """The exports folder beside models of our own, and what they read."""
    Path("helper.py").write_text("SCALE = 2.0\n")
    Path("weights.txt").write_text("1.0")
    return exports


thorough = pytest.mark.thorough
MORE = ("fp16", "int8_dynamic", "int4_dynamic")
WIDTHS = {"fp32": (4, 0), "fp16": (2, 0), "int8_static": (1, 4), "int8_dynamic": (4, 0), "int4_dynamic": (4, 0)}
"""Bytes of a value of the first convolution, and of a scale of its weights and bias."""


@pytest.mark.parametrize(
    ("precision", "types", "tolerance"),
    [
        ("fp32", set[str](), 1e-5),
        pytest.param("fp16", {"fp16"}, 5e-3, marks=thorough),
        ("int8_static", {"int8_static"}, 5e-2),
        pytest.param("int8_dynamic", {"int8_dynamic"}, 5e-2, marks=thorough),
        pytest.param("int4_dynamic", {"int4_dynamic", "int8_dynamic"}, 5e-2, marks=thorough),
    ],
)
def test_a_program_computes_in_the_types_of_its_recipe(precision: str, types: set[str], tolerance: float) -> None:
    export = toy(precision)
    assert export.trial == "succeeded"
    assert set[str](export.data_types or ()) == types
    [host], [eager] = (
        [np.fromfile(export.folder / entry["file"], entry["dtype"]).astype(np.float64) for entry in entries]
        for entries in (export.case.outputs_host, export.outputs)
    )
    assert 0 < np.abs(host - eager).max() < tolerance * np.abs(eager).max()
    # and its portable operators are the kernels that the program calls
    [method] = read_program(export.pte)
    listed = Counter[str]()
    for entry in export.portable:
        listed["::".join(entry["operator"].split(".")[:2])] += entry["count"]
    assert listed == Counter((call.operator or "").partition(".")[0] for call in method.calls if call.operator)
    # and every file is as export.json says
    assert (export.model, export.precision, export.seed) == ("toy_cnn", precision, 0)
    assert (export.folder.name, export.pte.stat().st_size) == (export.export_key, export.pte_bytes)
    assert export.etrecord.stat().st_size > 0
    assert export.source_sha256 == source_sha256(ExportRequest("toy_cnn", precision, export.folder.parent))
    hashes = {"model.pte": export.pte_sha256} | {each["file"]: each["sha256"] for each in export.case.tensors}
    for file, sha256 in hashes.items():
        assert hashlib.sha256((export.folder / file).read_bytes()).hexdigest() == sha256


@pytest.mark.parametrize("precision", ["fp32", "int8_static", *(pytest.param(each, marks=thorough) for each in MORE)])
def test_the_work_of_the_operators_is_that_of_the_model_by_the_width_of_their_types(precision: str) -> None:
    export = toy(precision)
    nodes: list[dict[str, Any]] = []
    portable: list[dict[str, Any]] = []
    for call in json.loads((export.folder / "sources.json").read_text())["methods"]["forward"]:
        nodes += call.get("nodes") or []
        portable += [] if "nodes" in call else [call]
    assert sum(macs for macs, _ in (node["work"] for node in [*nodes, *portable])) == export.macs
    # the first convolution: 16 channels of 16 x 16 from 3 of 32 x 32, by 3 x 3
    first = next(node for node in nodes if node["kind"] == "XNNConv2d")
    width, scale = WIDTHS[precision]
    weights = 16 * 3 * 3 * 3 * width + 16 * (4 if width == 1 else width) + 2 * 16 * scale
    assert first["work"] == [16 * 16 * 16 * 27, (3 * 32 * 32 + 16 * 16 * 16) * width + weights]
    # the layer norm is portable: it reads 64 values, their weights and offsets, and writes its result and two figures
    if precision == "fp32":
        assert [call["work"] for call in portable] == [[0, 4 * (64 * 4 + 2)]]


@thorough
def test_inputs_follow_the_precision_and_conversions_are_compared_with_fp32_too(toys: dict[str, Export]) -> None:
    def contents(tensors: list[dict[str, Any]]) -> list[str]:
        return [entry["sha256"] for entry in tensors]

    assert toys["fp16"].inputs[0]["dtype"] == toys["fp16"].outputs[0]["dtype"] == "float16"
    assert toys["int8_static"].inputs == toys["int8_dynamic"].inputs == toys["fp32"].inputs
    # the outputs of a converted model are its own, beside those of the model before its conversion
    assert toys["fp32"].case.outputs_fp32 == []
    for precision in ("int8_static", "int8_dynamic", "int4_dynamic"):
        assert contents(toys[precision].case.outputs_fp32) == contents(toys["fp32"].outputs)
        assert contents(toys[precision].outputs) != contents(toys["fp32"].outputs)
    assert toys["int8_static"].pte_bytes < toys["fp16"].pte_bytes < toys["fp32"].pte_bytes


def test_delegated_operators_are_counted_and_portable_ones_have_a_reason() -> None:
    delegated = {entry["operator"]: entry["count"] for entry in toy("fp32").delegated}
    assert (delegated["aten.convolution.default"], delegated["aten.linear.default"]) == (3, 2)
    [portable] = toy("fp32").portable
    assert (portable["operator"], "no rule" in portable["reason"]) == ("aten.native_layer_norm.default", True)


def test_a_second_export_is_taken_from_disk_without_importing_torch(linear: Export) -> None:
    script = (
        "import sys, pathlib; from tests.fixtures.exports import export_model\n"
        "done = export_model('linear', 'fp32', pathlib.Path(sys.argv[1]))\n"
        "print(done.folder); print({'torch', 'executorch', 'transformers'} & {*sys.modules})"
    )
    before = linear.folder.stat().st_mtime_ns
    command = [sys.executable, "-c", script, str(linear.folder.parent)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [str(linear.folder), "set()"]
    assert linear.folder.stat().st_mtime_ns == before


def test_a_damaged_export_is_made_again(linear: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.export.process.run.run_export", lambda *_: ExportOutcome(error="made again"))
    for damaged in ("model.pte", "output-0.bin", "export.json"):
        file = shutil.copytree(linear.folder, tmp_path / linear.folder.name) / damaged
        file.write_bytes(file.read_bytes()[:-7])
        with pytest.raises(ExportError, match="made again"):
            export_model("linear", "fp32", tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_the_files_that_a_model_of_our_own_used_are_recorded_and_its_export_is_cached_folder(exports: Path) -> None:
    export = export_model("model:make", "fp32", exports)
    assert export.portable[0]["reason"] == "mean.dim only supports keepdim=True"
    assert export_model("model:make", "fp32", exports) == export  # its key holds: nothing it used has changed
    files = json.loads(next((exports / "used").iterdir()).read_text())["files"]
    assert [Path(name).name for name in files] == ["helper.py", "model.py", "weights.txt"]
    # and the lines of its operators are known, and a change in what it imports is a new content
    sources = json.loads((export.folder / "sources.json").read_text())
    assert "model.py:8" in {line for _, _, line in sources["sources"]}
    Path("helper.py").write_text("SCALE = 3.0\n")
    assert export_key(ExportRequest("model:make", "fp32", exports)) != export.export_key


def test_a_model_that_cannot_be_exported_gives_one_sentence_and_leaves_only_its_log(exports: Path) -> None:
    code = r"model\.py, line 18: `return values \+ 1 if .*`: depends on data.*; use torch\.where or torch\.cond"
    with pytest.raises(ExportError, match=f"^cannot export model:branching as fp32: {code}") as refused:
        export_model("model:branching", "fp32", exports)
    assert "\n" not in str(refused.value)
    assert Path(str(refused.value).split("the full log is ")[1]).stat().st_size > 0
    assert not [*exports.glob("*/export.json"), *exports.glob(".part-*")]


@thorough
@pytest.mark.parametrize("room_kb", [136, 0])
def test_a_full_disk_is_one_sentence(full_disk: Path, room_kb: int) -> None:
    # given a disk with room for the log and the inputs at most, but not for the program
    (full_disk / "other").write_bytes(bytes((1024 - room_kb) * 1024))
    with pytest.raises(ExportError, match=f"linear as fp32: no space left on the disk of {full_disk}"):
        export_model("linear", "fp32", full_disk)
    assert not [*full_disk.glob("*/model.pte"), *full_disk.glob(".part-*")]
