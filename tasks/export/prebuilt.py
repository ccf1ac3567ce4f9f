"""Prebuilt .pte files of the user: copied into an export's folder, with their inputs and expected outputs."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from devices.errors import InputError
from tasks.bundle.cell import AS_IS, XNNPACK
from tasks.bundle.delegates import needed_backends, uses_xnnpack, word_of_backends
from tasks.export.bundled import FirstCase, Unbundled, unbundle
from tasks.export.entry import ModelEntry
from tasks.export.exported import (
    EXPORT_VERSION,
    Export,
    Tensors,
    damaged_files,
    describe_tensor,
    first_line,
    read_complete,
    read_exports,
)
from tasks.export.program import ProgramMethod, ProgramTensor, read_program
from tasks.export.sources import write_prebuilt_sources
from tasks.store.files import hash_file, publish_folder

_ETRECORD = "ETRECORD_V0"  # an entry of every ETRecord, which is a zip file


def open_pte(pte: Path, exports_dir: Path) -> Export:
    """Return the first case of a .pte file, of its export's folder or a copy; InputError or ExportError.

    Only such a folder states modules and expected outputs. Nothing in it is believed: it may come from a stranger.
    """
    if not pte.is_file():
        raise InputError(f"{pte}: no such file; name a .pte file")
    if (pte.parent / "export.json").is_file():
        exports = read_exports(pte.parent)
        if exports[0].pte.name == pte.name and exports[0].pte_sha256 == hash_file(pte):
            _check_folder(exports)
            return exports[0]
    entry = ModelEntry.model_validate({"name": _valid_name(pte.stem), "pte": pte})
    return import_prebuilt(entry, exports_dir, seed=0)[0]


def _check_folder(exports: tuple[Export, ...]) -> None:
    """Raise InputError if the folder of an export leads to files elsewhere, or has other content than it states."""
    folder = exports[0].folder
    try:
        damaged = [path.name for path in folder.iterdir() if path.is_symlink()] or damaged_files(exports)
        key = exports[0].export_key  # names a folder, also when a later command looks for the export
        damaged += [] if key == Path(key).name and not key.startswith(".") else ["export_key"]
    except (OSError, TypeError, KeyError) as error:
        damaged = [first_line(error)]
    if damaged:
        raise InputError(f"{folder}: {', '.join(damaged)}: not what export.json states; copy the export's folder again")


def _valid_name(text: str) -> str:
    """Return a text with `_` for each character that a model's name cannot have; `-` and `+` cannot begin it."""
    name = "".join(char if (char.isalnum() and char.isascii()) or char in "_.-+" else "_" for char in text)
    return f"_{name[1:]}" if name[:1] in ("-", "+") else name


def import_prebuilt(entry: ModelEntry, exports_dir: Path, seed: int) -> tuple[Export, ...]:
    """Return one case for each method of a .pte file, copied into `exports_dir` with all its files unless it is there.

    Dynamic shapes are measured at those of the entry, one case each, or at their largest. Without `inputs` in the
    entry, inputs get seeded values; without `expected`, outputs are not compared. An ETRecord that cannot be read is
    logged. Raises InputError.
    """
    key, described, content = describe_prebuilt(entry, unbundled := unbundle(entry, exports_dir), seed)
    pte = unbundled[0]
    if exports := read_complete(exports_dir / key):
        return exports
    with publish_folder(exports_dir / key) as aside:
        shutil.copyfile(pte, aside / "model.pte")
        for path, copied in zip(entry.data, described.get("data", []), strict=True):
            shutil.copyfile(path, aside / copied["file"])
        if entry.etrecord:
            shutil.copyfile(entry.etrecord, aside / "model.etrecord")
            write_prebuilt_sources(pte, entry.etrecord, aside)
        for name, data in content.items():
            (aside / name).write_bytes(data)
        (aside / "export.json").write_text(json.dumps({"export_key": key} | described, indent=1), encoding="utf-8")
    return read_exports(exports_dir / key)


def describe_prebuilt(
    entry: ModelEntry, unbundled: Unbundled, seed: int
) -> tuple[str, dict[str, Any], dict[str, bytes]]:
    """Return a .pte file's key, its export.json without the key, and its tensor files by name; raises InputError.

    `unbundled` are the program and its test cases, as `unbundle` returns them.
    """
    pte, tests = unbundled
    methods = read_program(pte)
    if unknown := sorted(tests.keys() - {method.name for method in methods}):
        raise InputError(f"{entry.pte}: has test cases of `{unknown[0]}`, which its program lacks; write it again")
    _check_delegate(entry, methods)
    if entry.etrecord:
        _check_etrecord(entry.etrecord)
    if len(methods) > 1 and entry.inputs:
        raise InputError(f"{entry.pte}: has {len(methods)} methods, so `inputs` cannot belong to all; leave them out")
    content: dict[str, bytes] = {}
    described: dict[str, Any] = {
        "export_version": EXPORT_VERSION,
        "model": entry.name,
        "precision": AS_IS,
        "seed": seed,
        "pte_sha256": hash_file(pte),
        "pte_bytes": pte.stat().st_size,
        "versions": {},
        "methods": {method.name: {"delegated": [], "portable": []} for method in methods},
        "cases": [
            _describe_case(
                entry, method, (method.name if len(methods) > 1 else "", shape), tests.get(method.name), seed, content
            )
            for method in methods
            for shape in entry.shapes or (None,)
        ],
        "export_s": 0.0,
    }
    if entry.data:
        described["data"] = [
            {"file": f"data-{number}.ptd", "sha256": hash_file(path)} for number, path in enumerate(entry.data)
        ]
    etrecord = hash_file(entry.etrecord) if entry.etrecord else None
    digest = hashlib.sha256(json.dumps([described, etrecord], sort_keys=True).encode()).hexdigest()
    return f"prebuilt-{_valid_name(entry.name)}-{digest[:16]}", described, content


def _check_delegate(entry: ModelEntry, methods: Iterable[ProgramMethod]) -> None:
    """Raise InputError if the delegate that an entry states is not what its program calls."""
    if entry.delegate is None:
        return
    called = {backend for method in methods for _, _, backend in method.delegate_calls}
    needed = needed_backends(entry.delegate)
    others = called - {XNNPACK}
    is_stated = bool(others) if needed is None else others <= needed and bool(others) == bool(needed)
    if is_stated and (XNNPACK not in called or uses_xnnpack(entry.delegate)):
        return
    word = word_of_backends(called)
    remedy = f"write `delegate: {word}`" if word else "name the partitioner that made it, as package.module:function"
    calls = ", ".join(sorted(called)) or "no backend"
    raise InputError(f"{entry.pte}: its program calls {calls}, not what `delegate: {entry.delegate}` states; {remedy}")


def _check_etrecord(etrecord: Path) -> None:
    """Raise InputError if a file is not an ETRecord."""
    try:
        with zipfile.ZipFile(etrecord) as content:
            is_etrecord = _ETRECORD in content.namelist()
    except zipfile.BadZipFile:
        is_etrecord = False
    if not is_etrecord:
        raise InputError(f"{etrecord}: not an ETRecord; name the file of the model's export, or leave `etrecord` out")


def _describe_case(
    entry: ModelEntry,
    method: ProgramMethod,
    names: tuple[str, str | None],
    test: FirstCase | None,
    seed: int,
    content: dict[str, bytes],
) -> dict[str, Any]:
    """Return the case of a method as in export.json; add the bytes of its files to `content`.

    `names` are those of the method, empty if it is the only one, and of the shape in the entry, if it states any.
    """
    shape, name = names[1], "-".join(filter(None, names))
    tensors = []
    for number, each in enumerate(method.inputs):
        if each is None:
            raise InputError(f"{entry.pte}: input {number} of {method.name} is neither a tensor nor a number")
        if isinstance(each, ProgramTensor):  # a number is a constant of the program
            tensors.append(each)
    for number, output in enumerate(method.outputs):
        if isinstance(output, ProgramTensor) and not output.has_memory and not any(output is each for each in tensors):
            cause = f"output {number} of {method.name} has no memory, so that the caller must bring it"
            raise InputError(f"{entry.pte}: {cause}; export it without `alloc_graph_output=False`")
    is_dynamic = any(each.is_dynamic for each in tensors)
    if test is not None:
        tensors = _resize(f"{entry.pte}: the test case of {method.name}", method, tensors, test.sizes)
        entry = entry.model_copy(update={"inputs": test.inputs, "expected": test.expected})
    if shape is not None:
        tensors = _resize(f"{entry.pte}: `shapes`: {shape}", method, tensors, entry.shapes[shape])
    prefix = f"{name}-" if name else ""
    inputs = _read_or_generate_inputs(entry, tensors, seed)
    return {
        "name": name,
        "method": method.name,
        "inputs": [
            _add_tensor(f"{prefix}input-{number}.bin", data, each.dtype, each.shape, content)
            for number, (each, data) in enumerate(zip(tensors, inputs, strict=True))
        ],
        "outputs": _read_expected(entry, method, prefix, content),
        "is_dynamic": is_dynamic,
    }


def _resize(
    where: str, method: ProgramMethod, tensors: list[ProgramTensor], sizes: list[list[int]]
) -> list[ProgramTensor]:
    """Return the inputs with the sizes that are stated at `where`; raises InputError if the program refuses one."""
    if len(sizes) != len(tensors):
        raise InputError(f"{where} lists {len(sizes)} inputs; {method.name} has {len(tensors)}")
    for number, (each, size) in enumerate(zip(tensors, sizes, strict=True)):
        largest = list(each.shape)
        if each.is_dynamic:
            fits = len(size) == len(largest) and all(0 < one <= limit for one, limit in zip(size, largest, strict=True))
        else:
            fits = size == largest
        if not fits:
            limit = "at most " if each.is_dynamic else ""
            raise InputError(f"{where}: input {number} has the sizes {size}; the program accepts {limit}{largest}")
    return [replace(each, shape=tuple(size)) for each, size in zip(tensors, sizes, strict=True)]


def _read_or_generate_inputs(entry: ModelEntry, tensors: list[ProgramTensor], seed: int) -> list[bytes]:
    """Return the bytes of each input, from files or seeded; InputError if number or size is not the program's."""
    if not entry.inputs:
        generator = np.random.default_rng(seed)
        return [each.random_bytes(generator) for each in tensors]
    if len(entry.inputs) != len(tensors):
        raise InputError(f"{entry.pte}: `inputs` lists {len(entry.inputs)} files; the method has {len(tensors)} inputs")
    contents = []
    for path, each in zip(entry.inputs, tensors, strict=True):
        data = path.read_bytes()
        if len(data) != each.size_bytes:
            needed = f"{each.size_bytes} for {each.dtype} {list(each.shape)}"
            raise InputError(f"{path}: has {len(data)} bytes; the input needs {needed}")
        contents.append(data)
    return contents


def _read_expected(entry: ModelEntry, method: ProgramMethod, prefix: str, content: dict[str, bytes]) -> Tensors:
    """Return the expected outputs, empty without any, and add their bytes to `content`.

    One below a dynamic output's largest size gets a flat shape: its sizes are unknown. Raises InputError if a file does
    not fit its output.
    """
    if entry.expected and len(entry.expected) != len(method.outputs):
        raise InputError(
            f"{entry.pte}: `expected` lists {len(entry.expected)} files; {method.name} returns {len(method.outputs)}"
        )
    tensors = []
    for number, (path, output) in enumerate(zip(entry.expected, method.outputs, strict=False)):
        data = path.read_bytes()
        if not isinstance(output, ProgramTensor):
            raise InputError(f"{path}: output {number} of {method.name} is not a tensor; leave `expected` out")
        has_all = len(data) == output.size_bytes
        is_part = output.is_dynamic and len(data) <= output.size_bytes and len(data) % output.element_bytes == 0
        if not has_all and not is_part:
            limit = "at most " if output.is_dynamic else ""
            has = f"{limit}{output.size_bytes} for {output.dtype} {list(output.shape)}"
            remedy = "write all elements and no header"
            raise InputError(f"{path}: has {len(data)} bytes; output {number} of {method.name} has {has}; {remedy}")
        shape = output.shape if has_all else (len(data) // output.element_bytes,)
        tensors.append(_add_tensor(f"{prefix}output-{number}.bin", data, output.dtype, shape, content))
    return tensors


def _add_tensor(
    name: str, data: bytes, dtype: str, shape: tuple[int, ...], content: dict[str, bytes]
) -> dict[str, Any]:
    content[name] = data
    return describe_tensor(name, data, dtype, shape)
