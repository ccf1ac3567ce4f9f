"""Read the profiling kit's configurations (`experiments`) and the manifests that it writes beside its results."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, BaseModel, BeforeValidator, FailFast, Field, ValidationError
from pydantic_core import PydanticCustomError

from devices.errors import InputError
from devices.untrusted import UntrustedFileError, excerpt, parse_json, read_untrusted, sanitize_line
from tasks.bundle.names import FileName
from tasks.bundle.values import MAX_INT, first_mistake, night_fault

_TOOL_FOLDERS = {".git", ".venv", "executorch"}
_MAX_EXPERIMENTS = 10_000
_MAX_BYTES = 2 << 20  # parsed JSON takes 40 times as much memory as its text; a configuration has some kilobytes
_MAX_CHARS = 1000
_MAX_STEM_BYTES = 100


def _validate_line(text: str) -> str:
    if len(text) > _MAX_CHARS or sanitize_line(text) != text:
        raise PydanticCustomError("line", "must be a line of at most {max} characters", {"max": _MAX_CHARS})
    return text


def _validate_pte(path: str) -> str:
    if not 0 < len(_stem(path).encode()) <= _MAX_STEM_BYTES:
        text = "must be the path of a .pte file whose name has 1 to {max} bytes"
        raise PydanticCustomError("pte", text, {"max": _MAX_STEM_BYTES})
    return path


def _stem(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).name.removesuffix(".pte")


def _parse_moment(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(value if isinstance(value, str) else "")
        return checked_moment(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        text = "must be a time such as 2026-01-20T10:00:00+00:00, from 2023-10-01 on and not in the future"
        raise PydanticCustomError("moment", text) from None


Line = Annotated[str, AfterValidator(_validate_line)]


class Experiment(BaseModel, frozen=True):
    """One entry of `experiments`, or of a manifest's results."""

    name: FileName
    runner_path: Line | None = None
    mode: Line = "timing"
    runs: Annotated[int, Field(strict=True, ge=1, le=MAX_INT)] = 100


class KitConfig(BaseModel, frozen=True):
    """A configuration or a manifest of the kit; the last three fields are a manifest's."""

    path: Path
    model: Annotated[Line, AfterValidator(_validate_pte)]
    experiments: Annotated[list[Experiment], FailFast(), Field(max_length=_MAX_EXPERIMENTS)]
    generated_at: Annotated[datetime, BeforeValidator(_parse_moment)] | None = None
    """In UTC."""
    executorch_sha: Line | None = None
    is_manifest: bool = False

    @property
    def model_stem(self) -> str:
        """The name of the .pte without its ending."""
        return _stem(self.model)


def checked_moment(moment: datetime) -> datetime:
    """Return the time in UTC; raises ValueError or OverflowError if no session can have such a night."""
    moment = moment.astimezone(UTC)
    if fault := night_fault(moment.date()):
        raise ValueError(f"{moment.date()} {fault}")
    return moment


def read_configs(folder: Path) -> tuple[list[KitConfig], list[str]]:
    """Return the configurations and manifests below `folder`, in the order of their paths, and why files were left out.

    JSON that is neither is ignored. Raises InputError if a configuration is damaged, or a folder cannot be read.
    """
    configs: list[KitConfig] = []
    left_out: list[str] = []
    for path in kit_files(folder):
        if path.suffix == ".json":
            try:
                config = _read_config(path, folder)
                configs += [config] if config else []
            except UntrustedFileError as error:
                left_out.append(str(error))
    return configs, left_out


def kit_files(folder: Path) -> Iterator[Path]:
    """Yield the files below `folder` by path, without tools that the kit checks out; InputError if unreadable."""

    def refuse(error: OSError) -> NoReturn:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror}); correct its permissions")

    for root, names, files in os.walk(folder, onerror=refuse):
        names[:] = sorted(name for name in names if name not in _TOOL_FOLDERS)
        yield from (Path(root, name) for name in sorted(files))


def check_name(folder: Path, path: Path) -> None:
    """Raise UntrustedFileError if the path relative to `folder` contains control characters."""
    name = str(path.relative_to(folder))
    if sanitize_line(name) != name:
        raise UntrustedFileError(f"{path}: its name has characters that cannot be shown; rename it")


def _read_config(path: Path, folder: Path) -> KitConfig | None:
    """Return the configuration in a JSON file, None for other JSON; InputError or UntrustedFileError if bad."""
    content = read_untrusted(path, _MAX_BYTES)
    try:
        raw = parse_json(content)
    except (ValueError, RecursionError) as error:
        if _looks_like_kit(content):
            cause = excerpt(str(error), 100)
            raise InputError(f"{path}: not valid JSON ({cause}); correct it or move it away") from None
        return None
    results = raw.get("results", raw.get("runs")) if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or "model" not in raw or not ("experiments" in raw or isinstance(results, list)):
        return None
    check_name(folder, path)
    try:
        if "experiments" in raw:
            return KitConfig(path=path, model=raw["model"], experiments=raw["experiments"])
        return _build_from_manifest(path, raw, results or [])
    except ValidationError as error:
        raise InputError(
            f"{path}: not a configuration of the kit ({first_mistake(error)}); correct it or move it away"
        ) from None


def _looks_like_kit(content: bytes) -> bool:
    """Return whether text that is not valid JSON has the keys of a configuration or a manifest."""
    return b'"model"' in content and any(key in content for key in (b'"experiments"', b'"results"', b'"runs"'))


def _build_from_manifest(path: Path, raw: dict[str, Any], results: list[Any]) -> KitConfig:
    """Return a manifest with its results as experiments; raises ValidationError."""
    executorch = raw.get("executorch")
    shas = executorch if isinstance(executorch, dict) else {}
    return KitConfig(
        path=path,
        model=raw["model"],
        experiments=[_flatten(each) for each in results[: _MAX_EXPERIMENTS + 1]],
        generated_at=raw.get("generated_at") or None,
        executorch_sha=shas.get("actual_sha") or shas.get("sha"),
        is_manifest=True,
    )


def _flatten(result: Any) -> Any:
    """Return a result as an entry of `experiments`: older manifests state its runs in its metrics."""
    if not isinstance(result, dict):
        return result
    metrics = result.get("metrics")
    return {**(metrics if isinstance(metrics, dict) else {}), **result, "name": result.get("experiment")}
