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
Tests = dict[str, dict[str, list[Path]]]
"""By method: the keys `inputs` and `expected` of an entry."""


def unbundle(entry: ModelEntry, exports_dir: Path) -> tuple[ModelEntry, Tests]:
    """Return the entry of the program in a bundled one, and the first test case of each method that has one.

    Their files are written to `exports_dir`, once for each content. Inputs that the entry states replace those of the
    file. Return the entry itself for another file. Raises InputError if the file is damaged.
    """
    assert entry.pte is not None
    try:
        with entry.pte.open("rb") as stream:
            if stream.read(_MAGIC_AT + len(_MAGIC))[_MAGIC_AT:] != _MAGIC:
                return entry, {}
        data = entry.pte.read_bytes()
        program, cases = _read(data)
    except OSError as error:
        raise InputError(f"{entry.pte}: cannot be read ({error.strerror})") from None
    except (CorruptTables, IndexError, ValueError) as error:
        raise InputError(f"{entry.pte}: the bundled program is damaged ({error}); write it again") from None
    folder = exports_dir / "bundled" / hashlib.sha256(data).hexdigest()[:32]
    files, tests = {"model.pte": program}, Tests()
    for suite, (method, tensors) in enumerate(cases.items()):
        for key, of_key in zip(("inputs", "expected"), tensors, strict=True):
            named = {f"{suite}-{key}-{number}.bin": each for number, each in enumerate(of_key)}
            files |= named
            tests.setdefault(method, {})[key] = [folder / name for name in named]
    if not folder.is_dir():
        with publish_folder(folder) as aside:
            for name, content in files.items():
                (aside / name).write_bytes(content)
    return entry.model_copy(update={"pte": folder / "model.pte"}), {} if entry.inputs or entry.shapes else tests


def _read(data: bytes) -> tuple[bytes, dict[str, tuple[list[bytes], list[bytes]]]]:
    """Return the program, and by method the inputs and expected outputs of its first test case."""
    buffer, at = Buffer(data), np.zeros(1, np.int64)
    buffer.require_inside(at, 8, "the header")
    root = Tables(buffer, buffer.read(at, "<u4"), "the bundle")
    [program] = buffer.byte_vectors(root.references(2, "the program"), "the program")
    first: dict[str, tuple[list[bytes], list[bytes]]] = {}
    for at_suite in _elements(buffer, root.references(1, "the methods"), "methods"):
        suite = _table(buffer, at_suite)
        _, [name] = buffer.strings(suite.references(0, "its method"), "the name of a method")
        if cases := _elements(buffer, suite.references(1, "test cases"), "test cases"):
            inputs, outputs = (_table(buffer, cases[0]).references(field, "values") for field in (0, 1))
            first[name.decode()] = _tensors(buffer, inputs), _tensors(buffer, outputs)
    return program, first


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
