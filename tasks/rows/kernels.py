"""The kernels of a bundle: counted ones, executed ones by the runner's samples, and selected ones."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from devices.untrusted import read_json
from tasks.bundle.names import COUNTS, PROFILE, SELECTED
from tasks.bundle.record import BundleError, SessionRecord
from tasks.bundle.values import Count, SmallCount, first_mistake
from tasks.etdump.xnntrace import parse_kernel, selected_kernels

_Schema = TypeVar("_Schema", bound=BaseModel)
_XNNPACK = "libexecutorch_backend_xnnpack.so"
_QUALITY = {"rate_hz", "cpu_ns", "samples", "dropped", "unresolved", "threads"}
_LOGS = ("stderr.txt", "stdout.txt", "logcat.txt")  # Notes go to stderr, on Android to logcat


class _Samples(BaseModel, frozen=True, strict=True):
    """Number of samples in one function or, without a name, in a library whose functions have no names."""

    samples: Count
    name: str | None = None
    library: str | None = None


class _Profile(BaseModel, frozen=True, strict=True):
    """kernel_profile.json."""

    rate_hz: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    cpu_ns: Count | None = None
    samples: Count
    dropped: Count
    unresolved: Count
    threads: SmallCount
    kernels: list[_Samples]
    unresolved_libraries: list[_Samples] | None = None


class _Calls(BaseModel, frozen=True, strict=True):
    """A kernel that XNNPACK can call, its calls, and the nanoseconds in them of all threads together."""

    name: str
    calls: Count
    ns: Count


class KernelCounts(BaseModel, frozen=True, strict=True):
    """kernel_counts.json."""

    executions: SmallCount
    clock_hz: Count
    cost_ns_per_call: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """What counting adds to a call while all threads call one kernel."""
    kernels: list[_Calls]

    @property
    def called(self) -> list[_Calls]:
        return [kernel for kernel in self.kernels if kernel.calls]


class _SelectedKernels(BaseModel, frozen=True, strict=True):
    """selected_kernels.json of an older bundle."""

    selected: list[str]
    unnamed: Count
    """Functions of XNNPACK that operators point to and that have no name: kernels, and others."""


def kernel_rows(folder: Path, record: SessionRecord) -> dict[str, list[dict[str, Any]]]:
    """Return rows of `kernel`, and of `kernel_profile` or `kernel_counts`, by table; BundleError if a file is bad."""
    if record.mode == "trace":
        lines = _count_selected([folder / name for name in _LOGS if name in record.files])
        return {"kernel": [_kernel_row("selected", name, count) for name, count in lines.items()]}
    if COUNTS in record.files:
        counts = read_counts(folder / COUNTS, record.executions)
        rows = [_kernel_row("counted", each.name, each.calls, _XNNPACK) | {"ns": each.ns} for each in counts.called]
        compiled = [_named(each.name) for each in counts.kernels]
        session = counts.model_dump(exclude={"kernels"}) | {"compiled": compiled}
        return {"kernel": rows, "kernel_counts": [session]}
    if SELECTED in record.files:
        kernels = _read_file(_SelectedKernels, folder / SELECTED, "a list of selected kernels")
        rows = [_kernel_row("selected", name, 1, _XNNPACK) for name in kernels.selected]
        unnamed = [_kernel_row("selected", None, kernels.unnamed, _XNNPACK)] if kernels.unnamed else []
        return {"kernel": rows + unnamed}
    if PROFILE in record.files:
        profile = _read_file(_Profile, folder / PROFILE, "a kernel profile")
        unresolved = profile.unresolved_libraries
        if unresolved is None and profile.unresolved:
            unresolved = [_Samples(samples=profile.unresolved)]
        samples = [*profile.kernels, *(unresolved or [])]
        rows = [_kernel_row("executed", each.name, each.samples, each.library) for each in samples]
        return {"kernel": rows, "kernel_profile": [profile.model_dump(include=_QUALITY)]}
    return {}


def kernel_names(collected: Path, mode: str) -> list[str]:
    """Return the kernels that a session executed or selected, by files in `collected`; empty if unreadable."""
    if mode == "trace":
        return list(_count_selected([collected / name for name in _LOGS if (collected / name).is_file()]))
    try:
        if mode == "counts":
            return [each.name for each in read_json(KernelCounts, (collected / COUNTS).read_bytes()).called]
        profile = read_json(_Profile, (collected / PROFILE).read_bytes())
    except (FileNotFoundError, ValidationError):
        return []
    return [entry.name for entry in profile.kernels if entry.name]


def read_counts(path: Path, executions: int) -> KernelCounts:
    """Return kernel_counts.json; raises BundleError if it is bad or counts another number of executions."""
    counts = _read_file(KernelCounts, path, "a file of counted kernels")
    if counts.executions != executions:
        raise BundleError(
            f"{path}: counts {counts.executions} executions instead of {executions}; measure the session again"
        )
    return counts


def _read_file(schema: type[_Schema], path: Path, what: str) -> _Schema:
    """Return the content of a JSON file by its schema; raises BundleError, which calls it `what`."""
    try:
        return read_json(schema, path.read_bytes())
    except ValidationError as error:
        cause = f"not {what} ({first_mistake(error)})"
        raise BundleError(f"{path}: {cause}; measure the session again") from None


def _count_selected(logs: list[Path]) -> Counter[str]:
    """Return how often each kernel was selected according to all logs together."""
    return sum(map(selected_kernels, logs), Counter())


def _kernel_row(evidence: str, name: str | None, weight: int, library: str | None = None) -> dict[str, Any]:
    return {"evidence": evidence, "library": library, "weight": weight, **_named(name)}


def _named(name: str | None) -> dict[str, Any]:
    """Return the name of a kernel and its parts, None without a name."""
    kernel = parse_kernel(name) if name else None
    return {
        "name": name,
        "operation": kernel.operation if kernel else None,
        "data_type": ", ".join(kernel.data_types) if kernel else None,
        "isa": kernel.isa if kernel else None,
        "isa_family": kernel.isa_family if kernel else None,
    }
