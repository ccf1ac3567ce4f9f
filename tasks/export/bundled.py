"""Bundled programs (.bpte) of executorch's devtools: a program with inputs and the outputs that are right for them.

The file is a FlatBuffers file (`bundled_program_schema.fbs` of the wheel).
"""

import hashlib
from pathlib import Path

import numpy as np

from devices.errors import InputError
from tasks.etdump.flatbuffer import Buffer, CorruptTables, Positions, Tables
from tasks.export.entry import ModelEntry
from tasks.store.files import publish_folder

_MAGIC, _MAGIC_AT = b"BP08", 4
_TENSOR = 1  # in the union ValueUnion


def unbundle(entry: ModelEntry, exports_dir: Path) -> ModelEntry:
    """Return the entry of the program in a bundled one, with the inputs and outputs of its first test case.

    Their files are written to `exports_dir`, once for each content. Inputs that the entry states replace those of the
    file. Return the entry itself for another file. Raises InputError for several methods, and if the file is damaged.
    """
    assert entry.pte is not None
    try:
        with entry.pte.open("rb") as stream:
            if stream.read(_MAGIC_AT + len(_MAGIC))[_MAGIC_AT:] != _MAGIC:
                return entry
        data = entry.pte.read_bytes()
        program, inputs, outputs = _read(data, entry.pte)
    except OSError as error:
        raise InputError(f"{entry.pte}: cannot be read ({error.strerror})") from None
    except (CorruptTables, IndexError, ValueError) as error:
        raise InputError(f"{entry.pte}: the bundled program is damaged ({error}); write it again") from None
    folder = exports_dir / "unbundled" / hashlib.sha256(data).hexdigest()[:32]
    files = {f"input-{number}.bin": each for number, each in enumerate(inputs)}
    files |= {f"output-{number}.bin": each for number, each in enumerate(outputs)}
    if not folder.is_dir():
        with publish_folder(folder) as aside:
            for name, content in (files | {"model.pte": program}).items():
                (aside / name).write_bytes(content)
    of_test = {
        "inputs": [folder / name for name in files if name.startswith("input")],
        "expected": [folder / name for name in files if name.startswith("output")],
    }
    return entry.model_copy(update={"pte": folder / "model.pte", **({} if entry.inputs or entry.shapes else of_test)})


def _read(data: bytes, path: Path) -> tuple[bytes, list[bytes], list[bytes]]:
    """Return the program, and the inputs and expected outputs of the first test case; empty without one."""
    buffer, at = Buffer(data), np.zeros(1, np.int64)
    buffer.require_inside(at, 8, "the header")
    root = Tables(buffer, buffer.read(at, "<u4"), "the bundle")
    [program] = buffer.byte_vectors(root.references(2, "the program"), "the program")
    suites = _elements(buffer, root.references(1, "the methods"), "methods")
    if len(suites) > 1:
        raise InputError(f"{path}: bundles {len(suites)} methods; write a bundled program for each")
    for suite in suites:
        cases = _elements(buffer, _table(buffer, suite).references(1, "test cases"), "test cases")
        if cases:
            case = _table(buffer, cases[0])
            inputs, outputs = (_tensors(buffer, case.references(field, "values")) for field in (0, 1))
            return program, inputs, outputs
    return program, [], []


def _tensors(buffer: Buffer, at: Positions) -> list[bytes]:
    """Return the bytes of the tensors in a list of values; numbers are constants of the program."""
    tensors: list[bytes] = []
    for position in _elements(buffer, at, "values"):
        value = _table(buffer, position)
        if value.numbers(0, "u1", 0)[0] == _TENSOR:
            tensor = Tables(buffer, value.references(1, "a tensor"), "a tensor")
            tensors += buffer.byte_vectors(tensor.references(2, "its data"), "the data of a tensor")
    return tensors


def _elements(buffer: Buffer, at: Positions, what: str) -> list[int]:
    return [each for _, block in buffer.offset_vectors(at, what) for each in block.tolist()]


def _table(buffer: Buffer, at: int) -> Tables:
    return Tables(buffer, np.array([at], np.int64), "a table")
