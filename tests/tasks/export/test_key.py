"""The content key of an export: what changes it, and what does not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from devices.errors import FarmError
from tasks.export.entry import ExportRequest, ModelEntry
from tasks.export.key import export_key, record_left_out, record_used, source_sha256
from tests.fixtures.command import run_python

OWN = "import torch\nraise SystemExit('computing a key must not import the model')\n"


@pytest.fixture
def exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with one model of our own in a package; returns the exports folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").write_text(OWN)
    (tmp_path / "ours" / "model.py").write_text(OWN)
    return tmp_path / "exports"


def ours(exports: Path) -> ExportRequest:
    return ExportRequest("ours.model:make", "fp32", exports)


def test_model_precision_and_seed_each_change_the_key(exports: Path) -> None:
    toy = ExportRequest("toy_cnn", "fp32", exports)
    requests = [toy, replace(toy, seed=1), replace(toy, precision="fp16"), replace(toy, model="conv")]
    assert len({export_key(each) for each in requests}) == len(requests)


def test_samples_change_the_key_when_one_is_added_or_changes(exports: Path) -> None:
    folder = Path("images").absolute()
    folder.mkdir()
    keys = {export_key(ours(exports))}
    for name, content in (("a.bin", b"one"), ("a.bin", b"other"), ("b.bin", b"one")):
        (folder / name).write_bytes(content)
        entry = ModelEntry.model_validate({"name": "ours.model:make", "factory": "ours.model:make", "samples": folder})
        keys.add(export_key(replace(ours(exports), model=entry)))
    assert len(keys) == 4


def test_the_models_module_and_a_file_that_it_used_change_the_key_when_they_change_or_go(exports: Path) -> None:
    weights = Path("weights.bin").absolute()
    weights.write_bytes(b"one")
    keys = [export_key(ours(exports))]
    record_used(ours(exports), {weights}, {"numpy"})
    keys.append(export_key(ours(exports)))
    weights.write_bytes(b"two")
    keys.append(export_key(ours(exports)))
    weights.unlink()
    keys.append(export_key(ours(exports)))
    Path("ours/model.py").write_text(OWN + "# edited\n")
    assert len({*keys, export_key(ours(exports))}) == 5


def test_an_export_that_left_out_a_pass_has_another_key_than_one_with_it(exports: Path) -> None:
    def noted(*left_out: list[str], taps: bool = False) -> str:
        record_left_out(ExportRequest("toy_cnn", "fp32", exports, taps=taps), list(left_out))
        return export_key(ExportRequest("toy_cnn", "fp32", exports))

    with_all = noted()
    keys = [noted(["one_pass", "forward"]), noted(["another_pass", "forward"]), with_all]
    assert len(set(keys)) == 3
    # nor does it change the key of another recipe, or of the program of the mode numerics
    assert noted(["one_pass", "forward"], taps=True) == keys[1]
    assert noted() == with_all


def test_the_hash_of_the_source_follows_the_files_and_nothing_else(exports: Path) -> None:
    # given a model that reads a file of weights
    weights, code = Path("weights.bin").absolute(), Path("ours/model.py").absolute()
    weights.write_bytes(b"one")
    record_used(ours(exports), {weights, code}, {"numpy"})
    first = source_sha256(ours(exports))
    # then other packages do not change it, and neither does the place of the file
    weights.rename("moved.bin")
    moved = Path("moved.bin").absolute()
    record_used(ours(exports), {moved, code}, {"numpy", "pandas"})
    assert source_sha256(ours(exports)) == first
    # but its weights and its code do
    moved.write_bytes(b"two")
    other_weights = source_sha256(ours(exports))
    moved.write_bytes(b"one")
    Path("ours/model.py").write_text(OWN + "# edited\n")
    assert len({first, other_weights, source_sha256(ours(exports))}) == 3


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("yolo", "unknown model `yolo`; use package.module:factory, .*a model of the zoo: batch_matmul, "),
        ("ours.absent:make", "module ours.absent not found"),
        ("ours/absent.py:make", "ours/absent.py: no such file"),
        ("ours.model:", "package.module:factory"),
    ],
)
def test_a_missing_model_is_refused_in_one_sentence(exports: Path, model: str, words: str) -> None:
    with pytest.raises(FarmError, match=words) as refused:
        export_key(ExportRequest(model, "fp32", exports))
    assert "\n" not in str(refused.value)


PROGRAM = """
import json, sys
import numpy
import safetensors.numpy  # as the export server has imported safetensors before an export starts
from tasks.export.process.dependencies import recorded_dependencies
safetensors.numpy.save_file({"weight": numpy.ones(2)}, sys.argv[1])
with recorded_dependencies() as used:
    safetensors.numpy.load_file(sys.argv[1])
print(json.dumps([str(path) for path in used.files]))
"""


def test_weights_that_safetensors_reads_are_recorded_where_it_was_imported_before(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed (export extra)")
    weights = tmp_path / "weights.safetensors"
    done = run_python("-c", PROGRAM, weights)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [str(weights)]
