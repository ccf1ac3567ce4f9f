"""Poison in the files of a session: it ends with the name of what is wrong, and the next one runs."""

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devices.local import LocalDevice
from tasks.bundle.names import MAX_LOG_BYTES
from tasks.load.load import load_paths
from tasks.measure.session import measure
from tasks.measure.session.check import Unsuccessful
from tasks.measure.session.collect import collect_files, file_limits, read_stats
from tasks.store.local_store import LocalStore
from tests.fixtures.plans import NIGHT
from tests.fixtures.stand_in import GOOD, a_context, a_farm_context, a_session, measured

GOOD_STATS = {
    "runner_version": "1", "load_ns": 5, "execution_ns": [1, 2, 3], "peak_memory_bytes": 9000, "threads_requested": 1,
    "threads_used": 1, "sme2_requested": "off", "sme2_hardware": False, "sme2_reported": False, "exit_reason": "ok",
}  # fmt: skip


def changed(**changes: object) -> str:
    """The statistics of a good runner as JSON, with these changes."""
    return json.dumps(GOOD_STATS | changes)


def writes(folder: Path, variable: str, content: str) -> str:
    """A script that succeeds and writes the content to the path of a flag."""
    (folder / "content").write_text(content, encoding="utf-8")
    return f'cp {shlex.quote(str(folder / "content"))} "${variable}"\n{GOOD}'


@pytest.mark.fault
@pytest.mark.parametrize(
    ("content", "field"),
    [
        (changed(load_ns=2**70), "`load_ns`"),
        ('{"load_ns": NaN, "threads_used": 1}', "`load_ns`"),
        (changed(execution_ns=[1, -2]), "`execution_ns.1`"),
        (changed(exit_reason="lone \ud800"), "hex escape"),
        (changed()[:-1] + ', "deep": ' + "[" * 100_000, "recursion limit"),
        (changed(newer_ns=-1), "`newer_ns`"),
        (changed()[:-1] + ', "load_ns": 6}', "duplicate key `load_ns`, with 5 and 6"),
    ],
    ids=range(7),
)
def test_statistics_that_do_not_match_their_schema_fail_the_session(tmp_path: Path, content: str, field: str) -> None:
    (tmp_path / "stats.json").write_text(content, encoding="utf-8")
    with pytest.raises(Unsuccessful) as end:
        read_stats(tmp_path)
    assert (end.value.status, end.value.code) == ("failed", "bad_stats")
    assert field in str(end.value)
    assert len(str(end.value)) < 500


@pytest.mark.fault
def test_what_the_load_would_refuse_fails_its_session_which_is_loaded(tmp_path: Path) -> None:
    # given a runner with statistics of another schema, one with a damaged profile, facts that no column can hold, and a
    # runner that states what this farm does not know yet
    (tmp_path / "profile").write_text("[" * 100_000, encoding="utf-8")
    profile = f'cp {shlex.quote(str(tmp_path / "profile"))} "$profile"\n'
    records = []
    for index, stats in enumerate((changed(load_ns="fast"), changed(), changed(), changed(unknown={"to": ["us"]}))):
        (folder := tmp_path / str(index)).mkdir()
        context = a_farm_context(folder, profile + writes(folder, "stats", stats))
        if index == 2:
            context = replace(context, facts=context.facts.model_copy(update={"cores": 2**70}))
        session = a_session(repetition=index, mode="profile" if index == 1 else "timing")
        records.append(measure.measure(session, context, LocalStore(tmp_path / "bundles")))
        assert context.device.collected == [str(each) for each in (folder / "root" / "sessions").iterdir()]
    # then each of the first three has failed with its reason, the last one has all that was stated, and all are loaded
    ends = [(record.status, record.reason_code) for record in records]
    assert ends == [("failed", "bad_stats"), *[("failed", "not_loadable")] * 2, ("succeeded", None)]
    assert "kernel_profile.json: not a kernel profile" in str(records[1].reason)
    assert "`device.facts.cores`" in str(records[2].reason)
    assert str(tmp_path) not in str(records[1].reason)
    assert records[3].stats
    assert records[3].stats.model_dump(exclude_none=True) == GOOD_STATS | {"unknown": {"to": ["us"]}}
    result = load_paths([tmp_path / "bundles"], tmp_path / "warehouse.duckdb")
    assert (result.loaded, result.refused) == (4, [])


@pytest.mark.parametrize("name", ["model.etdump", "output-0.bin", "stderr.txt"])
@pytest.mark.parametrize("make", ["ln -s /dev/zero", "truncate -s 1T", "mkfifo"])
def test_a_file_that_is_too_large_or_not_a_file_is_refused(tmp_path: Path, name: str, make: str) -> None:
    left, collected = tmp_path / "left", tmp_path / "collected"
    left.mkdir()
    collected.mkdir()
    subprocess.run([*make.split(), str(left / name)], check=True)
    (refused,) = collect_files(LocalDevice("local", str(tmp_path)), str(left), {name: 1 << 20}, {}, collected, "trace")
    assert refused.code == ("wrong_output" if name.startswith("output-") else "file_refused")
    assert f"{name} " in str(refused)
    assert list(collected.iterdir()) == []


@pytest.mark.fault
def test_a_long_log_is_cut_with_a_line_that_states_it(tmp_path: Path) -> None:
    noise = "echo begin; head -c 40000000 /dev/zero; echo end; "
    record = measured(tmp_path, a_context(tmp_path, f"{{ {noise} }} | tee /dev/stderr\n{GOOD}"))
    assert record.status == "succeeded", record.reason
    for name in ("stdout.txt", "stderr.txt"):
        log = (tmp_path / "bundles" / NIGHT.sweep_id / record.session_id / name).read_bytes()
        assert log.startswith(b"begin\n")
        assert log.endswith(b"end\n")
        assert b"\n[etfarm: this log has more than 16777216 bytes; its middle was cut here]\n" in log
        assert len(log) < MAX_LOG_BYTES + 200


@pytest.mark.fault
def test_an_unforeseen_error_ends_that_session_with_its_class_and_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # given a step that fails in a way that nobody foresaw
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("lone \ud800\nand more")

    monkeypatch.setattr(measure, "check_result", fail)
    context = a_context(tmp_path, GOOD)
    record = measured(tmp_path, context)
    # then there is a bundle with the reason and the trace, the log has the sentence, and no job is left to collect
    assert (record.status, record.reason_code) == ("failed", "farm_error")
    assert "unexpected error (ZeroDivisionError: lone \ufffd and more)" in str(record.reason)
    trace = tmp_path / "bundles" / NIGHT.sweep_id / record.session_id / "farm_error.txt"
    assert b"in fail\n" in trace.read_bytes()
    assert "ZeroDivisionError: lone" in caplog.text
    assert "Traceback" not in caplog.text
    assert context.device.collected == [str(folder) for folder in (tmp_path / "root" / "sessions").iterdir()]


def limits_of(
    folder: Path, *, operators: int = 0, kind: Any = "wheel", taps: tuple[Any, ...] = (), **cell: Any
) -> dict[str, int]:
    """Return the limits of the files of a session, by name, for an export with so many delegated operators."""
    context, session = a_farm_context(folder, ""), a_session(**cell)
    export = replace(context.export, delegated=[{"operator": "linear", "count": operators}] if operators else [])
    export = replace(export, case=replace(export.case, taps=list(taps)))
    return file_limits(session, export, replace(context.runner, kind=kind))


@pytest.mark.parametrize(
    ("kind", "mode", "more"),
    [
        ("registered", "timing", set()),
        ("wheel", "timing", {"stats.json"}),
        ("wheel", "profile", {"stats.json", "kernel_profile.json"}),
        ("wheel", "counts", {"stats.json", "kernel_counts.json"}),
    ],
)
def test_a_runner_may_leave_only_the_files_of_its_mode(tmp_path: Path, kind: str, mode: str, more: set[str]) -> None:
    limits = limits_of(tmp_path, kind=kind, mode=mode)
    assert limits.keys() == {"stdout.txt", "stderr.txt", "model.etdump", "output-0.bin"} | more
    # then there is room for what a good runner writes, and outputs have the sizes of their references
    assert all(limits[name] >= 1 << 20 for name in limits if name != "output-0.bin")
    assert limits["output-0.bin"] == 4
    # and the values inside a model follow its outputs
    limits = limits_of(tmp_path / "taps", taps=({"file": "model.pte"}, {"file": "output-0.bin"}))
    assert limits["output-1.bin"] == (tmp_path / "taps" / "export" / "model.pte").stat().st_size
    # and with many operators there is room for events of 100 bytes, two of each, but never without bound
    large, endless = (limits_of(tmp_path / str(n), executions=n, operators=20_000) for n in (10, 10**9))
    assert 100 * 10 * (2 * 20_000 + 5) < large["model.etdump"] <= max(endless.values()) <= 1 << 30


def test_files_are_collected_each_on_its_own(tmp_path: Path) -> None:
    # given a device with a log, and the files that came with the result of its job
    device = LocalDevice("local", str(tmp_path))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "output-0.bin").write_bytes(b"1234")
    for name in ("stderr.txt", "output-1.bin"):
        (tmp_path / "run" / name).write_bytes(b"12345")
    sent = {"model.etdump": b"12345", "stats.json": b"1234", "stdout.txt": None}
    names = ["model.etdump", "gone", "output-0.bin", "output-1.bin", "stats.json", "stderr.txt", "stdout.txt"]
    limits = dict.fromkeys(names, 4)
    for mode, kept in (("timing", {"stderr.txt"}), ("trace", set[str]())):
        to = tmp_path / mode
        to.mkdir()
        # when they are collected
        refused = collect_files(device, f"{tmp_path}/run", limits, sent, to, mode)
        # then those within their limits are there, and each of the others has its reason, except a log that is cut
        assert {path.name for path in to.iterdir()} == {"output-0.bin", "stats.json"} | kept
        assert [each.code for each in refused] == ["file_refused", "wrong_output"] + ["file_refused"] * (not kept)
