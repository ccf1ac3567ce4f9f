"""Sessions for tests of the warehouse: told by what their operators took, written as bundles, loaded, asked about."""

import functools
import itertools
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from etdump_builder import METHOD, Profile, Run, build_etdump

from sql.warehouse import query, writing
from tasks.bundle import SessionRecord, publish_bundle
from tasks.load import LoadResult, load_paths

Execution = tuple[int, Mapping[str, int]]
"""Nanoseconds of Method::execute, and of each operator in it."""
CONVOLUTION = "Convolution (NHWC, F32) IGEMM #1"
CONVOLUTION_SME2 = "Convolution (NHWC, PF32) IGEMM #1"
LINEAR = "Fully Connected (NC, F32) GEMM #1"
TRANSPOSE = "Transpose (ND, X32) #1"
MEAN = "native_call_mean.out"

_clock = itertools.count(1_000_000, 1_000_000)  # no two ETDumps of a device start at the same time


def etdump_of(executions: Sequence[Execution]) -> bytes:
    """Return an ETDump: delegated operators one after another in a single call, each portable one in its own."""
    return build_etdump([Run(_events(next(_clock), *execution)) for execution in executions])


def _events(start: int, execute_ns: int, operators: Mapping[str, int]) -> list[Profile]:
    events: list[Profile] = []
    delegated = {name: ns for name, ns in operators.items() if not name.startswith("native_call_")}
    now = start
    for name, ns in delegated.items():
        events.append(Profile(text=name, start=now, end=now + ns, instruction=0))
        now += ns
    if delegated:
        events.append(Profile("DELEGATE_CALL", start, now, instruction=0))
    for instruction, (name, ns) in enumerate(operators.items(), 1):
        if name not in delegated:
            events.append(Profile(name, now, now + ns, instruction=instruction))
            events.append(Profile("OPERATOR_CALL", now, now + ns, instruction=instruction))
            now += ns
    return [*events, Profile(METHOD, start, start + execute_ns)]


class Farm:
    """A folder of bundles and the warehouse made from them."""

    def __init__(self, folder: Path) -> None:
        self.bundles = folder / "bundles"
        self.warehouse = folder / "warehouse.duckdb"
        folder.mkdir(exist_ok=True)
        self.warehouse.write_bytes(_empty_warehouse())
        self._count = 0

    def session(
        self,
        executions: Sequence[Execution | int] = (),
        *,
        files: Mapping[str, bytes] | None = None,
        **changes: Any,
    ) -> Path:
        """Write the bundle of one session and return its folder.

        `executions` come without warm-up: one is put before them. `changes` are fields of session.json, nested ones
        with a double underscore (`device__name="phone"`).
        """
        self._count += 1
        measured = [run if isinstance(run, tuple) else (run, {}) for run in executions]
        record = _record(f"{self._count:016x}", len(measured) + 1)
        for name, value in changes.items():
            _put(record, name.split("__"), value)
        contents = dict(files or {})
        if measured:
            contents.setdefault("model.etdump", etdump_of([(measured[0][0] * 9, measured[0][1]), *measured]))
        with tempfile.TemporaryDirectory() as collected:
            for name, content in contents.items():
                (Path(collected) / name).write_bytes(content)
            publish_bundle(self.bundles, SessionRecord.model_validate(record), Path(collected))
        return self.bundles / str(record["sweep"]["sweep_id"]) / str(record["session_id"])

    def load(self, *paths: Path) -> LoadResult:
        """Load the given paths, or all bundles."""
        return load_paths(paths or [self.bundles], self.warehouse)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return query(self.warehouse, text)[1]


def profile_of(**kernels: int) -> dict[str, bytes]:
    """Return the kernel_profile.json of samples by kernel; `unresolved` counts samples without a name."""
    unresolved = kernels.pop("unresolved", 0)
    profile = {
        "rate_hz": 1000,
        "samples": sum(kernels.values()) + unresolved,
        "dropped": 0,
        "unresolved": unresolved,
        "threads": 1,
        "kernels": [
            {"name": name, "library": "libxnnpack.so", "samples": samples} for name, samples in kernels.items()
        ],
        "unresolved_libraries": [{"library": "libxnnpack.so", "samples": unresolved}] if unresolved else [],
    }
    return {"kernel_profile.json": json.dumps(profile).encode()}


@functools.cache
def _empty_warehouse() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"
        with writing(path):
            pass
        return path.read_bytes()


def _record(session_id: str, executions: int) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "attempt": 1,
        "sweep": {"sweep_id": "smoke-2026-11-20", "name": "smoke", "night": "2026-11-20"},
        "status": "succeeded",
        "started_at": "2026-11-20T01:00:00+00:00",
        "ended_at": "2026-11-20T01:00:09+00:00",
        "model": {
            "name": "toy",
            "precision": "fp32",
            "seed": 0,
            "export_key": "e1",
            "pte_sha256": "p1",
            "pte_bytes": 1000,
            "versions": {"executorch": "1.5.1"},
        },
        "runner": {
            "runner_sha256": "r1",
            "platform": "linux-aarch64",
            "kind": "wheel",
            "versions": {"executorch": "1.5.1", "runner": "1"},
            "source_sha256": "source1",
        },
        "variant": "sme2_off",
        "mode": "timing",
        "threads": 1,
        "executions": executions,
        "warmup_executions": 1,
        "index": 0,
        "device": {"name": "host", "transport": "local", "emulated": False, "facts": {"model": "board", "build": "b1"}},
        "conditions": {"before": None, "after": None},
        "farm_version": "0.1.0",
    }


def _put(record: dict[str, Any], steps: list[str], value: Any) -> None:
    for step in steps[:-1]:
        record = record[step]
    record[steps[-1]] = value
