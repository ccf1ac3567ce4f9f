"""Values inside a model, from the real runner of this machine: a fault shows first at the layer that has it."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sql.warehouse import query
from tasks.bundle.accuracy import Layer, read_layer_drift
from tasks.bundle.cell import Cell
from tasks.bundle.names import LAYER_DRIFT
from tasks.export.exported import Export
from tasks.load.load import load_paths
from tasks.measure.plan import PlannedSession
from tasks.measure.session.accuracy import SAMPLE_ELEMENTS, write_layer_drift
from tests.fixtures.drifting import FAULTY
from tests.fixtures.exports import export_model
from tests.fixtures.paths import KEPT
from tests.fixtures.plans import NIGHT
from tests.fixtures.report import Report
from tests.fixtures.runner import runner_of_this_machine
from tests.fixtures.stand_in import GOOD, a_context, measured


def tapped(model: str, precision: str) -> Export:
    return export_model(f"tests.fixtures.drifting:{model}", precision, KEPT / "exports", taps=True)


def layers_of(folder: Path, export: Export) -> list[Layer]:
    """Measure a session in mode numerics and return its layers; what they returned is compared and not kept."""
    context = replace(a_context(folder, GOOD), export=export, runner=runner_of_this_machine())
    cell = Cell("local", "drifting", export.precision, 1, "sme2_off", "numerics", 1, 0)
    session = PlannedSession(NIGHT, cell, 0, 0, export.pte_sha256, context.runner.runner_sha256)
    record = measured(folder, context, session)
    assert (record.status, record.reason) == ("succeeded", None)
    assert [name for name in record.files if name.startswith("output-")] == ["output-0.bin"]
    return read_layer_drift(folder / "bundles" / NIGHT.sweep_id / record.session_id / LAYER_DRIFT)


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.parametrize(("precision", "least_db"), [("fp32", 100), ("fp16", 40), ("int8_static", 25)])
def test_the_layers_of_a_sound_model_are_near_eager(tmp_path: Path, precision: str, least_db: float) -> None:
    layers = layers_of(tmp_path, tapped("straight", precision))
    # the convolution, its normalization and its activation are one layer
    assert [(layer.layer, layer.operator.split(".")[1]) for layer in layers] == [
        (0, "relu"), (1, "conv2d"), (2, "add"), (3, "linear"),
    ]  # fmt: skip
    assert [layer.module for layer in layers if layer.module] == ["middle", "last"]
    assert all(layer.snr_db is None or layer.snr_db > least_db for layer in layers)


@pytest.mark.thorough
@pytest.mark.torch
def test_a_fault_shows_first_at_the_layer_that_has_it(tmp_path: Path) -> None:
    # given a program in which one layer has other weights than its reference
    sound, bent = tapped("straight", "fp32"), tapped("bent", "fp32")
    copy = shutil.copytree(sound.folder, tmp_path / "faulty")
    shutil.copyfile(bent.pte, copy / "model.pte")
    # when its numbers are compared layer by layer
    layers = layers_of(tmp_path, replace(sound, folder=copy, pte_sha256=bent.pte_sha256))
    # then all before the fault are near eager, and it and all after it are not
    snr_db = {layer.module or layer.operator: layer.snr_db or 300 for layer in layers}
    before, (first, *others) = list(snr_db.values())[:1], list(snr_db.items())[1:]
    assert min(before) > 100
    assert first[0] == FAULTY
    assert all(found < 40 for _, found in [first, *others])
    # and the warehouse and the report name it
    warehouse = tmp_path / "warehouse.duckdb"
    load_paths([tmp_path / "bundles"], warehouse)
    asked = "SELECT module FROM layer_drift WHERE snr_drop_db > 40"
    assert query(warehouse, asked)[1] == [(FAULTY,)]
    report = Report(warehouse, tmp_path / "reports", NIGHT.sweep_id)
    assert f"part from eager PyTorch at {FAULTY} (layer 1)" in report[""].words
    assert query(warehouse, "SELECT count(*) FROM event")[1] == [(0,)]


def test_the_values_of_each_layer_are_compared_and_not_kept(tmp_path: Path) -> None:
    # given two layers after one output: a long one that is a little off, and one with values that are not finite
    folder, collected = tmp_path / "export", tmp_path / "collected"
    folder.mkdir()
    collected.mkdir()
    first, second = np.arange(1, 1001, dtype=np.float32), np.array([1, np.inf, np.nan], np.float32)
    for name, want, got in (("a", first, first + 1), ("b", second, second)):
        want.tofile(folder / name)
        got.tofile(collected / f"output-{'ab'.index(name) + 1}.bin")
    taps = [
        {"file": "a", "dtype": "float32", "shape": [1000], "order": 3, "module": "m", "operator": "add"},
        {"file": "b", "dtype": "float32", "shape": [3], "order": 5, "module": None, "operator": "mul"},
    ]
    # when they are compared
    write_layer_drift(taps, 1, folder, collected)
    # then each has its figures and a sample from its first to its last value
    a, b = read_layer_drift(collected / LAYER_DRIFT)
    assert (a.layer, a.module, a.operator, a.elements, a.max_abs_error) == (3, "m", "add", 1000, 1.0)
    assert a.snr_db == pytest.approx(10 * np.log10((first.astype(float) ** 2).sum() / 1000))
    assert (len(a.sample), a.sample[0], a.sample[-1]) == (SAMPLE_ELEMENTS, 2.0, 1001.0)
    assert a.sample == sorted(a.sample, key=lambda value: value or 0)
    assert (b.layer, b.module, b.elements, b.nonfinite_mismatches, b.sample) == (5, None, 3, 0, [1.0, None, None])
    assert a.values_sha256 != b.values_sha256
    assert (b.snr_fp32_db, b.lost_fp32) == (None, None)
    # and the values themselves are gone
    assert [path.name for path in collected.iterdir()] == [LAYER_DRIFT]


@pytest.mark.parametrize(("exact", "lost"), [([1.0, 7e4], 1), ([1.0, np.inf], 0)])
def test_an_element_that_is_infinite_only_in_fp16_is_lost(tmp_path: Path, exact: list[float], lost: int) -> None:
    # given a layer of fp16 that overflows on the device and in eager PyTorch alike
    overflowed = np.array([1.0, np.inf], np.float16)
    for name in ("eager", "output-1.bin"):
        overflowed.tofile(tmp_path / name)
    np.array(exact, np.float32).tofile(tmp_path / "exact")
    tap = {"file": "eager", "dtype": "float16", "shape": [2], "order": 0, "module": "m", "operator": "mul"}
    write_layer_drift([{**tap, "fp32": {"file": "exact", "dtype": "float32", "shape": [2]}}], 1, tmp_path, tmp_path)
    [layer] = read_layer_drift(tmp_path / LAYER_DRIFT)
    assert (layer.nonfinite_mismatches, layer.lost_fp32) == (0, lost)
