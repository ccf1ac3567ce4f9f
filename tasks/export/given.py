"""A .pte file that the user brings: kept like an export, with the inputs and outputs that come with it."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from devices.errors import InputError
from tasks.bundle.cell import AS_IS
from tasks.export.entry import ModelEntry
from tasks.export.exported import EXPORT_VERSION, Export, Tensors, read_complete, read_exports
from tasks.export.program import ProgramMethod, ProgramTensor, read_program
from tasks.export.sources import sources_of_given
from tasks.store.files import publish_folder, sha256_of

_ETRECORD = "ETRECORD_V0"  # an entry of every ETRecord, which is a zip file


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
    """Return the cases of a .pte file, which is copied into `exports_dir`: one for each method.

    Where shapes are dynamic, the largest are measured. Inputs that the entry does not name get seeded values; without
    `expected`, the outputs are not compared.
    Raises InputError.
    """
    pte = entry.pte
    assert pte is not None
    key, described, cases = described_given(entry, seed)
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


def described_given(entry: ModelEntry, seed: int) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """Return the key of a .pte file's export, what export.json states about it, and its cases with the bytes of files.

    Raises InputError.
    """
    pte = entry.pte
    assert pte is not None
    methods = read_program(pte)
    if entry.etrecord:
        _check_etrecord(entry.etrecord)
    if len(methods) > 1 and entry.inputs:
        raise InputError(f"{pte}: has {len(methods)} methods, so `inputs` cannot belong to all; leave them out")
    cases = [_case(entry, method, method.name if len(methods) > 1 else "", seed) for method in methods]
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
    return f"given-{_plain(entry.name)}-{content[:16]}", described, cases


def _case(entry: ModelEntry, method: ProgramMethod, name: str, seed: int) -> dict[str, Any]:
    """Return the case of a method as in export.json, with the bytes of each file in `content`."""
    wanted = []
    for number, each in enumerate(method.inputs):
        if each is None:
            raise InputError(f"{entry.pte}: input {number} of {method.name} is neither a tensor nor a number")
        if isinstance(each, ProgramTensor):
            wanted.append(each)
    content: dict[str, bytes] = {}
    prefix = f"{name}-" if name else ""
    inputs = _input_bytes(entry, wanted, seed)
    return {
        "name": name,
        "method": method.name,
        "content": content,
        "inputs": [
            _tensor(f"{prefix}input-{number}.bin", data, each.dtype, each.shape, content)
            for number, (each, data) in enumerate(zip(wanted, inputs, strict=True))
        ],
        "outputs": _expected(entry, method, prefix, content),
        "is_dynamic": any(each.is_dynamic for each in wanted),
    }


def _input_bytes(entry: ModelEntry, wanted: list[ProgramTensor], seed: int) -> list[bytes]:
    if not entry.inputs:
        random = np.random.default_rng(seed)
        return [each.seeded(random) for each in wanted]
    if len(entry.inputs) != len(wanted):
        raise InputError(f"{entry.pte}: `inputs` lists {len(entry.inputs)} files; the method has {len(wanted)} inputs")
    found = []
    for path, each in zip(entry.inputs, wanted, strict=True):
        data = path.read_bytes()
        if len(data) != each.size_bytes:
            needed = f"{each.size_bytes} for {each.dtype} {list(each.shape)}"
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
        if not _fits(data, output):
            most = "at most " if output.is_dynamic else ""
            has = f"{most}{output.size_bytes} for {output.dtype} {list(output.shape)}"
            way_on = "write all elements and no header"
            raise InputError(f"{path}: has {len(data)} bytes; output {number} of {method.name} has {has}; {way_on}")
        name = f"{prefix}output-{number}.bin"
        shape = output.shape if len(data) == output.size_bytes else (len(data) // output.element_bytes,)
        found.append(_tensor(name, data, output.dtype, shape, content))
    return found


def _fits(data: bytes, output: ProgramTensor) -> bool:
    if not output.is_dynamic:
        return len(data) == output.size_bytes
    return len(data) <= output.size_bytes and len(data) % output.element_bytes == 0


def _check_etrecord(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as content:
            is_etrecord = _ETRECORD in content.namelist()
    except zipfile.BadZipFile:
        is_etrecord = False
    if not is_etrecord:
        raise InputError(f"{path}: not an ETRecord; name the file of the model's export, or leave `etrecord` out")


def _tensor(name: str, data: bytes, dtype: str, shape: tuple[int, ...], content: dict[str, bytes]) -> dict[str, Any]:
    content[name] = data
    return {"file": name, "dtype": dtype, "shape": list(shape), "sha256": hashlib.sha256(data).hexdigest()}
