"""Samples of the user: how they are read, which calibrate, what is refused, and how a program is judged by them."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices.errors import FarmError
from tasks.export.accuracy_limits import recipe_limits
from tasks.export.entry import ExportRequest, ModelEntry
from tasks.export.export import export_cases
from tasks.export.exported import SAMPLES, Case, Export, read_complete
from tasks.export.factory import build_methods
from tasks.export.lowering import lower
from tasks.export.outputs import samples as samples_module
from tasks.export.outputs.samples import add_samples, keep_files
from tasks.export.recipes import parse_recipe
from tasks.measure.session.samples import judge_samples

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


class Product(torch.nn.Module):  # type: ignore[misc]
    def forward(self, image: Any, scale: Any) -> Any:
        return image * scale


EXAMPLE = (torch.zeros(1, 4), torch.ones(1))


def opened(folder: Path, recipe: str = "fp32", **content: Any) -> tuple[Any, list[Any]]:
    content = {"module": Product(), "inputs": EXAMPLE, **content}
    methods = add_samples(folder, build_methods(content, "make"), parse_recipe(recipe))
    return methods[0].samples, methods


def inputs_of(folder: Path, **content: Any) -> list[list[float]]:
    """The inputs of the only sample in a folder."""
    samples, _ = opened(folder, **content)
    [path] = samples.files
    return [each.flatten().tolist() for each in samples.read(path)]


IMAGE, SCALE = np.arange(4, dtype="float32").reshape(1, 4), np.array([2.0], dtype="float32")


def write(path: Path, content: Any) -> None:
    """Write bytes, or what a type of file is for: a list or dict of arrays, or of tensors or any object."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif path.suffix == ".pt":
        torch.save(content, path)
    else:
        arrays, named = ([], content) if isinstance(content, dict) else (content, {})
        np.savez(path, *arrays, **named)


IN_TORCH = torch.from_numpy(IMAGE), torch.from_numpy(SCALE)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npz", {"scale": SCALE, "image": IMAGE}),
        ("a.npz", [IMAGE, SCALE]),
        ("a.npz", [IMAGE.astype("float64"), SCALE]),  # converted
        ("a.pt", IN_TORCH),
        ("a.pt", {"scale": IN_TORCH[1], "image": IN_TORCH[0]}),
        ("a.bin", IMAGE.tobytes() + SCALE.tobytes()),
    ],
)
def test_each_type_of_file_has_the_inputs_by_name_or_in_order(tmp_path: Path, name: str, content: Any) -> None:
    write(tmp_path / name, content)
    (tmp_path / ".hidden").write_bytes(b"")
    assert inputs_of(tmp_path) == [[0, 1, 2, 3], [2]]


def test_a_function_of_the_factory_reads_files_of_any_type(tmp_path: Path) -> None:
    (tmp_path / "a.ppm").write_bytes(b"P6 image")
    read = inputs_of(tmp_path, read_sample=lambda path: [torch.full((1, 4), float(path.stat().st_size)), torch.ones(1)])
    assert read == [[8] * 4, [1]]


class Command:
    """An object whose pickle runs a command."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch ran",)


def failing(path: Path) -> Any:
    raise LookupError("no label")


@pytest.mark.fault
@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.npz", {"image": IMAGE}, "has image; the inputs are image, scale"),
        ("a.npz", [IMAGE], "has 1 inputs; the model takes 2"),
        ("a.npz", [IMAGE[:, :3], SCALE], r"input 0 has shape \[1, 3\]; .* \[1, 4\]"),
        ("a.npz", [IMAGE.astype("uint8"), SCALE], "input 0 is uint8; .* float32"),
        ("a.npz", [np.array([{}]), SCALE], "cannot be read .*; save arrays of numbers"),
        ("a.npz", b"no zip", "cannot be read .*; save arrays of numbers"),
        ("a.pt", Command(), "not a file of torch.save with tensors alone"),
        ("a.pt", 7, "contains int; a sample is a tensor for each input"),
        ("a.bin", b"1234", "has 4 bytes; the inputs of the example have 20"),
        ("a.png", b"", "unknown type; use .npz, .npy, .pt or .bin, or .*read_sample"),
        ("b.png", b"", "`read_sample` failed: .*no label"),
    ],
)
def test_a_bad_sample_is_one_sentence_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: Any, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "samples"
    folder.mkdir()
    write(folder / name, content)
    with pytest.raises(FarmError, match=f"^samples/{name}: {sentence}"):
        inputs_of(folder, **({"read_sample": failing} if name == "b.png" else {}))
    assert not Path("ran").exists()


def test_an_empty_folder_and_a_model_with_several_methods_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FarmError, match="no samples; put a file for each sample there"):
        opened(tmp_path)
    methods = build_methods({"methods": {name: {"module": Product(), "inputs": EXAMPLE} for name in "ab"}}, "make")
    with pytest.raises(FarmError, match="one method; this one has a, b"):
        add_samples(tmp_path, methods, parse_recipe("fp32"))


def test_a_model_with_steps_or_without_the_required_score_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", IMAGE, SCALE)
    with pytest.raises(FarmError, match=r"`samples` needs a method without `steps`, which forward has; .*one exec"):
        opened(tmp_path, steps=2)
    methods = build_methods((Product(), EXAMPLE), "make")
    with pytest.raises(FarmError, match="`accuracy` requires a score, and the factory returns none; return `score`"):
        add_samples(tmp_path, methods, parse_recipe("fp32"), needs_score=True)


class Remembering(torch.nn.Module):  # type: ignore[misc]
    """Returns the sum of its input and the one before it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("before", torch.zeros(1, 4))

    def forward(self, values: Any) -> Any:
        added = values + self.before
        self.before.copy_(values)
        return added


def test_each_sample_is_executed_after_the_set_up_of_the_model(tmp_path: Path) -> None:
    # given a model whose set-up stores ones, and two samples that would otherwise add up
    images, folder, recipe = tmp_path / "images", tmp_path / "export", parse_recipe("fp16")
    images.mkdir()
    folder.mkdir()
    for number in range(2):
        np.save(images / f"{number}.npy", np.full((1, 4), number + 1, "float32"))
    setup = {"method": "forward", "inputs": (torch.ones(1, 4),)}
    sums: list[float] = []

    def score(outputs: Any, _path: Path) -> float:
        sums.append(float(outputs[0].sum()))
        return 1.0

    content = {"module": Remembering(), "inputs": (torch.zeros(1, 4),), "setup": setup, "score": score}
    lower.build(add_samples(images, build_methods(content, "make"), recipe), recipe, folder)
    # then program and reference have the sums of a sample and the set-up
    assert sums == [8.0, 8.0, 12.0, 12.0]


def test_spaced_samples_calibrate_unless_the_factory_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples_module, "_MAX_CALIBRATION", 3)
    for number in range(7):
        np.savez(tmp_path / f"{number}.npz", np.full((1, 4), number, "float32"), SCALE)
    # given seven samples, of which three may calibrate
    samples, [method] = opened(tmp_path, "int8_static")
    assert [int(image[0, 0]) for image, _ in method.calibration] == [0, 2, 4]
    assert samples.calibrating == 3
    # then other recipes are not calibrated, and a factory's calibration stays
    assert opened(tmp_path, "int8_dynamic")[1][0].calibration == []
    samples, [method] = opened(tmp_path, "int8_static", calibration=[EXAMPLE])
    assert (samples.calibrating, len(method.calibration)) == (0, 1)
    # and the files are copied only when that is requested
    keep_files(samples.files, tmp_path / "..")
    assert len(list((tmp_path / "../samples").iterdir())) == 7


class Detector(torch.nn.Module):  # type: ignore[misc]
    """Finds which of two channels is brighter."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = torch.nn.Conv2d(2, 2, 1, bias=False)
        self.mix.weight.data = torch.eye(2).reshape(2, 2, 1, 1)

    def forward(self, image: Any) -> Any:
        return self.mix(image).mean((2, 3))


@pytest.mark.parametrize(
    ("by_images", "below", "score", "top1"),
    [(False, 6, 0.5, 0.0), pytest.param(True, 0, 1.0, 1.0, marks=pytest.mark.thorough)],
)
def test_samples_find_a_wrong_calibration(
    tmp_path: Path, by_images: bool, below: int, score: float, top1: float
) -> None:
    # given a detector whose int8 calibration saw values around 0 or images, and images of 0 to 255
    images, folder, recipe = tmp_path / "images", tmp_path / "export", parse_recipe("int8_static")
    images.mkdir()
    folder.mkdir()
    for number in range(6):
        image = np.full((1, 2, 4, 4), 100, "float32")
        image[:, number % 2] += 50
        np.save(images / f"image{number}-{number % 2}.npy", image)
    content = {
        "module": Detector().eval(),
        "inputs": (torch.randn(1, 2, 4, 4),),
        "score": lambda outputs, path: outputs[0].argmax() == int(path.stem[-1]),
        "calibration": [] if by_images else [(torch.randn(1, 2, 4, 4),) for _ in range(8)],
    }
    # when it is exported, and judged by the images
    built = lower.build(add_samples(images, build_methods(content, "make"), recipe), recipe, folder)
    export = Export(folder, "key", "toy", recipe.name, 0, "pte", 1, {}, [], [], 1.0, Case(), samples=built["samples"])
    assert export.samples is not None
    assert export.samples["file"] == SAMPLES
    [row] = judge_samples(export, recipe_limits(recipe.name, None), None)
    # then samples find the wrong calibration, with the figure of the task
    assert row.samples is not None
    assert (row.samples.samples, row.samples.below, row.is_inaccurate) == (6, below, not by_images)
    assert (row.samples.score, row.samples.reference_score, row.top1_agreement) == (score, 1.0, top1)
    assert row.samples.calibrating == (6 if by_images else 0)


@pytest.mark.thorough
def test_an_export_has_the_figures_of_its_samples_and_the_files_if_they_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "samples"
    folder.mkdir()
    np.save(folder / "a.npy", np.ones((64, 256), "float32"))
    entry = ModelEntry.model_validate({"name": "linear", "factory": "linear", "samples": folder, "keep_samples": True})
    measured, tapped = (
        export_cases(ExportRequest(entry, "int8_static", tmp_path / "exports", taps=taps))[0] for taps in (False, True)
    )
    assert measured.sample_figures is not None
    assert [sample["name"] for sample in measured.sample_figures["samples"]] == ["a.npy"]
    assert [path.name for path in (measured.folder / "samples").iterdir()] == ["a.npy"]
    # and the program with taps is neither judged nor has files, but is calibrated as the measured one
    assert (tapped.samples, (tapped.folder / "samples").exists()) == (None, False)
    assert tapped.outputs[0]["sha256"] == measured.outputs[0]["sha256"]
    # and an export whose figures were changed is damaged
    (measured.folder / SAMPLES).write_text("{}")
    assert read_complete(measured.folder) is None
