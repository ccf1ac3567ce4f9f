"""The values inside a model on a device compared with eager PyTorch, layer by layer."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tasks.bundle.layer_drift import Layer, LayerDrift
from tasks.bundle.names import LAYER_DRIFT
from tasks.measure.session.accuracy import check_size
from tasks.measure.session.difference import TensorFile, difference_of
from tasks.store.files import sha256_of

SAMPLE_ELEMENTS = 64


def write_layer_drift(taps: Sequence[dict[str, Any]], first: int, folder: Path, collected: Path) -> None:
    """Compare each tapped output in `collected`, from number `first`, with its reference in `folder`; remove it.

    `taps` are those of export.json. Raises OutputMismatchError if a tapped output is missing or has another size.
    """
    layers = []
    for number, tap in enumerate(taps, first):
        want = TensorFile(folder / tap["file"], tap["dtype"], tuple(tap["shape"]))
        got = TensorFile(collected / f"output-{number}.bin", want.dtype, want.shape)
        check_size(number, got, want)
        layers.append(_layer_of(tap, got, want))
        got.path.unlink()
    (collected / LAYER_DRIFT).write_text(LayerDrift(layers=layers).model_dump_json())


def _layer_of(tap: dict[str, Any], got: TensorFile, want: TensorFile) -> Layer:
    found = difference_of(got, want)
    figures = {name: value for name, value in asdict(found).items() if name in Layer.model_fields}
    if fp32 := tap.get("fp32"):
        exact = TensorFile(want.path.parent / fp32["file"], fp32["dtype"], tuple(fp32["shape"]))
        if exact.shape == want.shape:
            beside_fp32 = difference_of(got, exact)
            figures |= {"snr_fp32_db": beside_fp32.snr_db, "lost_fp32": beside_fp32.lost}
    return Layer(
        layer=tap["order"],
        module=tap["module"],
        operator=tap["operator"],
        values_sha256=sha256_of(got.path),
        sample=_sample(got, found.elements),
        **figures,
    )


def _sample(tensor: TensorFile, elements: int) -> list[float | None]:
    if not elements:
        return []
    at = np.linspace(0, elements - 1, min(SAMPLE_ELEMENTS, elements)).astype(np.int64)
    values = np.memmap(tensor.path, dtype=tensor.dtype, mode="r")[at].astype(np.float64)
    return [float(value) if math.isfinite(value) else None for value in values]
