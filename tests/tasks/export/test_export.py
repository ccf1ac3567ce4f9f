"""Exporting models: what is written, when it is made again, and what it survives."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.export.entry import ExportRequest
from tasks.export.exported import Export, ExportError, NotApplicableError, read_exports
from tasks.export.key import source_sha256
from tasks.export.recipes import RECIPES
from tests.fixtures.exports import export_model

pytestmark = pytest.mark.torch

OWN_MODEL = """
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

def bare():
    return Ours()
"""


@pytest.fixture
def exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory (its name has a space and a quote) with models of our own; returns the exports folder."""
    place = tmp_path / "it's here"
    place.mkdir()
    monkeypatch.chdir(place)
    Path("own.py").write_text(OWN_MODEL)
    Path("helper.py").write_text("SCALE = 2.0\n")
    Path("weights.txt").write_text("1.0")
    return Path("exports")


@pytest.mark.parametrize("precision", RECIPES)
def test_the_program_agrees_with_the_eager_reference(toys: dict[str, Export], precision: str) -> None:
    import torch
    from executorch.runtime import Runtime

    export = toys[precision]
    inputs = [torch.from_numpy(_values(export, entry)) for entry in export.inputs]
    got = Runtime.get().load_program(export.pte).load_method("forward").execute(inputs)

    (wanted,) = [_values(export, entry).astype(np.float64) for entry in export.outputs]
    error = np.abs(got[0].double().numpy() - wanted).max() / np.abs(wanted).max()
    assert error < {"fp32": 1e-5, "fp16": 5e-3}.get(precision, 5e-2)


def test_the_outputs_of_the_program_on_this_machine_are_kept_beside_those_of_eager(toys: dict[str, Export]) -> None:
    for precision, export in toys.items():
        [host] = [_values(export, entry).astype(np.float64) for entry in export.case.outputs_host]
        [eager] = [_values(export, entry).astype(np.float64) for entry in export.outputs]
        assert 10 * np.log10((eager**2).sum() / ((host - eager) ** 2).sum()) > 30, precision


def test_the_types_of_a_program_are_those_of_its_recipe(toys: dict[str, Export]) -> None:
    assert {
        precision: sorted(export.data_types or ["?"]) for precision, export in toys.items() if precision != "fp32"
    } == {
        "fp16": ["fp16"],
        "int8_static": ["int8_static"],
        "int8_dynamic": ["int8_dynamic"],
        "int4_dynamic": ["int4_dynamic", "int8_dynamic"],
    }
    assert toys["fp32"].data_types == frozenset()


def test_every_file_is_as_export_json_says(toys: dict[str, Export]) -> None:
    for precision, export in toys.items():
        assert (export.model, export.precision, export.seed) == ("toy_cnn", precision, 0)
        assert export.folder.name == export.export_key
        assert hashlib.sha256(export.pte.read_bytes()).hexdigest() == export.pte_sha256
        assert export.pte.stat().st_size == export.pte_bytes
        assert export.etrecord.stat().st_size > 0
        assert export.versions["torch"] is not None
        assert export.source_sha256 == source_sha256(ExportRequest("toy_cnn", precision, export.folder.parent))
        for entry in (*export.inputs, *export.outputs):
            assert hashlib.sha256((export.folder / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]


def test_inputs_follow_the_precision_and_conversions_are_compared_with_fp32_too(toys: dict[str, Export]) -> None:
    assert toys["fp16"].inputs[0]["dtype"] == toys["fp16"].outputs[0]["dtype"] == "float16"
    assert toys["int8_static"].inputs == toys["int8_dynamic"].inputs == toys["fp32"].inputs
    # the outputs of a converted model are its own, beside those of the model before its conversion
    assert toys["fp32"].case.outputs_fp32 == []
    for precision in ("int8_static", "int8_dynamic", "int4_dynamic"):
        assert _contents(toys[precision].case.outputs_fp32) == _contents(toys["fp32"].outputs)
        assert _contents(toys[precision].outputs) != _contents(toys["fp32"].outputs)
    assert toys["int8_static"].pte_bytes < toys["fp16"].pte_bytes < toys["fp32"].pte_bytes


def test_portable_operators_are_the_kernels_that_the_program_calls(toys: dict[str, Export]) -> None:
    from executorch.exir._serialize._program import deserialize_pte_binary
    from executorch.exir.schema import KernelCall

    for export in toys.values():
        plan = deserialize_pte_binary(export.pte.read_bytes()).program.execution_plan[0]
        calls = [step.instr_args for chain in plan.chains for step in chain.instructions]
        called = Counter(plan.operators[call.op_index].name for call in calls if isinstance(call, KernelCall))
        assert called == {_kernel(entry["operator"]): entry["count"] for entry in export.portable}


def test_delegated_and_portable_operators_are_told_apart_with_the_reason(toys: dict[str, Export]) -> None:
    delegated = {entry["operator"]: entry["count"] for entry in toys["fp32"].delegated}
    assert delegated["aten.convolution.default"] == 3
    assert delegated["aten.linear.default"] == 2
    (portable,) = toys["fp32"].portable
    assert portable["operator"] == "aten.native_layer_norm.default"
    assert "no rule" in portable["reason"]


def test_a_second_export_is_taken_from_disk_without_importing_torch(toys: dict[str, Export]) -> None:
    script = (
        "import sys, pathlib; from tests.fixtures.exports import export_model\n"
        "done = export_model('toy_cnn', 'fp32', pathlib.Path(sys.argv[1]))\n"
        "print(done.folder); print({'torch', 'executorch', 'transformers'} & {*sys.modules})"
    )
    kept = toys["fp32"].folder
    before = kept.stat().st_mtime_ns
    ran = subprocess.run([sys.executable, "-c", script, kept.parent], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [str(kept), "set()"]
    assert kept.stat().st_mtime_ns == before


@pytest.mark.parametrize("damaged", ["model.pte", "output-0.bin", "export.json"])
def test_a_damaged_export_is_not_taken(linear: Export, tmp_path: Path, damaged: str) -> None:
    spoiled = copied(linear, tmp_path) / damaged
    spoiled.write_bytes(spoiled.read_bytes()[:-7])
    # No time to export again: what is asked here is only that the damaged one is neither taken nor left.
    with pytest.raises(ExportError, match=r"the export was stopped after 0\.01 s"):
        export_model("linear", "fp32", tmp_path, deadline_s=0.01)
    assert _names(tmp_path) == ["logs"]


def test_two_exports_at_once_of_a_damaged_one_both_give_the_same_bytes_as_before(
    linear: Export, tmp_path: Path
) -> None:
    folder = copied(linear, tmp_path)
    (folder / "model.pte").write_bytes(b"not a program")

    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: export_model("linear", "fp32", tmp_path), range(2)))

    assert [export.folder for export in made] == [folder, folder]
    assert made[0].pte_sha256 == made[1].pte_sha256 == linear.pte_sha256
    assert made[0].outputs == linear.outputs
    assert _names(tmp_path) == sorted([folder.name, "logs"])


def test_the_files_that_a_model_of_our_own_used_are_recorded_and_its_export_is_made_once(exports: Path) -> None:
    export = export_model("own:make", "fp32", exports)

    assert export.portable[0]["reason"] == "mean.dim only supports keepdim=True"
    assert export_model("own:make", "fp32", exports) == export  # its key holds: nothing it used has changed
    noted = json.loads(next((exports / "used").iterdir()).read_text())["files"]
    assert [Path(name).name for name in noted] == ["helper.py", "own.py", "weights.txt"]


def test_a_function_that_is_not_there_is_told_before_an_export_runs(exports: Path) -> None:
    with pytest.raises(ExportError) as refused:
        export_model("own:absent", "fp32", exports)
    sentence = "cannot export own:absent as fp32: own.py: no function named absent; it has make, branching, bare"
    assert str(refused.value) == sentence
    assert not list(exports.glob("logs/*"))


@pytest.mark.parametrize(
    ("model", "precision", "words"),
    [
        (
            "own:branching",
            "fp32",
            r"own\.py, line 18: `return values \+ 1 if .*` depends on data.*; use torch\.where or torch\.cond",
        ),
        ("own:bare", "fp32", r"must return \(torch\.nn\.Module, tuple of tensors\) or a dict, not Ours"),
    ],
)
def test_a_model_that_cannot_be_exported_gives_one_sentence(
    exports: Path, model: str, precision: str, words: str
) -> None:
    with pytest.raises(ExportError, match=words) as refused:
        export_model(model, precision, exports)
    sentence = str(refused.value)
    assert sentence.startswith(f"cannot export {model} as {precision}: ")
    assert "\n" not in sentence
    assert Path(sentence.split("the full log is ")[1]).stat().st_size > 0
    assert not list(exports.glob("*/export.json"))
    assert not list(exports.glob(".part-*"))


def test_a_recipe_without_meaning_is_found_once(exports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a model without linear layers
    for _ in range(2):
        # when it is exported by a recipe for these, then that is skipped with the reason
        with pytest.raises(NotApplicableError, match="the model has no linear layers, so nothing can be quantized"):
            export_model("batch_matmul", "int8_dynamic", exports)
        # and the next night without another attempt
        monkeypatch.delattr("tasks.export.export.run_export", raising=False)
    assert not list(exports.glob("*/export.json"))


@pytest.mark.parametrize(("model", "precision"), [("toy_cmm", "fp32"), ("toy_cnn", "fp8"), ("absent:make", "fp32")])
def test_unknown_names_are_refused_before_anything_is_made(exports: Path, model: str, precision: str) -> None:
    with pytest.raises(ExportError, match=r"unknown model|unknown precision|not found"):
        export_model(model, precision, exports)
    assert not exports.exists()


@pytest.mark.parametrize("has_room_for_the_log", [True, False])
def test_a_full_disk_is_one_sentence(small_disk: Path, has_room_for_the_log: bool) -> None:
    if not has_room_for_the_log:
        subprocess.run(["dd", "if=/dev/zero", f"of={small_disk / 'full'}"], capture_output=True, check=False)
    with pytest.raises(ExportError, match=f"linear as fp32: no space left on the disk of {small_disk}"):
        export_model("linear", "fp32", small_disk)
    assert not list(small_disk.glob("*/model.pte"))
    assert not list(small_disk.glob(".part-*"))


def test_a_folder_without_an_export_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"export\.json is missing"):
        read_exports(tmp_path)
    (tmp_path / "export.json").write_text('{"export_version": 99}')
    with pytest.raises(ExportError, match="another version"):
        read_exports(tmp_path)


def copied(export: Export, exports: Path) -> Path:
    """Copy an export to another exports folder; return its folder there."""
    return shutil.copytree(export.folder, exports / export.folder.name)


@pytest.fixture
def small_disk(full_disk: Path) -> Path:
    """A disk with room for the log and the inputs, but not for the program."""
    (full_disk / "other").write_bytes(bytes(888 * 1024))
    return full_disk


def _values(export: Export, entry: dict[str, Any]) -> Any:
    return np.fromfile(export.folder / entry["file"], dtype=entry["dtype"]).reshape(entry["shape"])


def _contents(tensors: list[dict[str, Any]]) -> list[str]:
    return [entry["sha256"] for entry in tensors]


def _kernel(operator: str) -> str:
    return operator.removesuffix(".default").replace(".", "::", 1)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
