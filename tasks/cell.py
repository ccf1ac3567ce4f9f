"""The dimensions of a sweep's cells.

`Precision` is defined beside its recipes (tasks/export/precision.py), `Platform` in devices/platform.py.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from tasks.export.precision import Precision

Variant = Literal["sme2_on", "sme2_off"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
Mode = Literal["timing", "profile", "trace"]
"""timing: latency; profile: executed kernels, sampled by the farm's runner; trace: selected kernels, logged by a
registered runner."""
MODES: tuple[Mode, ...] = get_args(Mode)
Status = Literal["succeeded", "failed", "invalid"]


@dataclass(frozen=True)
class Cell:
    """One configuration: model, precision, thread count, variant, mode and device; measured in several sessions."""

    device: str
    model: str
    precision: Precision
    threads: int
    variant: Variant
    mode: Mode
    executions: int
    warmup_executions: int
