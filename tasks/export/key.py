"""The content key of an export, computed without importing torch or the model.

key = SHA-256 of everything that determines the files: the model's name and source, recipe, seed, versions, and the code
that lowers. Your own model or recipe may use other modules and data files: the export records them (exports/used/), and
their contents are part of the key from then on. So are the steps that an export left out (exports/left_out/).
"""

import functools
import hashlib
import importlib.metadata
import json
import platform
import re
import sys
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.bundle.delegates import user_partitioners
from tasks.bundle.runtime import parse_runtime
from tasks.export import zoo
from tasks.export.entry import ExportRequest, ModelEntry, sample_files
from tasks.export.exported import EXPORT_VERSION
from tasks.export.lowering.delegates import needed_modules, needed_packages
from tasks.export.process.environments import stated_environment
from tasks.export.recipes import parse_recipe
from tasks.export.user_code import check_function, find_source
from tasks.store.files import hash_file, write_complete

# The modules whose text decides the bytes of an export; a plan reads them, and imports none.
_MODULES = {
    "": (
        "convert",
        "factory",
        "from_transformers",
        "language_methods",
        "recipes",
        "references",
        "sources",
        "xnnpack_work",
    ),
    "lowering": (
        "buffers",
        "delegates",
        "delegation",
        "layers",
        "lower",
        "needed_memory",
        "passes",
        "rewrites",
        "shares",
        "trial",
        "work",
        "write",
    ),
    "outputs": ("difference", "fault_search", "randomness", "samples"),
    "tracing": ("inputs", "trace"),
}
_CODE = [Path(__file__).parent / folder / f"{name}.py" for folder, names in _MODULES.items() for name in names]
_LOWERING = Path(__file__).with_name("lowering")
_TAPS = _LOWERING / "layer_probes.py"
RECIPE_ARGUMENTS = ("module", "inputs")
_DISTRIBUTIONS = ("torch", "torchao", "executorch", "transformers")


def versions(delegate: str | None = None) -> dict[str, str | None]:
    """Return the versions of python (minor), torch, executorch, transformers, and of what the stated delegates need.

    None where one is not installed.
    """
    names = ("torch", "executorch", "transformers", *needed_packages(delegate))
    return {"python": _python_version()} | {name: _version(name) for name in names}


def export_key(request: ExportRequest) -> str:
    """Return an export's key, 32 hex digits; an export that records files changes it. FarmError for a bad request."""
    key = _input_key(request)
    left_out = _left_out_path(request, key)
    return _digest([key, json.loads(left_out.read_text())]) if left_out.is_file() else key


def record_left_out(request: ExportRequest, left_out: list[list[str]]) -> None:
    """Record the steps that this export does without, as [step, method], for `export_key`; remove an empty record."""
    path = _left_out_path(request, _input_key(request))
    if left_out:
        write_complete(path, json.dumps(left_out).encode())
    else:
        path.unlink(missing_ok=True)


def _left_out_path(request: ExportRequest, key: str) -> Path:
    return request.exports_dir / "left_out" / f"{key}.json"


def _input_key(request: ExportRequest) -> str:
    """Return the key without left-out steps: the request, its sources, versions, and what an earlier export used."""
    entry, user_recipe = request.entry, parse_recipe(request.precision).user_function
    environment = stated_environment(entry.name, request.exports_dir)
    installed_in = [str(environment.site_packages)] if environment else None
    base = _digest(
        {
            "export_version": EXPORT_VERSION,
            "code": [hash_file(file) for file in _CODE],
            "model": [entry.name, _key_fields(entry)],
            "source": [hash_file(file) for file in _source_files(entry)],
            "precision": [request.precision, hash_file(find_source(user_recipe)) if user_recipe else None],
            "seed": request.seed,
            "python": _python_version(),
            "distributions": {name: _version(name, installed_in) for name in _DISTRIBUTIONS},
            **_delegate_parts(parse_runtime(entry.name).delegate, installed_in),
            **({"taps": hash_file(_TAPS)} if request.taps else {}),
            **({"samples": _sample_hashes(entry), "keep": entry.keep_samples} if entry.samples else {}),
        }
    )
    used = _read_used(request)
    if used is None:
        return base
    return _digest(
        [base, _hashes(used["files"]), {name: _version(name, installed_in) for name in used["distributions"]}]
    )


def _delegate_parts(word: str | None, installed_in: list[str] | None) -> dict[str, Any]:
    """Return what the key of a case with stated delegates has beside that of others; nothing for XNNPACK."""
    if word is None:
        return {}
    modules = [hash_file(_LOWERING / f"{name}.py") for name in needed_modules(word)]
    functions = [hash_file(find_source(name)) for name in user_partitioners(word)]
    packages = {name: _version(name, installed_in) for name in needed_packages(word)}
    return {"delegates": [modules, functions, packages]}


def files_to_read(request: ExportRequest) -> list[Path]:
    """Return the files whose contents decide an export's key, besides the farm's code; raises as `export_key` does."""
    entry = request.entry
    used = (None if entry.pte else _read_used(request)) or {"files": []}  # `as_is` is not a recipe
    prebuilt_files = [path for path in (entry.pte, *entry.data, *entry.inputs, *entry.expected, entry.etrecord) if path]
    return [*_source_files(entry), *map(Path, used["files"]), *prebuilt_files]


def source_sha256(request: ExportRequest) -> str:
    """Return one hash of the contents of the files that a model is built from; raises FarmError as export_key does.

    For a model of the zoo, that is the file of the zoo that defines it. Installed packages do not count: they have
    versions.
    """
    used = _read_used(request) or {"files": []}
    contents = [*map(hash_file, _source_files(request.entry)), *sorted(filter(None, _hashes(used["files"]).values()))]
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()


def record_used(request: ExportRequest, files: set[Path], distributions: set[str]) -> None:
    """Record the files and installed distributions that your own model or recipe used, for later keys."""
    used = {"files": sorted(map(str, files)), "distributions": sorted(distributions)}
    write_complete(_used_path(request), json.dumps(used, indent=1).encode())


def _read_used(request: ExportRequest) -> dict[str, Any] | None:
    """Return what an earlier export recorded, {files, distributions}; None without a record."""
    path = _used_path(request)
    return json.loads(path.read_text()) if path.is_file() else None


def _used_path(request: ExportRequest) -> Path:
    """Return the path of the record, named by the model, your own recipe and the working directory.

    The working directory counts because your modules are imported from it. A built-in recipe uses none of your files.
    """
    user_recipe = request.precision if parse_recipe(request.precision).user_function else None
    digest = _digest([request.entry.name, _key_fields(request.entry), user_recipe, str(Path.cwd())])
    return request.exports_dir / "used" / f"{digest}.json"


def _is_user_function(name: str) -> bool:
    """Return whether a name is of the form `package.module:function` or `file.py:function`, not a model of the zoo."""
    return ":" in name


def _hashes(names: list[str]) -> dict[str, str | None]:
    """Return the hash of each file by its name; None for a file that is missing."""
    return {name: hash_file(Path(name)) if Path(name).is_file() else None for name in names}


def _key_fields(entry: ModelEntry) -> list[object]:
    """Return the fields of an entry that count for its key: not the paths of files, whose contents count."""
    factory = entry.factory.rpartition("/")[2] if entry.factory else None
    transformers = None if entry.weights else entry.transformers
    generate = entry.generate.model_dump(mode="json", exclude={"prompt", "text"}) if entry.generate else None
    return [factory, transformers, entry.config, *([generate] if generate else [])]


def _source_files(entry: ModelEntry) -> list[Path]:
    """Return the files that define a model, found without importing it, and the texts that it is measured with."""
    if entry.weights:
        files = sorted(path for path in entry.weights.iterdir() if path.is_file())
    elif entry.factory:
        files = [find_source(entry.factory) if _is_user_function(entry.factory) else zoo.source_file(entry.factory)]
    else:
        files = []
    if entry.generate:
        files += [path for path in (entry.generate.prompt, entry.generate.text) if path]
    return files


def _sample_hashes(entry: ModelEntry) -> list[list[str]]:
    """Return name and hash of each sample: they calibrate int8_static, and their figures belong to the export."""
    try:
        files = sample_files(entry.samples) if entry.samples else []
    except ValueError as error:
        raise FarmError(str(error)) from None
    return [[path.name, _hash_unchanged(path, path.stat().st_mtime_ns, path.stat().st_size)] for path in files]


@functools.cache
def _hash_unchanged(path: Path, modified_ns: int, size_bytes: int) -> str:
    """Return the hash of a file, which is read again only if its time or size changes: there may be thousands."""
    return hash_file(path)


def check_user_functions(request: ExportRequest) -> None:
    """Raise FarmError if the file of your own factory, recipe or partitioner does not define it as required."""
    check_user_function(request.entry.factory)
    check_user_function(parse_recipe(request.precision).user_function, RECIPE_ARGUMENTS)
    for partitioner in user_partitioners(parse_runtime(request.entry.name).delegate):
        check_user_function(partitioner)


def check_user_function(function: str | None, arguments: tuple[str, ...] = ()) -> None:
    """Raise FarmError if a function is yours, and its file does not define it with these arguments."""
    if function is not None and _is_user_function(function):
        try:
            check_function(find_source(function), function.rpartition(":")[2], arguments)
        except ValueError as error:
            raise FarmError(str(error)) from None


def _python_version() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _version(distribution: str, installed_in: list[str] | None = None) -> str | None:
    """Return the version of a distribution in some folders, by default for this Python; None if it is not there."""
    folders = sys.path if installed_in is None else installed_in
    installed = next(iter(importlib.metadata.distributions(name=distribution, path=folders)), None)
    if installed is None:
        return None
    # `installed.version` parses all of the text as an e-mail, which takes 3 ms.
    line = re.search(r"^Version: (\S+)$", installed.read_text("METADATA") or "", re.MULTILINE)
    return line[1] if line else installed.version


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
