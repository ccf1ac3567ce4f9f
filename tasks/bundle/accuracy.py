"""How far the outputs of a session are from their references (in session.json), and its layers (layer_drift.json)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from devices.untrusted import read_json
from tasks.bundle.names import FileName, Name, Sha256
from tasks.bundle.values import Count, Positive, SmallCount, formerly

Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SampleRecord(_Record):
    """What the samples of an entry show, as executed on the machine that exported the program."""

    samples: Positive
    below: SmallCount
    """Those with an output beyond a limit."""
    worst: FileName
    """The file of the worst sample."""
    median_snr_db: Finite | None
    """None if it is infinite, because half of the samples equal the reference, or unknown."""
    score: Finite | None = None
    """Mean of the user's function; None without one, and if a value is not finite."""
    reference_score: Finite | None = None
    """The same for the outputs of eager PyTorch, before the conversion."""
    min_score: Finite | None = None
    """The score that the sweep file requires; None if it states none."""
    calibrating: SmallCount = 0
    """Those that calibrated the recipe, too."""
    machine: Name
    """Host name, system and processor."""
    sha256: Sha256
    """Of the names and hashes of all samples."""


class Accuracy(_Record):
    """One output compared with one reference, as `Difference`; errors are None without a pair of finite values."""

    output: SmallCount
    reference: Literal["host", "eager", "fp32", "samples"] = "eager"
    """The same program on the machine that exported it, or eager PyTorch in the recipe's precision or in fp32.
    `samples`: the row has the figures of the worst sample."""
    max_abs_error: float | None
    max_rel_error: float | None
    nonfinite_mismatches: Count
    snr_db: float | None = None
    cosine: float | None = None
    top1_agreement: float | None = None
    min_snr_db: Annotated[float | None, formerly("min_snr_db", "least_snr_db")] = None
    """The limit that applied; None for tokens."""
    min_top1: Annotated[float | None, formerly("min_top1", "least_top1")] = None
    """The share of equal choices that the sweep file requires; None if it states none."""
    is_inaccurate: bool | None = None
    """Whether the output is beyond the limit; None if it was not judged."""
    first_difference: Count | None = None
    """Number, from 0, of the first written token that differs; None if none does, and of all other outputs."""
    margin: Finite | None = None
    """How far the scores of that token and of the reference's are from each other in eager PyTorch, relative to the
    root mean square of all scores there; None if it is not one of the likeliest four, or unknown."""
    cause: Annotated[str, Field(max_length=2000)] | None = None
    """Why it is inaccurate, as the export found: what is random in the model, or what ExecuTorch computes wrong."""
    samples: SampleRecord | None = None
    """All samples; None for other references."""

    @property
    def columns(self) -> dict[str, Any]:
        """The fields, and beside them those of the samples if there are any."""
        return self.model_dump(exclude={"samples"}) | (self.samples.model_dump() if self.samples else {})


def samples_sentence(row: Mapping[str, Any]) -> str:
    """Return what samples show and which machine executed them, from the columns of their row."""
    if not row["below"] and row["snr_db"] is None:
        levels = "outputs equal eager PyTorch's"
    else:
        levels = f"SNR median {_decibels(row['median_snr_db'])}, worst {_decibels(row['snr_db'])} ({row['worst']})"
    parts = [
        f"{row['samples']} samples, executed on {row['machine']} at the export: {levels}",
        f"{row['below']} below {row['min_snr_db']:g} dB ({100 * row['below'] / row['samples']:.1f} %)",
    ]
    if row["top1_agreement"] is not None:
        minimum = f", required {100 * row['min_top1']:g} %" if row["min_top1"] is not None else ""
        parts.append(f"same top class in {100 * row['top1_agreement']:.1f} %{minimum}")
    scores = [row["score"], row["reference_score"], row["min_score"]]
    if scores != [None, None, None]:
        score, exact, minimum = ("unknown or not finite" if value is None else f"{value:.4g}" for value in scores)
        required = f", required {minimum}" if row["min_score"] is not None else ""
        parts.append(f"score {score}, in eager PyTorch {exact}{required}")
    if row["calibrating"]:
        parts.append(f"calibrated with {row['calibrating']} of them")
    return "; ".join(parts)


def _decibels(value: float | None) -> str:
    return "equal or unknown" if value is None else f"{value:.1f} dB"


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
