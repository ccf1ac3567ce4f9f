"""The content key of an export, computed without importing torch or the model.

key = SHA-256 of everything that determines the files: the model's name and source, precision, seed, versions, and the
code that lowers. Your own model (`package.module:factory`) may use other modules and data files: the export records
them (exports/used/), and their contents are part of the key from then on.
"""

import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from devices.errors import FarmError
from devices.suggest import did_you_mean
from tasks.export import lower, precision, zoo
from tasks.files import sha256_of, write_complete

EXPORT_VERSION = 1
_DISTRIBUTIONS = ("torch", "torchao", "executorch", "transformers")


def versions() -> dict[str, str | None]:
    """Return the versions of python (minor), torch, executorch and transformers; None where one is not installed."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python} | {name: _version(name) for name in ("torch", "executorch", "transformers")}


def export_key(model: str, precision_name: str, seed: int, exports_dir: Path) -> str:
    """Return the key of this export, 32 hexadecimal digits; raises FarmError for an unknown model."""
    base = _digest(
        {
            "export_version": EXPORT_VERSION,
            "code": [sha256_of(Path(module.__file__)) for module in (lower, precision) if module.__file__],
            "model": model,
            "source": sha256_of(_source_of(model)),
            "precision": precision_name,
            "seed": seed,
            "python": versions()["python"],
            "distributions": {name: _version(name) for name in _DISTRIBUTIONS},
        }
    )
    used = _used_path(model, exports_dir)
    if not used.is_file():
        return base
    noted = json.loads(used.read_text())
    return _digest([base, _hashes(noted["files"]), {name: _version(name) for name in noted["distributions"]}])


def source_sha256(model: str, exports_dir: Path) -> str:
    """Return one hash of the files that a model is made from, wherever they are; raises FarmError as export_key does.

    For a model of the zoo that is the zoo's file. Installed packages are not part of it: they have versions.
    """
    used = _used_path(model, exports_dir)
    files = json.loads(used.read_text())["files"] if used.is_file() else []
    contents = [sha256_of(_source_of(model)), *sorted(filter(None, _hashes(files).values()))]
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()


def note_used(model: str, exports_dir: Path, files: set[Path], distributions: set[str]) -> None:
    """Record the files and installed distributions that the user's own model used, for later keys."""
    noted = {"files": sorted(map(str, files)), "distributions": sorted(distributions)}
    write_complete(_used_path(model, exports_dir), json.dumps(noted, indent=1).encode())


def is_own(model: str) -> bool:
    """Return whether a model's name has the form `package.module:factory` and is not a short name of the zoo."""
    return ":" in model


def _hashes(names: list[str]) -> dict[str, str | None]:
    return {name: sha256_of(Path(name)) if Path(name).is_file() else None for name in names}


def _used_path(model: str, exports_dir: Path) -> Path:
    return exports_dir / "used" / f"{_digest([model, str(Path.cwd())])}.json"


def _source_of(model: str) -> Path:
    """Return the file that defines the model's factory, without importing it or its parent packages."""
    if not is_own(model):
        if model not in zoo.MODELS:
            known = ", ".join(zoo.MODELS)
            hint = did_you_mean(model, zoo.MODELS)
            raise FarmError(f"unknown model; use one of {known}, or package.module:factory{hint}")
        return Path(zoo.__file__)
    module, _, factory = model.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), factory)):
        raise FarmError("your own model must have the form package.module:factory")
    spec = _find(module)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise FarmError(f"module {module} not found in {Path.cwd()} or the installed packages")
    return Path(spec.origin)


def _find(module: str) -> ModuleSpec | None:
    importlib.invalidate_caches()  # the module may have been written just now
    first, *rest = module.split(".")
    spec = PathFinder.find_spec(first, [os.fspath(Path.cwd())]) or _find_installed(first)
    name = first
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec


def _find_installed(name: str) -> ModuleSpec | None:
    if name in sys.modules:
        return sys.modules[name].__spec__
    return importlib.util.find_spec(name)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
