"""layer_drift.json of a bundle: how far the values inside a model are from eager PyTorch, layer by layer."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from devices.untrusted import read_json
from tasks.bundle.values import Count, SmallCount


class Layer(BaseModel):
    """A layer whose values were compared; a figure that has no meaning is None: tasks/export/outputs/difference.py."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    layer: SmallCount
    """Its number in the order of the model, from 0."""
    module: str | None
    """Path of its module, such as `layers.0.attention`; None for an operator outside any."""
    operator: str
    elements: Count
    max_abs_error: float | None
    snr_db: float | None
    nonfinite_mismatches: Count
    snr_fp32_db: float | None = None
    """Against the same layer of the fp32 model; None if the recipe is fp32 or the fp32 model has no such layer."""
    lost_fp32: Count | None = None
    """Elements that are finite in the fp32 model alone, such as those beyond the range of fp16."""
    values_sha256: str
    """Of the device's values: equal on two devices or variants only if all bits are."""
    sample: list[float | None]
    """Evenly spaced elements of the device's values, the same ones in every session; None for NaN and infinity."""


class LayerDrift(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    layers: list[Layer]


def read_layer_drift(path: Path) -> list[Layer]:
    """Return the layers of a layer_drift.json. Raises OSError and ValueError."""
    return read_json(LayerDrift, path.read_bytes()).layers
