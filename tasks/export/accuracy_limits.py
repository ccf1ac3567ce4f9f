"""Limits for the distance of a recipe's outputs from their references; beyond them a cell is inaccurate.

There are two comparisons. The outputs of a device are compared with those of the same program on the machine that
exported it. These limits are tight for every recipe. The program is compared with eager PyTorch. These limits find a
broken export (a wrong layout, a missing scale, a wrong kernel) and do not judge a recipe: they are below the SNR that
the recipe reaches on the models of the zoo, and above that of unrelated values, 0 dB or less. Whether a task can lose
that much accuracy must be measured on its data set.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tasks.bundle.delegates import delegate_names


@dataclass(frozen=True)
class AccuracyLimits:
    """Minimum signal-to-noise ratios of an output, in dB."""

    eager_db: float
    """Against eager PyTorch in the same precision, quantized where the recipe quantizes."""
    fp32_db: float
    """Against eager PyTorch in fp32."""
    host_db: float
    """Against the same program on the machine that exported it."""
    same_text: bool = True
    """Whether a language model must write the same tokens as eager PyTorch. Activations that are quantized at run time
    are rounded differently than in eager, so a choice between two nearly equal tokens may differ."""


# Limits against eager, fp32 and the host. Beside each: the least SNR against eager and fp32 of toy_cnn, bert_tiny,
# resnet18, mobilenet_v2 and mobilevit_xs with seeded weights, on x86-64; of int4, of the first two. Then that against
# the host, of toy_cnn, bert_tiny and mobilenet_v2, exported on x86-64 and run on an emulated arm64 processor, with SME2
# and without; the same processor as the host's returns the same bits. fp16 differs most: processors accumulate it in
# different types.
# This file is not part of an export key, so changing a limit exports nothing again. A program that is farther from
# eager PyTorch than its limit is tried without the farm's passes, too.
_LIMITS = {
    "fp32": AccuracyLimits(60, 60, 100),  # 123; 140
    "fp16": AccuracyLimits(30, 30, 35),  # 47 and 48; 51
    "bf16": AccuracyLimits(15, 15, 20, same_text=False),  # 28 and 27; not measured on arm64
    "int8_static": AccuracyLimits(15, 5, 35, same_text=False),  # 32 and 30, without mobilevit_xs; equal
    "int8_dynamic": AccuracyLimits(20, 10, 40, same_text=False),  # 58 and 41, without mobilevit_xs; 143
    "int4_dynamic": AccuracyLimits(20, 5, 40, same_text=False),  # 44 and 22; 136
}


_PROCESSOR_ROUNDS = ("openvino", "int8_static")
"""OpenVINO's int8 kernels round as the processor's instructions do. The outputs of mobilenet_v2 with AVX2 have an SNR
of 31 dB against those with SSE4.1 (2025.4.1), so each of them may be as far from the other as from eager."""


def recipe_limits(precision: str, data_types: Iterable[str] | None, delegate: str | None = None) -> AccuracyLimits:
    """Return the limits of a recipe for a `delegate`, as in the name of a case; options after its name do not count.

    A prebuilt .pte file and a user's own recipe get the lowest limits of fp32 and their `data_types`, or those of
    int8_static if these are None.
    """
    recipe = precision.partition(" ")[0]
    if limits := _LIMITS.get(recipe):
        name, rounding = _PROCESSOR_ROUNDS
        is_rounded = name in delegate_names(delegate) and recipe == rounding
        return replace(limits, host_db=limits.eager_db) if is_rounded else limits
    if data_types is None:
        return _LIMITS["int8_static"]
    applicable = [_LIMITS["fp32"], *(_LIMITS[name] for name in data_types)]
    return AccuracyLimits(
        eager_db=min(limits.eager_db for limits in applicable),
        fp32_db=min(limits.fp32_db for limits in applicable),
        host_db=min(limits.host_db for limits in applicable),
        same_text=all(limits.same_text for limits in applicable),
    )


def max_margin(min_snr_db: float) -> float:
    """Return how far two scores, relative to their RMS, may be from each other so that either token may be written.

    Scores at the limit of the recipe are off by this part of their RMS, and each of the two may be.
    """
    return float(2 * 10 ** (-min_snr_db / 20))
