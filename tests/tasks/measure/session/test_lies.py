"""A runner that lies never succeeds: honest sessions of real programs, in which one thing contradicts the others."""

import json
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.bundle.record import SessionRecord
from tasks.etdump.reader import read_etdump
from tasks.export.entry import ModelEntry
from tasks.export.exported import Export
from tasks.export.prebuilt import import_prebuilt
from tests.fixtures.runner import Program
from tests.fixtures.stand_in import a_farm_context, a_session, measured

pytestmark = [pytest.mark.torch, pytest.mark.thorough]
EXECUTIONS = 12
# Hands out what a real runner left for the same request, after as long as that took.
REPLAY = 'here=%s; cp "$here/stats.json" "$stats"; cp "$here/model.etdump" "$etdump"; sleep 0.3\n'
REPLAY += 'for file in "$here"/output-*; do cp "$file" "${output%%/*}"; done\n'
FILES = {
    "convolved": (["input"], ["output-0", "output-1"]),
    "lookup": (["input"], ["output-0"]),
    "summed": (["input"], ["output"]),
}


@dataclass(frozen=True)
class Told:
    """What a runner left of a session, as files to lie in, beside other sessions that were honest."""

    folder: Path
    other_session: Path
    other_model: Path
    fewer: Path
    """The same with half as many executions."""


Lie = Callable[[Told], None]


def stats(change: Callable[[dict[str, Any]], object]) -> Lie:
    def lie(told: Told) -> None:
        path = told.folder / "stats.json"
        change(content := json.loads(path.read_text()))
        path.write_text(json.dumps(content), encoding="utf-8")

    return lie


def times(change: Callable[[list[int]], list[int]], key: str = "execution_ns") -> Lie:
    return stats(lambda content: content.update({key: change(content[key])}))


def file(name: str, change: Callable[[bytes], bytes]) -> Lie:
    def lie(told: Told) -> None:
        path = told.folder / name
        path.write_bytes(change(path.read_bytes()))

    return lie


def instead(name: str, source: str) -> Lie:
    def lie(told: Told) -> None:
        shutil.copyfile(getattr(told, source) / name, told.folder / name)

    return lie


def scaled(factor: float) -> Lie:
    """All times of the ETDump times a factor, so that it is consistent in itself."""

    def lie(told: Told) -> None:
        path = told.folder / "model.etdump"
        dump, content = read_etdump(path), path.read_bytes()
        for value in {*dump.start_ns.tolist(), *dump.end_ns.tolist()}:
            content = content.replace(struct.pack("<Q", value), struct.pack("<Q", int(value * factor)))
        path.write_bytes(content)

    return lie


def first_execution_again(told: Told) -> None:
    """Every execution with the times of the second one, one after the other."""
    path = told.folder / "model.etdump"
    dump, content = read_etdump(path), bytearray(path.read_bytes())
    first = np.flatnonzero(dump.execution == 1)
    for number in range(2, dump.executions):
        rows = np.flatnonzero(dump.execution == number)
        shift = 1_000_000_000 * number
        for row, like in zip(rows, first, strict=True):
            for column in (dump.start_ns, dump.end_ns):
                content[:] = content.replace(struct.pack("<Q", column[row]), struct.pack("<Q", column[like] + shift))
    path.write_bytes(bytes(content))


def without_output(told: Told) -> None:
    next(told.folder.glob("output-*")).unlink()


LIES: dict[str, Lie] = {
    "no times": times(lambda values: []),
    "two times": times(lambda values: values[:2]),
    "one time less": times(lambda values: values[1:]),
    "sixty times": times(lambda values: values * 5),
    "times of a tenth": times(lambda values: [value // 10 for value in values]),
    "times of half": times(lambda values: [value // 2 for value in values]),
    "tenfold times": times(lambda values: [value * 10 + 100_000 for value in values]),
    "thousandfold times": times(lambda values: [value * 1000 for value in values]),
    "times of 0": times(lambda values: [0] * len(values)),
    "one time of 0": times(lambda values: [*values[:-1], 0]),
    "a negative time": times(lambda values: [*values[:-1], -1]),
    "a time of 285 years": times(lambda values: [*values[:-1], 9 * 10**18]),
    "untraced times beyond the job": times(lambda values: [10**9], "untraced_execution_ns"),
    "a load of 285 years": stats(lambda content: content.update(load_ns=9 * 10**18)),
    "a load of 10 s": stats(lambda content: content.update(load_ns=10**10)),
    "no load": stats(lambda content: content.pop("load_ns")),
    "a negative load": stats(lambda content: content.update(load_ns=-1)),
    "a set-up of an hour": stats(lambda content: content.update(setup_ns=36 * 10**11)),
    "a crash": stats(lambda content: content.update(exit_reason="crashed")),
    "an empty reason": stats(lambda content: content.update(exit_reason="")),
    "other threads": stats(lambda content: content.update(threads_used=3)),
    "SME": stats(lambda content: content.update(sme_hardware=True)),
    "SME2": stats(lambda content: content.update(sme2_hardware=True)),
    "statistics of another model": instead("stats.json", "other_model"),
    "statistics of another session": instead("stats.json", "other_session"),
    "statistics of fewer executions": instead("stats.json", "fewer"),
    "no statistics": file("stats.json", lambda content: b""),
    "cut statistics": file("stats.json", lambda content: content[:-20]),
    "an ETDump of another model": instead("model.etdump", "other_model"),
    "an ETDump of another session": instead("model.etdump", "other_session"),
    "an ETDump of fewer executions": instead("model.etdump", "fewer"),
    "an ETDump of a tenth": scaled(0.1),
    "a tenfold ETDump": scaled(10),
    "a thousandfold ETDump": scaled(1000),
    "identical executions": first_execution_again,
    "an empty ETDump": file("model.etdump", lambda content: b""),
    "a cut ETDump": file("model.etdump", lambda content: content[: len(content) // 2]),
    "a longer ETDump": file("model.etdump", lambda content: content + b"x"),
    "a longer output": file("output-0.bin", lambda content: content + bytes(4)),
    "a shorter output": file("output-0.bin", lambda content: content[:-4]),
    "an output that is no number": file("output-0.bin", lambda content: b"\xff" * len(content)),
    "an output of another model": instead("output-0.bin", "other_model"),
    "a missing output": without_output,
}


def record_with(folder: Path, export: Export, told: Path) -> SessionRecord:
    context = replace(a_farm_context(folder, REPLAY % told), export=export)
    session = replace(a_session(), cell=replace(a_session().cell, executions=EXECUTIONS, warmup_executions=2))
    return measured(folder, context, session)


@pytest.fixture(scope="module")
def exports(models: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Export]:
    """An export of each program, with the outputs that eager PyTorch gives."""
    folder = tmp_path_factory.mktemp("exports")
    found = {}
    for name, (inputs, outputs) in FILES.items():
        named = {"inputs": inputs, "expected": outputs}
        files = {key: [str(models / f"{name}-{each}.bin") for each in each_of] for key, each_of in named.items()}
        entry = ModelEntry.model_validate({"name": name, "pte": f"{name}.pte", **files}, context={"folder": models})
        found[name] = import_prebuilt(entry, folder, 0)[0]
    return found


@pytest.fixture(scope="module")
def recordings(exports: dict[str, Export], run: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the farm's runner leaves of each program: twice, and once with half the executions."""
    folder = tmp_path_factory.mktemp("recordings")
    for (name, export), (kind, executions) in product(
        exports.items(), {"first": EXECUTIONS, "second": EXECUTIONS, "fewer": EXECUTIONS // 2}.items()
    ):
        (made := folder / name / kind).mkdir(parents=True)
        inputs = ",".join(str(export.folder / each["file"]) for each in export.inputs)
        flags = [f"--model_path={export.pte}", f"--inputs={inputs}", f"--num_executions={executions}"]
        run.stats(made, *flags, "--cpu_threads=1", f"--output_file={made}/output")
    return folder


@pytest.mark.parametrize("name", FILES)
def test_an_honest_session_succeeds(exports: dict[str, Export], recordings: Path, tmp_path: Path, name: str) -> None:
    record = record_with(tmp_path, exports[name], recordings / name / "first")
    assert (record.status, record.reason) == ("succeeded", None)


@pytest.mark.fault
@pytest.mark.parametrize(("lie", "name"), list(zip(LIES, cycle(FILES), strict=False)), ids=list(LIES))
def test_a_lie_never_succeeds(
    exports: dict[str, Export], recordings: Path, tmp_path: Path, lie: str, name: str
) -> None:
    # given what an honest runner left, in which one thing was changed
    told = tmp_path / "told"
    shutil.copytree(recordings / name / "first", told)
    other = next(each for each in FILES if each != name)
    LIES[lie](Told(told, recordings / name / "second", recordings / other / "first", recordings / name / "fewer"))
    # when the session ends
    record = record_with(tmp_path, exports[name], told)
    # then it does not succeed, and the reason is one sentence
    assert record.status in ("failed", "invalid")
    assert record.reason is not None
    assert record.reason.isprintable()
    assert record.reason_code != "farm_error"
