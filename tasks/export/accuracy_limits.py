"""How far the outputs of a recipe may be from eager PyTorch before a cell is inaccurate.

The limits are to find a broken export (a wrong layout, a missing scale, a wrong kernel), not to judge a recipe: they
lie below what the recipe costs on the models of the zoo, and above the SNR of unrelated values, which is 0 dB or less.
How much accuracy a task can lose is for its own data set to decide.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class AccuracyLimits:
    """The least signal-to-noise ratio of an output, in dB."""

    eager_db: float
    """Against eager PyTorch in the same precision, quantized where the recipe quantizes."""
    fp32_db: float
    """Against eager PyTorch in fp32."""


_LIMITS = {
    "fp32": AccuracyLimits(eager_db=60, fp32_db=60),
    "fp16": AccuracyLimits(eager_db=30, fp32_db=30),
    "int8_static": AccuracyLimits(eager_db=10, fp32_db=3),
    "int8_dynamic": AccuracyLimits(eager_db=10, fp32_db=10),
}
_OTHERS = AccuracyLimits(eager_db=10, fp32_db=3)


def limits_of(precision: str) -> AccuracyLimits:
    """Return the limits of a recipe; those of int8_static for one that is not listed, such as a user's own."""
    return _LIMITS.get(precision.partition(" except ")[0], _OTHERS)
