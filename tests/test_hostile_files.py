"""Files that a device, another program or a slip of the hand can spoil: a value or one sentence, never a traceback."""

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.device import Device
from devices.errors import FarmError, InputError
from devices.inventory import load_inventory
from devices.ondevice.lease import device_queue
from devices.untrusted import sanitize_line
from sql.errors import WarehouseError
from tasks.bundle.record import BundleError, parse_record
from tasks.etdump.xnntrace import selected_kernels
from tasks.load.snapshot import newest_snapshot
from tasks.measure.health import HealthError, Registry
from tasks.measure.session.check import Unsuccessful
from tasks.measure.session.collect import read_stats
from tasks.measure.sweep_file import read_sweep
from tasks.rows.kernels import kernel_rows
from tests.fixtures.hostile import HOSTILE_FILES, VALUES, as_json, damaged, parsed_or_refused
from tests.fixtures.warehouse import BundleMaker

PROFILE = {
    "rate_hz": 1000.0, "samples": 9, "dropped": 0, "unresolved": 1, "threads": 1,
    "kernels": [{"samples": 8, "name": "xnn_f32_gemm_minmax_ukernel_1x8__neon", "library": "runner"}],
    "unresolved_libraries": [{"samples": 1, "library": "libc.so"}],
}  # fmt: skip
STATS = {"load_ns": 5, "threads_used": 1, "execution_ns": [1, 2], "sme2_requested": "on", "exit_reason": None}
HOLDER = {"holder": "x", "host": "y", "pid": 1, "since": "2026-01-01", "place": "z", "started": "1", "priority": 2}
INVENTORY = {
    "devices": [{"name": "here", "transport": "local", "labels": {"a": "b"}, "limits": {"max_temperature_c": 40}}]
}
SWEEP = {"name": "s", "models": ["toy_cnn"], "threads": [1], "limits": {}, "devices": {"name": "here"}, "seed": 1}
HEALTH = {"state": "suspect", "reason": "lost", "strikes": 2, "until": None}
CURRENT = b"warehouse-000001.duckdb\nsha256 " + b"ab" * 32 + b"\nsize_bytes 4\nmtime_ns 9\n"


@dataclass(frozen=True)
class Parser:
    """A file's name, what reads it from a folder, the one error that it may raise, and a valid value."""

    file: str
    parse: Callable[[Path], Any]
    refusal: type[FarmError] | type[WarehouseError]
    valid: Mapping[str, Any]


def _record() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        made = BundleMaker(Path(folder)).session([(100, {})])
        return cast("dict[str, Any]", json.loads((made / "session.json").read_bytes()))


def _kernels(folder: Path) -> object:
    record = parse_record(as_json(RECORD), "session.json")
    files = {"kernel_profile.json": next(iter(record.files.values()))}
    return kernel_rows(folder, record.model_copy(update={"mode": "profile", "files": files}))


def _holder(folder: Path) -> object:
    printed = (folder / "holder").read_bytes().decode(errors="replace")
    device = cast("Device", SimpleNamespace(root="/r", name="d", machine_folder="/m"))
    with patch("devices.ondevice.lease.run_script", return_value=f"held {printed}\n1 2 token {printed}\n{printed}"):
        holder, waiting = device_queue(device)
    for shown in map(str, (holder, *waiting)):
        assert sanitize_line(shown) == shown
        assert len(shown) < 700
    return shown


RECORD = _record()
PARSERS = [
    Parser(
        "session.json", lambda folder: parse_record((folder / "session.json").read_bytes(), "a/b"), BundleError, RECORD
    ),
    Parser("stats.json", read_stats, Unsuccessful, STATS),
    Parser("kernel_profile.json", _kernels, BundleError, PROFILE),
    Parser("inventory.yaml", lambda folder: load_inventory(folder / "inventory.yaml"), InputError, INVENTORY),
    Parser("sweep.yaml", lambda folder: read_sweep(folder / "sweep.yaml"), InputError, SWEEP),
    Parser("holder", _holder, FarmError, HOLDER),
    Parser("phone.json", lambda folder: Registry(folder).health("phone"), HealthError, HEALTH),
    Parser("current", newest_snapshot, WarehouseError, {}),
    Parser("stderr.txt", lambda folder: selected_kernels(folder / "stderr.txt"), InputError, {}),
]
STRUCTURED = [parser for parser in PARSERS if parser.valid]
of_every_parser = pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.file)
of_structured = pytest.mark.parametrize("parser", STRUCTURED, ids=lambda parser: parser.file)


def refusal(parser: Parser, folder: Path, content: bytes) -> str | None:
    """Write the file and parse it; return the sentence that refuses it, None if it is read."""
    (folder / parser.file).write_bytes(content)
    return parsed_or_refused(lambda: parser.parse(folder), parser.refusal)


@pytest.mark.fault
@of_every_parser
def test_garbage_is_refused_in_one_sentence(parser: Parser, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for kind, content in HOSTILE_FILES.items():
        with subtests.test(kind):
            refusal(parser, tmp_path, content)


@pytest.mark.fault
@of_structured
def test_damaged_values_are_refused_in_one_sentence(parser: Parser, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    # given a valid file, which is accepted
    assert refusal(parser, folder, as_json(parser.valid)) is None

    # when values of it are replaced, then it is read or refused in one sentence
    @given(damaged(parser.valid))
    def each(value: Any) -> None:
        refusal(parser, folder, as_json(value))

    each()


@pytest.mark.fault
@of_every_parser
def test_any_bytes_are_refused_in_one_sentence(parser: Parser, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("bytes")

    @given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode), VALUES.map(as_json)))
    def each(content: bytes) -> None:
        assert "\n" not in (refusal(parser, folder, content) or "")

    each()


@pytest.mark.parametrize("key", ["warehouse", "sha256", "size_bytes", "mtime_ns"])
def test_a_damaged_line_of_current_is_refused_in_one_sentence(key: str, tmp_path: Path) -> None:
    (parser,) = (each for each in PARSERS if each.file == "current")
    (tmp_path / "warehouse-000001.duckdb").write_bytes(b"abcd")
    for damage in (b"", b"\0", b"\xff", b"9" * 5000, b"-1", b"a b c", b"\n", "²".encode(), b"warehouse-\0"):
        content = b"\n".join(damage + line if line.startswith(key.encode()) else line for line in CURRENT.split(b"\n"))
        assert refusal(parser, tmp_path, content)
        assert refusal(parser, tmp_path, CURRENT.replace(key.encode(), key.encode() + damage + b" "))


LAUGHS = [(chr(98 + number), ", ".join([f"*{chr(97 + number)}"] * 9)) for number in range(20)]
YAML_TRAPS = {
    "billion laughs": "a: &a [x, x, x]\n" + "".join(f"{name}: &{name} [{before}]\n" for name, before in LAUGHS),
    "merged laughs": "a: &a {x: 1}\n" + "".join(f"{name}: &{name} {{<<: [{before}]}}\n" for name, before in LAUGHS),
    "alias of itself": "name: &a [*a]",
    "merge of itself": "name: &a {<<: *a}",
    "impossible date": "name: 2026-13-45",
    "integer that is not": 'name: !!int "abc"',
    "date that is not": "name: !!timestamp x",
    "python object": "name: !!python/object/apply:os.system [ls]",
    "list as a key": "? [a, b]\n: 1",
    "mapping as a key": "? {a: b}\n: 1",
    "number as a key": "1: x\n2026-01-01: y\nnull: z\ntrue: 2",
    "huge integer": f"seed: {'9' * 5000}\nname: x\nmodels: [toy_cnn]",
    "huge float": f"name: x\nmodels: [toy_cnn]\ndeadline_s: 1{'0' * 4000}",
    "not a number": "name: x\nmodels: [toy_cnn]\ndeadline_s: .nan",
    "infinite": "name: x\nmodels: [toy_cnn]\nsettle_s: .inf",
    "tab": "name:\n\t- x",
    "two documents": "name: x\n---\nname: y",
    "duplicate key": "name: x\nname: y",
    "line break in a name": 'name: "a\\nb"\nmodels: ["a\\nb\\e[2J"]',
    "line break in a key": '"a\\nb\\e[2J": 1',
    "long name": f"name: {'n' * 5000}\nmodels: [x]",
    "long key": f"{'k' * 900}: 1",
}


@pytest.mark.parametrize("parser", PARSERS[3:5], ids=lambda parser: parser.file)
def test_traps_of_yaml_are_refused_in_one_sentence(parser: Parser, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for trap, text in YAML_TRAPS.items():
        with subtests.test(trap):
            assert refusal(parser, tmp_path, text.encode())
