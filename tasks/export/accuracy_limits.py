"""How far the outputs of a recipe may be from their references before a cell is inaccurate.

Two questions have two limits. Does the device compute what the program computes on the machine that exported it? That
is tight, whatever the recipe costs. And how far is the program from eager PyTorch? Those limits are to find a broken
export (a wrong layout, a missing scale, a wrong kernel), not to judge a recipe: they lie below what the recipe costs on
the models of the zoo, and above the SNR of unrelated values, which is 0 dB or less. How much accuracy a task can lose
is for its own data set to decide.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class AccuracyLimits:
    """The least signal-to-noise ratio of an output, in dB."""

    eager_db: float
    """Against eager PyTorch in the same precision, quantized where the recipe quantizes."""
    fp32_db: float
    """Against eager PyTorch in fp32."""
    host_db: float
    """Against the same program on the machine that exported it."""
    same_text: bool = True
    """Whether the tokens that a language model writes must be eager's. Activations that are quantized at run time are
    rounded in other ways than in eager, so a choice between two words that are nearly as likely may differ."""


# Limits against eager, fp32 and the host. Beside each: the least SNR against eager and fp32 of toy_cnn, bert_tiny,
# resnet18, mobilenet_v2 and mobilevit_xs with seeded weights, on x86-64; of int4, of the first two. Then that against
# the host, of toy_cnn, bert_tiny and mobilenet_v2, exported on x86-64 and run on an emulated arm64 processor, with SME2
# and without; the same processor as the host's returns the same bits. fp16 differs most: processors accumulate it in
# different types.
# A limit is not in the text that keys an export, so that changing it exports nothing again.
_LIMITS = {
    "fp32": AccuracyLimits(60, 60, 100),  # 123; 140
    "fp16": AccuracyLimits(30, 30, 35),  # 47 and 48; 51
    "int8_static": AccuracyLimits(15, 5, 35, same_text=False),  # 32 and 30, without mobilevit_xs; equal
    "int8_dynamic": AccuracyLimits(20, 10, 40, same_text=False),  # 58 and 41, without mobilevit_xs; 143
    "int4_dynamic": AccuracyLimits(20, 5, 40, same_text=False),  # 44 and 22; 136
}


def limits_of(precision: str, data_types: Iterable[str] | None) -> AccuracyLimits:
    """Return the limits of a recipe; those of the types that its program computes in for any that is not listed.

    Such are a .pte file from elsewhere and a user's own recipe. `data_types` are those beside fp32; without them it has
    the limits of int8_static.
    """
    if limits := _LIMITS.get(precision.partition(" ")[0]):
        return limits
    if data_types is None:
        return _LIMITS["int8_static"]
    each = [_LIMITS["fp32"], *(_LIMITS[name] for name in data_types)]
    return AccuracyLimits(
        eager_db=min(limits.eager_db for limits in each),
        fp32_db=min(limits.fp32_db for limits in each),
        host_db=min(limits.host_db for limits in each),
        same_text=all(limits.same_text for limits in each),
    )
