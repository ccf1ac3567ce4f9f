"""What is measured alike: the words that tell one cell of a sweep from another.

`Precision` is defined beside its recipes (tasks/export/precision.py), `Platform` in devices/platform.py.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from tasks.export.precision import Precision

Variant = Literal["sme2_on", "sme2_off"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
Mode = Literal["timing", "profile", "trace"]
"""timing: latency; profile: kernels that ran, sampled by the farm's runner; trace: kernels that were selected, as a
registered runner logs them."""
MODES: tuple[Mode, ...] = get_args(Mode)
Status = Literal["succeeded", "failed", "invalid"]


@dataclass(frozen=True)
class Cell:
    """What is measured alike: one model, precision, thread count and variant, in one mode, on one device."""

    device: str
    model: str
    precision: Precision
    threads: int
    variant: Variant
    mode: Mode
    executions: int
    warmup_executions: int
