"""Bundled programs (.bpte) of executorch's devtools: a program with inputs and the outputs that are right for them.

The file is a FlatBuffers file (`bundled_program_schema.fbs` of the wheel).
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from devices.errors import InputError
from tasks.etdump.flatbuffer import Buffer, CorruptTables, Positions, Tables
from tasks.export.entry import ModelEntry
from tasks.export.program import read_integers
from tasks.store.files import publish_folder

_MAGIC, _MAGIC_AT = b"BP08", 4
_TENSOR = 1  # in the union ValueUnion


@dataclass(frozen=True)
class FirstCase:
    """The first test case of a method: the files of its tensors, and the sizes of its inputs."""

    inputs: list[Path]
    sizes: list[list[int]]
    expected: list[Path]


Unbundled = tuple[Path, dict[str, FirstCase]]
"""A program, and the first test case of each method that has one."""


def unbundle(entry: ModelEntry, exports_dir: Path) -> Unbundled:
    """Return the program in a bundled one with its test cases, or the file itself without any if it is another one.

    The files are written to `exports_dir`, once for each content. Inputs and shapes that the entry states replace the
    test cases. Raises InputError if the file is damaged.
    """
    assert entry.pte is not None
    try:
        with entry.pte.open("rb") as stream:
            if stream.read(_MAGIC_AT + len(_MAGIC))[_MAGIC_AT:] != _MAGIC:
                return entry.pte, {}
        data = entry.pte.read_bytes()
        program, cases = _read(data)
    except OSError as error:
        raise InputError(f"{entry.pte}: cannot be read ({error.strerror})") from None
    except (CorruptTables, IndexError, ValueError) as error:
        raise InputError(f"{entry.pte}: the bundled program is damaged ({error}); write it again") from None
    folder = exports_dir / "bundled" / hashlib.sha256(data).hexdigest()[:32]
    files, tests = {"model.pte": program}, dict[str, FirstCase]()
    for suite, (method, (inputs, outputs)) in enumerate(cases.items()):
        input_files = {f"{suite}-inputs-{number}.bin": data for number, (data, _) in enumerate(inputs)}
        expected = {f"{suite}-expected-{number}.bin": data for number, (data, _) in enumerate(outputs)}
        files |= input_files | expected
        sizes = [each for _, each in inputs]
        tests[method] = FirstCase([folder / name for name in input_files], sizes, [folder / name for name in expected])
    if not folder.is_dir():
        with publish_folder(folder) as aside:
            for name, content in files.items():
                (aside / name).write_bytes(content)
    return folder / "model.pte", {} if entry.inputs or entry.shapes else tests


_Tensor = tuple[bytes, list[int]]
"""The bytes of a tensor, and its sizes."""


def _read(data: bytes) -> tuple[bytes, dict[str, tuple[list[_Tensor], list[_Tensor]]]]:
    """Return the program, and by method the inputs and expected outputs of its first test case."""
    buffer, at = Buffer(data), np.zeros(1, np.int64)
    buffer.require_inside(at, 8, "the header")
    root = Tables(buffer, buffer.read(at, "<u4"), "the bundle")
    [program] = buffer.byte_vectors(root.references(2, "the program"), "the program")
    first: dict[str, tuple[list[_Tensor], list[_Tensor]]] = {}
    for at_suite in _elements(buffer, root.references(1, "the methods"), "methods"):
        suite = _table(buffer, at_suite)
        _, [name] = buffer.strings(suite.references(0, "its method"), "the name of a method")
        if cases := _elements(buffer, suite.references(1, "test cases"), "test cases"):
            inputs, outputs = (_table(buffer, cases[0]).references(field, "values") for field in (0, 1))
            first[name.decode()] = _tensors(buffer, inputs), _tensors(buffer, outputs)
    return program, first


def _tensors(buffer: Buffer, at: Positions) -> list[_Tensor]:
    """Return the tensors in a list of values; numbers are constants of the program."""
    tensors: list[_Tensor] = []
    for position in _elements(buffer, at, "values"):
        value = _table(buffer, position)
        if value.numbers(0, "u1", 0)[0] == _TENSOR:
            tensor = Tables(buffer, value.references(1, "a tensor"), "a tensor")
            sizes = read_integers(buffer, tensor.references(1, "its sizes"))
            [content] = buffer.byte_vectors(tensor.references(2, "its data"), "the data of a tensor")
            tensors.append((content, sizes))
    return tensors


def _elements(buffer: Buffer, at: Positions, what: str) -> list[int]:
    return [each for _, block in buffer.offset_vectors(at, what) for each in block.tolist()]


def _table(buffer: Buffer, at: int) -> Tables:
    return Tables(buffer, np.array([at], np.int64), "a table")
