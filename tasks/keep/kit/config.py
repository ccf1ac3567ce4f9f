"""Read the profiling kit's configurations (`experiments`) and the manifests that it writes beside its results."""

import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ValidationError

from devices.errors import InputError

_OTHERS = {".git", ".venv", "executorch"}


class Experiment(BaseModel, frozen=True):
    """One entry of `experiments`, or of a manifest's results."""

    name: str
    runner_path: str | None = None
    mode: str = "timing"
    runs: int = 100


class KitConfig(BaseModel, frozen=True):
    """A configuration or a manifest of the kit; the last three fields are a manifest's."""

    path: Path
    model: str
    experiments: list[Experiment]
    generated_at: str | None = None
    executorch_sha: str | None = None
    is_manifest: bool = False

    @property
    def model_stem(self) -> str:
        """The name of the .pte without its ending."""
        return PurePosixPath(self.model.replace("\\", "/")).name.removesuffix(".pte")


def read_configs(folder: Path) -> list[KitConfig]:
    """Return the configurations and manifests below `folder`, in the order of their paths; other JSON is ignored.

    Raises InputError if one of them cannot be read.
    """
    return [config for path in kit_files(folder) if path.suffix == ".json" for config in _read(path)]


def kit_files(folder: Path) -> Iterator[Path]:
    """Yield the files below `folder` in the order of their paths, without those of tools that the kit checks out."""
    for root, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name not in _OTHERS)
        yield from (Path(root, name) for name in sorted(files))


def _read(path: Path) -> Iterator[KitConfig]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    results = raw.get("results", raw.get("runs")) if isinstance(raw, dict) else None
    try:
        if isinstance(raw, dict) and "model" in raw and "experiments" in raw:
            yield KitConfig(path=path, model=raw["model"], experiments=raw["experiments"])
        elif isinstance(raw, dict) and "model" in raw and isinstance(results, list):
            yield _manifest(path, raw, results)
    except (ValidationError, AttributeError, TypeError) as error:
        cause = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise InputError(f"{path}: not a configuration of the kit ({cause}); correct it or move it away") from None


def _manifest(path: Path, raw: dict[str, Any], results: list[dict[str, Any]]) -> KitConfig:
    executorch = raw.get("executorch") or {}
    # Newer manifests state the runs of a result, older ones in its metrics.
    flat = [{**(each.get("metrics") or {}), **each, "name": each.get("experiment")} for each in results]
    return KitConfig(
        path=path,
        model=raw["model"],
        experiments=[Experiment.model_validate(each) for each in flat],
        generated_at=raw.get("generated_at"),
        executorch_sha=executorch.get("actual_sha") or executorch.get("sha"),
        is_manifest=True,
    )
