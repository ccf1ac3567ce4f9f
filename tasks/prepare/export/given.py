"""A .pte file that the user brings: kept like an export, with the inputs and outputs that come with it."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from devices.errors import InputError
from tasks.bundle.cell import AS_IS
from tasks.prepare.export.entry import ModelEntry
from tasks.prepare.export.exported import EXPORT_VERSION, Export, Tensors, read_complete, read_exports
from tasks.prepare.export.program import ProgramMethod, ProgramTensor, read_program
from tasks.prepare.export.sources import sources_of_given
from tasks.store.files import publish_folder, sha256_of


def exported_or_given(pte: Path, exports_dir: Path) -> Export:
    """Return the export of a .pte file: if it lies in the folder of an export, that one, with its inputs and outputs.

    Of several cases the first is returned. Raises InputError.
    """
    if (pte.parent / "export.json").is_file() and pte.is_file():
        export = read_exports(pte.parent)[0]
        if export.pte.name == pte.name and export.pte_sha256 == sha256_of(pte):
            return export
    if not pte.is_file():
        raise InputError(f"{pte}: no such file; name a .pte file")
    entry = ModelEntry.model_validate({"name": _plain(pte.stem), "pte": pte})
    return given_export(entry, exports_dir, seed=0)[0]


def _plain(stem: str) -> str:
    return "".join(letter if (letter.isalnum() and letter.isascii()) or letter in "_.-+" else "_" for letter in stem)


def given_export(entry: ModelEntry, exports_dir: Path, seed: int) -> tuple[Export, ...]:
    """Return the cases of a .pte file, which is copied into `exports_dir`: one for each method, or for each shape.

    Inputs that the entry does not name get seeded values; without `expected`, the outputs are not compared.
    Raises InputError.
    """
    pte = entry.pte
    assert pte is not None
    methods = _chosen(entry, read_program(pte))
    cases = [case for method in methods for case in _cases(entry, method, len(methods) > 1, seed)]
    sha256 = sha256_of(pte)
    described: dict[str, Any] = {
        "export_version": EXPORT_VERSION,
        "model": entry.name,
        "precision": AS_IS,
        "seed": seed,
        "pte_sha256": sha256,
        "pte_bytes": pte.stat().st_size,
        "versions": {},
        "methods": {method.name: {"delegated": [], "portable": []} for method in methods},
        "cases": [{key: value for key, value in case.items() if key != "content"} for case in cases],
        "export_s": 0.0,
    }
    if entry.data:
        named = [(f"data-{number}.ptd", path) for number, path in enumerate(entry.data)]
        described["data"] = [{"file": name, "sha256": sha256_of(path)} for name, path in named]
    etrecord = sha256_of(entry.etrecord) if entry.etrecord else None
    content = hashlib.sha256(json.dumps([described, etrecord], sort_keys=True).encode()).hexdigest()
    key = f"given-{_plain(entry.name)}-{content[:16]}"
    if found := read_complete(exports_dir / key):
        return found
    with publish_folder(exports_dir / key) as aside:
        shutil.copyfile(pte, aside / "model.pte")
        for path, kept in zip(entry.data, described.get("data", []), strict=True):
            shutil.copyfile(path, aside / kept["file"])
        if entry.etrecord:
            shutil.copyfile(entry.etrecord, aside / "model.etrecord")
            sources_of_given(pte, entry.etrecord, aside)
        for case in cases:
            for name, data in case["content"].items():
                (aside / name).write_bytes(data)
        (aside / "export.json").write_text(json.dumps({"export_key": key} | described, indent=1), encoding="utf-8")
    return read_exports(exports_dir / key)


def _chosen(entry: ModelEntry, methods: list[ProgramMethod]) -> list[ProgramMethod]:
    """Return the methods to measure."""
    names = [method.name for method in methods]
    if entry.method and entry.method not in names:
        raise InputError(f"{entry.pte}: unknown method {entry.method}; use one of {', '.join(names)}")
    chosen = [method for method in methods if entry.method in (None, method.name)]
    if len(chosen) > 1 and (entry.inputs or entry.shapes):
        key = "inputs" if entry.inputs else "shapes"
        raise InputError(f"{entry.pte}: `{key}` needs `method`, one of {', '.join(names)}")
    return chosen


def _cases(entry: ModelEntry, method: ProgramMethod, is_one_of_many: bool, seed: int) -> list[dict[str, Any]]:
    """Return the cases of a method as in export.json, with the bytes of each file in `content`."""
    wanted = []
    for number, each in enumerate(method.inputs):
        if each is None:
            raise InputError(f"{entry.pte}: input {number} of {method.name} is neither a tensor nor a number")
        if isinstance(each, ProgramTensor):
            wanted.append(each)
    cases = []
    for label, shapes in (entry.shapes or {"": [list(each.shape) for each in wanted]}).items():
        parts = [method.name] if is_one_of_many else []
        name = "-".join([*parts, *([label] if label else [])])
        chosen = _shapes(entry, wanted, shapes)
        content: dict[str, bytes] = {}
        prefix = f"{name}-" if name else ""
        inputs = _input_bytes(entry, wanted, chosen, seed)
        case: dict[str, Any] = {"name": name, "method": method.name, "content": content}
        case["inputs"] = [
            _tensor(f"{prefix}input-{number}.bin", data, each.dtype, shape, content)
            for number, (each, shape, data) in enumerate(zip(wanted, chosen, inputs, strict=True))
        ]
        case["outputs"] = _expected(entry, method, prefix, content)
        case["is_dynamic"] = any(each.is_dynamic for each in wanted)
        cases.append(case)
    return cases


def _shapes(entry: ModelEntry, wanted: list[ProgramTensor], shapes: list[list[int]]) -> list[tuple[int, ...]]:
    if len(shapes) != len(wanted):
        raise InputError(f"{entry.pte}: `shapes` lists {len(shapes)} inputs; the method has {len(wanted)}")
    for number, (each, shape) in enumerate(zip(wanted, shapes, strict=True)):
        fits = len(shape) == len(each.shape) and all(0 < a <= b for a, b in zip(shape, each.shape, strict=True))
        if tuple(shape) != each.shape and not (each.is_dynamic and fits):
            kind = "at most" if each.is_dynamic else "exactly"
            raise InputError(f"{entry.pte}: input {number} has shape {shape}; it must be {kind} {list(each.shape)}")
    return [tuple(shape) for shape in shapes]


def _input_bytes(
    entry: ModelEntry, wanted: list[ProgramTensor], shapes: list[tuple[int, ...]], seed: int
) -> list[bytes]:
    if not entry.inputs:
        random = np.random.default_rng(seed)
        return [each.seeded(random, shape) for each, shape in zip(wanted, shapes, strict=True)]
    if len(entry.inputs) != len(wanted):
        raise InputError(f"{entry.pte}: `inputs` lists {len(entry.inputs)} files; the method has {len(wanted)} inputs")
    found = []
    for path, each, shape in zip(entry.inputs, wanted, shapes, strict=True):
        data = path.read_bytes()
        if len(data) != each.bytes_of(shape):
            needed = f"{each.bytes_of(shape)} for {each.dtype} {list(shape)}"
            raise InputError(f"{path}: has {len(data)} bytes; the input needs {needed}")
        found.append(data)
    return found


def _expected(entry: ModelEntry, method: ProgramMethod, prefix: str, content: dict[str, bytes]) -> Tensors:
    """Return the outputs that the user expects; with dynamic shapes they may be smaller than the largest."""
    if entry.expected and len(entry.expected) != len(method.outputs):
        raise InputError(
            f"{entry.pte}: `expected` lists {len(entry.expected)} files; {method.name} returns {len(method.outputs)}"
        )
    found = []
    for number, (path, output) in enumerate(zip(entry.expected, method.outputs, strict=False)):
        data = path.read_bytes()
        if not isinstance(output, ProgramTensor):
            raise InputError(f"{path}: output {number} of {method.name} is not a tensor; leave `expected` out")
        if len(data) > output.bytes_of(output.shape) or len(data) % output.bytes_of(()):
            has = f"{output.dtype} {list(output.shape)}"
            raise InputError(f"{path}: has {len(data)} bytes; output {number} of {method.name} has {has}")
        name = f"{prefix}output-{number}.bin"
        shape = output.shape if len(data) == output.bytes_of(output.shape) else (len(data) // output.bytes_of(()),)
        found.append(_tensor(name, data, output.dtype, shape, content))
    return found


def _tensor(name: str, data: bytes, dtype: str, shape: tuple[int, ...], content: dict[str, bytes]) -> dict[str, Any]:
    content[name] = data
    return {"file": name, "dtype": dtype, "shape": list(shape), "sha256": hashlib.sha256(data).hexdigest()}
