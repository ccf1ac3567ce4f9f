"""Compare outputs and values inside the model with the same program on the host and with eager PyTorch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from devices.errors import FarmError
from tasks.bundle.accuracy import Accuracy, Layer, LayerDrift
from tasks.bundle.elements import elements_at, is_floating
from tasks.bundle.names import LAYER_DRIFT
from tasks.export.accuracy_limits import AccuracyLimits, max_margin
from tasks.export.entry import AccuracyRequirement
from tasks.export.outputs.difference import Difference, TensorFile, compare_tensors, first_difference
from tasks.store.files import hash_file

ZERO_LIMIT = 1e-3
"""The largest absolute error of an output that is 0 everywhere in eager PyTorch and so has no SNR."""
EQUAL_SHARE_LIMIT = 0.9
"""Integer outputs are accurate if this share of elements is equal: an SNR of indices, such as tokens, means nothing."""
_MAX_CAUSE_CHARS = 2000
SAMPLE_ELEMENTS = 64
"""Values of each layer that are kept."""
_UNDEFINED_FOR_TOKENS: dict[str, None] = {"snr_db": None, "cosine": None}
"""Figures that mean nothing for tokens."""
_REFERENCES = {"eager": "eager PyTorch", "fp32": "eager PyTorch in fp32", "host": "the same program on the host"}
"""Names of the references; a message names the first one whose limit is exceeded."""


class OutputMismatchError(FarmError):
    """An output is missing, has another size than the reference or is not finite; the text is one sentence."""


@dataclass(frozen=True)
class References:
    """The outputs of eager PyTorch that a session is compared with; entries are {file, dtype, shape} of export.json."""

    folder: Path
    eager: Sequence[dict[str, Any]]
    """In the recipe's precision; none if nothing can be compared."""
    fp32: Sequence[dict[str, Any]]
    """None where the recipe is fp32, or where they are unknown."""
    limits: AccuracyLimits
    host: Sequence[dict[str, Any]] = ()
    """Of the same program on the machine that exported it; none where that cannot run it."""
    required: AccuracyRequirement | None = None
    """Limits against fp32, or against `eager` where there is none, instead of those of the recipe."""
    are_tokens: bool = False
    """The outputs are tokens that were written one after another: after the first that differs, the text is another."""
    choices: Mapping[str, Sequence[dict[str, Any]]] = field(default_factory=dict)
    """The likeliest tokens at each place of a reference and their scores, see `first_difference`; none if unknown."""


def compare_outputs(references: References, collected: Path) -> list[Accuracy]:
    """Compare each `output-N.bin` in `collected` with its references; return rows by output, then host, eager, fp32.

    Limits of the sweep file apply against fp32, or against eager where there is none. Raises OutputMismatchError if an
    output is missing, has another size, or is NaN or infinite where eager PyTorch in the same precision is finite.
    """
    rows: list[Accuracy] = []
    for number, entry in enumerate(references.eager):
        eager = _reference(references.folder, entry)
        got = TensorFile(collected / f"output-{number}.bin", eager.dtype, eager.shape)
        check_size(number, got, eager)
        difference = compare_tensors(got, eager)
        required, has_fp32 = references.required, number < len(references.fp32)
        if difference.lost:
            another = ", or use another precision" if has_fp32 else ""
            raise OutputMismatchError(
                f"output {number} is NaN or infinite in {difference.lost} of {difference.elements} elements where "
                f"eager PyTorch is finite; add the mode numerics to see the first such layer{another}"
            )
        if number < len(references.host):
            host = _reference(references.folder, references.host[number])
            rows.append(_judged(references, "host", number, (got, host), compare_tensors(got, host)))
        beside_eager = _judged(references, "eager", number, (got, eager), difference, None if has_fp32 else required)
        rows.append(beside_eager)
        if has_fp32:
            exact = _reference(references.folder, references.fp32[number])
            rows.append(_judged(references, "fp32", number, (got, exact), compare_tensors(got, exact), required))
        if beside_eager.nonfinite_mismatches and rows[-1].nonfinite_mismatches:
            # Finite where the model is not. Finite where only the recipe is not, as in fp16, is right.
            rows[-1] = rows[-1].model_copy(update={"is_inaccurate": True})
    return rows


def with_cause(rows: list[Accuracy], notes: Sequence[str]) -> list[Accuracy]:
    """Return the rows; those that are inaccurate have what the export found as their cause, if it found anything."""
    cause = "; ".join(notes)[:_MAX_CAUSE_CHARS] or None
    return [row.model_copy(update={"cause": cause}) if row.is_inaccurate else row for row in rows]


def format_inaccuracy(sessions: Sequence[Sequence[Accuracy]]) -> str | None:
    """Return the worst output of a cell, of any session but samples, with its limit; None if none is inaccurate."""
    wrong = [[row for row in rows if row.is_inaccurate and not row.samples] for rows in sessions]
    if not any(wrong):
        return None
    # One without an SNR is farther off than any other.
    order = list(_REFERENCES)
    worst = min(
        (row for rows in wrong for row in rows),
        key=lambda row: (order.index(row.reference), -math.inf if row.snr_db is None else row.snr_db),
    )
    where = f"output {worst.output} in {sum(map(bool, wrong))} of {len(sessions)} sessions"
    return f"{where}: {_exceeded_limit(worst)}, against {_REFERENCES[worst.reference]}"


def _exceeded_limit(row: Accuracy) -> str:
    if row.first_difference is not None:
        return f"token {row.first_difference} differs"
    if row.snr_db is not None and row.min_snr_db is not None and row.snr_db < row.min_snr_db:
        return f"SNR {row.snr_db:.1f} dB, limit {row.min_snr_db:g} dB"
    if row.min_top1 is not None and row.top1_agreement is not None and row.top1_agreement < row.min_top1:
        return f"top-1 {100 * row.top1_agreement:.1f} %, limit {100 * row.min_top1:g} %"
    if row.nonfinite_mismatches:
        return f"NaN or infinite in {row.nonfinite_mismatches} elements of one side only, limit 0"
    return f"error {row.max_abs_error:.1e} where the reference is 0, limit {ZERO_LIMIT:.0e}"


def check_size(number: int, got: TensorFile, want: TensorFile) -> None:
    """Raise OutputMismatchError if an output is missing or has another size than its reference."""
    if not got.path.is_file():
        raise OutputMismatchError(f"output {number} is missing; eager PyTorch returns one of shape {list(want.shape)}")
    size_bytes, expected_bytes = got.path.stat().st_size, want.path.stat().st_size
    if size_bytes != expected_bytes:
        raise OutputMismatchError(
            f"output {number} has {size_bytes} bytes; eager PyTorch returns {expected_bytes} (shape {list(want.shape)})"
        )


def _reference(folder: Path, entry: dict[str, Any]) -> TensorFile:
    return TensorFile(folder / entry["file"], entry["dtype"], tuple(entry["shape"]))


def _judged(
    references: References,
    reference: Literal["host", "eager", "fp32"],
    number: int,
    files: tuple[TensorFile, TensorFile],
    difference: Difference,
    required: AccuracyRequirement | None = None,
) -> Accuracy:
    """Return the figures of an output (`files`: it and its reference), judged by the recipe or `required`."""
    min_snr_db: float | None = getattr(references.limits, f"{reference}_db")
    if required and required.min_snr_db is not None:
        min_snr_db = required.min_snr_db
    min_top1 = required.top1 if required else None
    figures = {name: value for name, value in asdict(difference).items() if name in Accuracy.model_fields}
    assert min_snr_db is not None
    is_inaccurate: bool | None
    if references.are_tokens:
        choices = [_reference(references.folder, each).read() for each in references.choices.get(reference, ())]
        first, margin = first_difference(files[0].read(), files[1].read(), choices)
        figures |= _UNDEFINED_FOR_TOKENS | {"first_difference": first, "margin": margin}
        is_tie = margin is not None and margin <= max_margin(min_snr_db)
        # Where the recipe's numbers are not those of the reference, another text is right, too: in fp32, and in eager
        # where activations are quantized at run time. The share of equal tokens is only reported.
        is_judged = reference == "host" or (reference == "eager" and references.limits.same_text)
        is_inaccurate = not is_tie and not difference.is_equal if is_judged else None
        min_snr_db = None
    else:
        is_inaccurate = is_beyond_limit(difference, min_snr_db, is_integer=not is_floating(files[1].dtype))
    if min_top1 is not None and difference.top1_agreement is not None:
        is_inaccurate = bool(is_inaccurate) or difference.top1_agreement < min_top1
    return Accuracy(
        output=number,
        reference=reference,
        min_snr_db=min_snr_db,
        min_top1=min_top1,
        is_inaccurate=is_inaccurate,
        **figures,
    )


def is_beyond_limit(difference: Difference, min_snr_db: float, *, is_integer: bool) -> bool | None:
    """Return whether an output is beyond its limit; None if its figures are inconclusive."""
    if difference.lost:
        return True  # as an fp16 value that is infinite in eager PyTorch too, but finite in fp32
    if difference.max_abs_error is None:
        return None
    if is_integer and difference.top1_agreement is not None and difference.top1_agreement >= EQUAL_SHARE_LIMIT:
        return False
    if difference.snr_db is not None:
        return difference.snr_db < min_snr_db
    if difference.is_equal:
        return False
    if difference.max_rel_error is not None:
        return None  # the SNR is missing for another reason than a reference that is 0 everywhere
    return difference.max_abs_error > ZERO_LIMIT


def write_layer_drift(taps: Sequence[dict[str, Any]], first: int, folder: Path, collected: Path) -> None:
    """Compare each tapped output in `collected`, from number `first`, with its reference in `folder`, and remove it.

    Writes layer_drift.json there. `taps` are those of export.json. Raises OutputMismatchError if a tapped output is
    missing or has another size.
    """
    layers = []
    for number, tap in enumerate(taps, first):
        want = _reference(folder, tap)
        got = TensorFile(collected / f"output-{number}.bin", want.dtype, want.shape)
        check_size(number, got, want)
        layers.append(_compare_layer(tap, got, want))
        got.path.unlink()
    (collected / LAYER_DRIFT).write_text(LayerDrift(layers=layers).model_dump_json())


def _compare_layer(tap: dict[str, Any], got: TensorFile, want: TensorFile) -> Layer:
    """Return the figures of a layer; those against fp32 only if the fp32 layer has the same shape."""
    difference = compare_tensors(got, want)
    figures = {name: value for name, value in asdict(difference).items() if name in Layer.model_fields}
    if fp32 := tap.get("fp32"):
        exact = _reference(want.path.parent, fp32)
        if exact.shape == want.shape:
            beside_fp32 = compare_tensors(got, exact)
            figures |= {"snr_fp32_db": beside_fp32.snr_db, "lost_fp32": beside_fp32.lost}
    sample: list[float] = []
    if difference.elements:
        at = np.linspace(0, difference.elements - 1, min(SAMPLE_ELEMENTS, difference.elements)).astype(np.int64)
        sample = elements_at(got.path, got.dtype, at).astype(np.float64).tolist()
    return Layer(
        layer=tap["order"],
        module=tap["module"],
        operator=tap["operator"],
        values_sha256=hash_file(got.path),
        sample=[value if math.isfinite(value) else None for value in sample],
        **figures,
    )
