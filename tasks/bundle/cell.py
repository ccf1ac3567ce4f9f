"""The dimensions of a sweep's cells; precisions are recipes (tasks/export/recipes.py)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import ConfigDict, Field

from tasks.bundle.runtime import Runtime, parse_runtime, program_name

Variant = Literal["sme2_on", "sme1", "sme2_off"]
VARIANT_MEANINGS: dict[Variant, str] = {
    "sme2_on": "XNNPACK may use SME2",
    "sme1": "XNNPACK may use SME, but not SME2",
    "sme2_off": "XNNPACK may use neither",
}
VARIANTS: tuple[Variant, ...] = get_args(Variant)
Mode = Literal["timing", "profile", "counts", "trace", "numerics", "selected"]
MODE_MEANINGS: dict[Mode, str] = {
    "timing": "every run with its ETDump; the only mode that counts as latency",
    "profile": "which kernels were executed, sampled by the farm's runner",
    "counts": "each call of a kernel of KleidiAI, counted and timed by the farm's runner, on arm64 Linux and Android",
    "trace": "which kernels XNNPACK selected, from the log of a registered runner that was built for it",
    "numerics": "values of the layers, returned by a program made for it, to compare with eager PyTorch",
    "selected": "which kernels XNNPACK selected; in older bundles only",
}
XNNPACK = "XnnpackBackend"
"""The id of XNNPACK in programs."""
AS_IS = "as_is"
"""The precision of a .pte file that the farm did not export."""
ROOF = "roof"
"""The model of the zoo that measures what a device can do at most; the macro `_is_roof` is the same for SQL."""
Status = Literal["succeeded", "failed", "invalid"]
Purpose = Literal["same_night", "comparison", "bisection", "noise"]
"""Why two contents are measured interleaved, beside the matrix of a sweep."""


class Use(NamedTuple):
    """What decides which runner of a platform executes a session."""

    variant: Variant
    mode: Mode
    version: str | None = None
    """The version of ExecuTorch that the session states; None for the farm's own, or a registered runner."""
    delegate: str | None = None
    """The delegate that the session states; None for XNNPACK."""


@dataclass(frozen=True)
class Arm:
    """One side of a comparison whose two sides are measured interleaved."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # of the record of a session

    purpose: Purpose
    comparison: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    """Its id, the same for both sides."""
    side: Literal["a", "b"]


@dataclass(frozen=True)
class Cell:
    """One configuration: model, precision, thread count, variant, mode and device; measured in several sessions."""

    device: str
    model: str
    """The case: the model's name, or `model@case` if it is measured in several ways (methods, shapes, versions of
    ExecuTorch, run-time options)."""
    precision: str
    """The name of a recipe, or `as_is`: of a .pte file that the farm did not export."""
    threads: int
    variant: Variant
    mode: Mode
    executions: int
    warmup_executions: int
    arm: Arm | None = None
    """None for sessions of the sweep's matrix; others belong to no series and no night."""

    @property
    def runtime(self) -> Runtime:
        return parse_runtime(self.model)

    @property
    def use(self) -> Use:
        return Use(self.variant, self.mode, self.runtime.runner, self.runtime.delegate)

    @property
    def program(self) -> tuple[str, str]:
        """The case and the precision that its export has."""
        return program_name(self.model), self.precision


def backend_name(precision: str, delegates: Iterable[str] | None) -> str:
    """Return the backends that a model was lowered to, from the ids of its program's delegates: `coreml+xnnpack`.

    Without delegates it is `portable`. None, of a bundle that does not state them, gives `xnnpack`, or `unknown` for a
    .pte file from elsewhere.
    """
    if delegates is None:
        return series_backend_name(precision, ())
    names = sorted({each.removesuffix("Backend").lower() for each in delegates})
    return "+".join(names) or "portable"


def series_backend_name(precision: str, delegates: Iterable[str] | None) -> str:
    """Return the backend as a part of a series' key.

    Without delegates other than XNNPACK it is `xnnpack`, or `unknown` for a .pte file from elsewhere: the keys from
    before programs were read for their delegates.
    """
    if delegates is None or set(delegates) <= {XNNPACK}:
        return "unknown" if precision == AS_IS else "xnnpack"
    return backend_name(precision, delegates)
