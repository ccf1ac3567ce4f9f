"""The content key of an export, computed without importing torch or the model.

key = SHA-256 of everything that determines the files: the model's name and source, recipe, seed, versions, and the code
that lowers. Your own model or recipe may use other modules and data files: the export records them (exports/used/), and
their contents are part of the key from then on. So are the steps that an export left out (exports/left_out/).
"""

import hashlib
import importlib.metadata
import json
import platform
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.export import convert, factory, from_transformers, language_methods, recipes, references, sources, zoo
from tasks.export.entry import ModelEntry
from tasks.export.exported import EXPORT_VERSION
from tasks.export.lowering import buffers, delegation, lower, passes, rewrites, trial
from tasks.export.recipes import parse_recipe
from tasks.export.user_code import check_function, source_of
from tasks.store.files import sha256_of, write_complete

# The modules whose text decides the bytes of an export.
_LOWERING = (buffers, delegation, lower, passes, rewrites, trial)
_CODE = (convert, factory, from_transformers, language_methods, *_LOWERING, recipes, references, sources)
_TAPS = Path(__file__).with_name("layer_probes.py")
_DISTRIBUTIONS = ("torch", "torchao", "executorch", "transformers")


def versions() -> dict[str, str | None]:
    """Return the versions of python (minor), torch, executorch and transformers; None where one is not installed."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python} | {name: _version(name) for name in ("torch", "executorch", "transformers")}


def export_key(entry: ModelEntry, recipe: str, seed: int, exports_dir: Path, *, taps: bool = False) -> str:
    """Return the key of this export, 32 hexadecimal digits; raises FarmError for an unknown model or recipe."""
    key = _input_key(entry, recipe, seed, exports_dir, taps)
    left_out = exports_dir / "left_out" / f"{key}.json"
    return _digest([key, json.loads(left_out.read_text())]) if left_out.is_file() else key


def note_left_out(
    entry: ModelEntry, recipe: str, seed: int, exports_dir: Path, left_out: list[list[str]], *, taps: bool
) -> None:
    """Record the steps, [step, method], that this export does without, for its key; without any, remove the record."""
    path = exports_dir / "left_out" / f"{_input_key(entry, recipe, seed, exports_dir, taps)}.json"
    if left_out:
        write_complete(path, json.dumps(left_out).encode())
    else:
        path.unlink(missing_ok=True)


def _input_key(entry: ModelEntry, recipe: str, seed: int, exports_dir: Path, taps: bool) -> str:
    own_recipe = parse_recipe(recipe).own
    base = _digest(
        {
            "export_version": EXPORT_VERSION,
            "code": [sha256_of(Path(module.__file__)) for module in _CODE if module.__file__],
            "model": [entry.name, _written(entry)],
            "source": [sha256_of(file) for file in _source_files(entry)],
            "precision": [recipe, sha256_of(source_of(own_recipe)) if own_recipe else None],
            "seed": seed,
            "python": versions()["python"],
            "distributions": {name: _version(name) for name in _DISTRIBUTIONS},
            **({"taps": sha256_of(_TAPS)} if taps else {}),
        }
    )
    used = _used(entry, recipe, exports_dir)
    if used is None:
        return base
    return _digest([base, _hashes(used["files"]), {name: _version(name) for name in used["distributions"]}])


def files_to_read(entry: ModelEntry, recipe: str, exports_dir: Path) -> list[Path]:
    """Return the files whose contents decide an export's key, besides the farm's code; raises as export_key does."""
    used = _used(entry, recipe, exports_dir) or {"files": []}
    prebuilt_files = [path for path in (entry.pte, *entry.data, *entry.inputs, *entry.expected, entry.etrecord) if path]
    return [*_source_files(entry), *map(Path, used["files"]), *prebuilt_files]


def source_sha256(entry: ModelEntry, recipe: str, exports_dir: Path) -> str:
    """Return one hash of the contents of the files that a model is built from; raises FarmError as export_key does.

    For a model of the zoo, that is the file of the zoo that defines it. Installed packages do not count: they have
    versions.
    """
    used = _used(entry, recipe, exports_dir) or {"files": []}
    contents = [*map(sha256_of, _source_files(entry)), *sorted(filter(None, _hashes(used["files"]).values()))]
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()


def note_used(entry: ModelEntry, recipe: str, exports_dir: Path, files: set[Path], distributions: set[str]) -> None:
    """Record the files and installed distributions that your own model or recipe used, for later keys."""
    used = {"files": sorted(map(str, files)), "distributions": sorted(distributions)}
    write_complete(_used_path(entry, recipe, exports_dir), json.dumps(used, indent=1).encode())


def _used(entry: ModelEntry, recipe: str, exports_dir: Path) -> dict[str, Any] | None:
    path = _used_path(entry, recipe, exports_dir)
    return json.loads(path.read_text()) if path.is_file() else None


def _used_path(entry: ModelEntry, recipe: str, exports_dir: Path) -> Path:
    own_recipe = recipe if parse_recipe(recipe).own else None
    return exports_dir / "used" / f"{_digest([entry.name, _written(entry), own_recipe, str(Path.cwd())])}.json"


def is_own(name: str | None) -> bool:
    """Return whether a factory has the form `package.module:factory` or `file.py:factory`, not a name of the zoo."""
    return name is not None and ":" in name


def _hashes(names: list[str]) -> dict[str, str | None]:
    return {name: sha256_of(Path(name)) if Path(name).is_file() else None for name in names}


def _written(entry: ModelEntry) -> list[object]:
    """Return the part of an entry that counts for its key: not the places of files, whose contents count."""
    factory = entry.factory.rpartition("/")[2] if entry.factory else None
    transformers = None if entry.weights else entry.transformers
    generate = entry.generate.model_dump(mode="json", exclude={"prompt", "text"}) if entry.generate else None
    return [factory, transformers, entry.config, *([generate] if generate else [])]


def _source_files(entry: ModelEntry) -> list[Path]:
    """Return the files that define a model, without importing it or its parent packages."""
    if entry.weights:
        files = sorted(path for path in entry.weights.iterdir() if path.is_file())
    elif entry.factory:
        files = [source_of(entry.factory) if is_own(entry.factory) else zoo.file_of(entry.factory)]
    else:
        files = []
    if entry.generate:
        files += [path for path in (entry.generate.prompt, entry.generate.text) if path]
    return files


def check_own(entry: ModelEntry, recipe: str) -> None:
    """Raise FarmError if your own factory or recipe is not in its file, or takes other arguments."""
    for own, arguments in ((entry.factory, ()), (parse_recipe(recipe).own, ("module", "inputs"))):
        if own is not None and is_own(own):
            try:
                check_function(source_of(own), own.rpartition(":")[2], arguments)
            except ValueError as error:
                raise FarmError(str(error)) from None


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
