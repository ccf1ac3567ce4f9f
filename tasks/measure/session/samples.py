"""Judge a program by the samples of its entry, which the machine that exported it executed."""

import hashlib
import json
import math
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any

from tasks.bundle.accuracy import Accuracy, SampleRecord
from tasks.export.accuracy_limits import AccuracyLimits
from tasks.export.entry import AccuracyRequirement
from tasks.export.exported import Export
from tasks.export.outputs.difference import Difference
from tasks.measure.session.accuracy import ZERO_LIMIT, is_beyond_limit

_Figures = list[dict[str, Any] | None]


def judge_samples(export: Export, limits: AccuracyLimits, required: AccuracyRequirement | None) -> list[Accuracy]:
    """Return one row with the figures of all samples and of the worst one; none without samples that were executed.

    The SNR is that against fp32 or, for the recipe fp32, against eager PyTorch. A sample is below the limit if an
    output is inaccurate against either. `top1` is the mean over the samples.
    """
    figures = export.sample_figures
    if not figures or not figures["samples"]:
        return []
    samples = {sample["name"]: sample["differences"] for sample in figures["samples"]}
    exact = "fp32" if "fp32" in next(iter(samples.values())) else "eager"
    minimum = {"eager": limits.eager_db, "fp32": limits.fp32_db}
    if required and required.min_snr_db is not None:
        minimum[exact] = required.min_snr_db
    is_below = {name: _is_below(differences, minimum) for name, differences in samples.items()}
    levels = {name: _level_db(differences[exact]) for name, differences in samples.items()}
    worst = min(levels, key=lambda name: (not is_below[name], levels[name]))
    record = _record(figures, worst, sum(is_below.values()), required)
    record = record.model_copy(update={"median_snr_db": _finite(median(levels.values()))})
    outputs = samples[worst][exact]
    agreements = [value for each in samples.values() if (value := _agreement(each[exact])) is not None]
    row = Accuracy(
        output=_worst_output(outputs),
        reference="samples",
        max_abs_error=max((each["max_abs_error"] or 0.0 for each in outputs if each), default=None),
        max_rel_error=None,
        nonfinite_mismatches=sum(each["nonfinite_mismatches"] for each in outputs if each),
        snr_db=_finite(levels[worst]),
        top1_agreement=fmean(agreements) if agreements else None,
        min_snr_db=minimum[exact],
        min_top1=required.top1 if required else None,
        samples=record,
    )
    allowed = (required.samples_below if required else None) or 0.0
    return [row.model_copy(update={"is_inaccurate": record.below > allowed * record.samples or _is_too_low(row)})]


def with_samples(rows: list[Accuracy], samples: list[Accuracy]) -> list[Accuracy]:
    """Return the rows of the measured input and of the samples, which alone judge the program if there are any.

    The measured input then shows whether the device computes what the exporting machine computes. It may be unlike the
    samples that calibrated the program.
    """
    if not samples:
        return rows
    unjudged = {"is_inaccurate": None, "min_snr_db": None, "min_top1": None}
    return [*(row if row.reference == "host" else row.model_copy(update=unjudged) for row in rows), *samples]


def _record(figures: dict[str, Any], worst: str, below: int, required: AccuracyRequirement | None) -> SampleRecord:
    """Return the record of samples without their median."""
    samples = figures["samples"]
    return SampleRecord(
        samples=len(samples),
        below=below,
        worst=worst,
        median_snr_db=None,
        score=_mean_score(samples, "program"),
        reference_score=_mean_score(samples, "reference"),
        min_score=required.score if required else None,
        calibrating=figures["calibrating"],
        machine=figures["machine"],
        sha256=hashlib.sha256(json.dumps([[each["name"], each["sha256"]] for each in samples]).encode()).hexdigest(),
    )


def _is_too_low(row: Accuracy) -> bool:
    """Return whether top-1 or the score over all samples is below its minimum; an unknown score is."""
    assert row.samples is not None
    score, min_score = row.samples.score, row.samples.min_score
    if min_score is not None and (score is None or score < min_score):
        return True
    return row.top1_agreement is not None and row.min_top1 is not None and row.top1_agreement < row.min_top1


def _is_below(differences: Mapping[str, _Figures], minimum: Mapping[str, float]) -> bool:
    """Return whether an output of a sample is beyond a limit, or its shape differs from that of a reference."""
    for reference, outputs in differences.items():
        for each in outputs:
            if each is None:
                return True
            figures = {name: value for name, value in each.items() if name != "is_integer"}
            if is_beyond_limit(Difference(**figures), minimum[reference], is_integer=each["is_integer"]):
                return True
    # As of one input: finite where neither reference is.
    return any(
        all(each and each["nonfinite_mismatches"] for each in of_output)
        for of_output in zip(*differences.values(), strict=True)
    )


def _level_db(outputs: _Figures) -> float:
    """Return the least SNR of the outputs of a sample: infinite if all are equal, -infinite if one has none."""
    return min((_output_level_db(each) for each in outputs), default=math.inf)


def _output_level_db(figures: dict[str, Any] | None) -> float:
    if figures is None or figures["nonfinite_mismatches"]:
        return -math.inf
    if figures["snr_db"] is not None:
        return float(figures["snr_db"])
    return math.inf if (figures["max_abs_error"] or 0.0) <= ZERO_LIMIT else -math.inf


def _worst_output(outputs: _Figures) -> int:
    levels = list(map(_output_level_db, outputs))
    return levels.index(min(levels)) if levels else 0


def _agreement(outputs: _Figures) -> float | None:
    """Return the top-1 agreement of the first output of a sample; None if it does not choose."""
    return outputs[0]["top1_agreement"] if outputs and outputs[0] else None


def _mean_score(samples: list[dict[str, Any]], key: str) -> float | None:
    """Return the mean score of the outputs of the program or of the reference; None if one is unknown or not finite."""
    scores = [sample["scores"][key] for sample in samples]
    return None if None in scores else _finite(fmean(scores))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
