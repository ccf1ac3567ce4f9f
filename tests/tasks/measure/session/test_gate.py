"""Poison in the files of a session: it ends with the name of what is wrong, and the next one runs."""

import json
import resource
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.analyse.load.load import load_paths
from tasks.bundle.record import SessionRecord
from tasks.measure.session import logs, measure
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.plans import NIGHT
from tests.fixtures.stand_in import GOOD, OPERATOR, a_bench, a_session, etdump_of, farm_bench, measured

GOOD_STATS = {
    "runner_version": "1", "load_ns": 5, "execution_ns": [1, 2, 3], "peak_resident_bytes": 9, "threads_requested": 1,
    "threads_used": 1, "sme2_requested": "off", "sme2_hardware": False, "sme2_told": False, "exit_reason": "ok",
}  # fmt: skip


def changed(**changes: object) -> str:
    """The statistics of a good runner as JSON, with these changes."""
    return json.dumps(GOOD_STATS | changes)


def writes(folder: Path, variable: str, content: str) -> str:
    """A script that succeeds and writes the content to the path of a flag."""
    (folder / "content").write_text(content, encoding="utf-8")
    return f'cp {shlex.quote(str(folder / "content"))} "${variable}"\n{GOOD}'


def loaded(folder: Path, record: SessionRecord) -> int:
    """How many bundles a load takes; it refuses none."""
    result = load_paths([folder / "bundles"], folder / "warehouse.duckdb")
    assert result.refused == []
    return result.loaded


def test_the_statistics_of_a_good_runner_are_kept_and_loaded(tmp_path: Path) -> None:
    # given a runner that states what this farm does not know yet
    stated = GOOD_STATS | {"unknown": {"to": ["us"]}}
    bench = farm_bench(tmp_path, writes(tmp_path, "stats", json.dumps(stated)))
    # when it was measured, then all that it stated is in the bundle, which can be loaded
    record = measured(tmp_path, bench)
    assert record.status == "succeeded"
    assert record.stats
    assert record.stats.model_dump(exclude_none=True) == stated
    assert loaded(tmp_path, record) == 1


@pytest.mark.fault(
    stage="check", done="stats.json has {what}", holds="the session fails with the field's name and is not repeated"
)
@pytest.mark.parametrize(
    ("what", "content", "field"),
    [
        ("a negative load_ns", changed(load_ns=-1), "`load_ns`"),
        ("a load_ns of 2^70", changed(load_ns=2**70), "`load_ns`"),
        ("load_ns as text", changed(load_ns="fast"), "`load_ns`"),
        ("load_ns as null", changed(load_ns=None), "`load_ns` is missing or null"),
        ("load_ns as NaN", '{"load_ns": NaN, "threads_used": 1}', "`load_ns`"),
        ("load_ns as a fraction", changed(load_ns=1.5), "`load_ns`"),
        ("threads_used as text", changed(threads_used="1"), "`threads_used`"),
        ("no threads_used", '{"load_ns": 5}', "`threads_used`"),
        ("a negative execution", changed(execution_ns=[1, -2]), "`execution_ns.1`"),
        ("a lone surrogate", changed(exit_reason="lone \ud800"), "hex escape"),
        ("an unknown key nested 100,000 deep", changed()[:-1] + ', "deep": ' + "[" * 100_000, "recursion limit"),
        ("100,000 brackets", "[" * 100_000, "recursion limit"),
        ("no keys", "{}", "`load_ns`"),
        ("a list", "[]", "object"),
        ("nothing", "", "EOF"),
    ],
)
def test_statistics_that_do_not_match_their_schema_fail_the_session(
    tmp_path: Path, what: str, content: str, field: str
) -> None:
    bench = farm_bench(tmp_path, writes(tmp_path, "stats", content))
    record = measured(tmp_path, bench)
    # then the session failed with the name of the file and the field, nothing is left to collect, and it is loaded
    assert (record.status, record.reason_code) == ("failed", "bad_stats")
    assert str(record.reason).startswith("stats.json")
    assert field in str(record.reason)
    assert len(str(record.reason)) < 500
    assert bench.device.collected == [str(folder) for folder in (tmp_path / "root" / "sessions").iterdir()]
    assert loaded(tmp_path, record) == 1


@pytest.mark.fault(stage="check", done="a kernel profile is nested", holds="the session fails with the file's name")
@pytest.mark.parametrize("content", ["[" * 100_000, "{}", '{"samples": -1}'])
def test_a_profile_that_the_load_would_refuse_fails_the_session(tmp_path: Path, content: str) -> None:
    stats = writes(tmp_path, "stats", changed())
    (tmp_path / "profile").write_text(content, encoding="utf-8")
    bench = farm_bench(tmp_path, f'cp {shlex.quote(str(tmp_path / "profile"))} "$profile"\n{stats}')
    session = a_session()
    record = measured(tmp_path, bench, replace(session, cell=replace(session.cell, mode="profile")))
    assert (record.status, record.reason_code) == ("failed", "not_loadable")
    assert "kernel_profile.json: not a kernel profile" in str(record.reason)
    assert str(tmp_path) not in str(record.reason)
    assert loaded(tmp_path, record) == 1


def test_a_session_for_selected_kernels_needs_their_list(tmp_path: Path) -> None:
    bench = farm_bench(tmp_path, writes(tmp_path, "stats", changed()))
    session = a_session()
    record = measured(tmp_path, bench, replace(session, cell=replace(session.cell, mode="selected")))
    assert (record.status, record.reason_code) == ("failed", "no_kernels")
    assert "did not write selected_kernels.json" in str(record.reason)


@pytest.mark.fault(stage="pull", done="the runner leaves {left} as {name}", holds="the session fails with its name")
@pytest.mark.parametrize(
    ("name", "left", "code"),
    [
        ("model.etdump", "a link to an endless file", "file_refused"),
        ("model.etdump", "a sparse file of 1 TB", "file_refused"),
        ("model.etdump", "a folder", "file_refused"),
        ("model.etdump", "a pipe", "file_refused"),
        ("output-0.bin", "a link to an endless file", "wrong_output"),
        ("output-0.bin", "a sparse file of 1 TB", "wrong_output"),
        ("stats.json", "a link to an endless file", "file_refused"),
        ("stats.json", "a sparse file of 1 TB", "file_refused"),
        ("stderr.txt", "a link to an endless file", "file_refused"),
    ],
)
def test_a_file_that_is_too_large_or_not_a_file_fails_its_session_alone(
    tmp_path: Path, name: str, left: str, code: str
) -> None:
    # given a runner that leaves such a file
    make = {
        "a link to an endless file": "ln -s /dev/zero",
        "a sparse file of 1 TB": "truncate -s 1T",
        "a folder": "mkdir",
        "a pipe": "mkfifo",
    }[left]
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stats = writes(tmp_path, "stats", changed())
    bench = farm_bench(tmp_path, f'{stats} name="${{etdump%/*}}/{name}"; rm -f "$name"; {make} "$name"\n')
    record = measured(tmp_path, bench)
    # then that session failed with the file's name, little was in memory, and nothing is left on the device
    assert (record.status, record.reason_code) == ("failed", code)
    assert f"{name} " in str(record.reason)
    assert name not in record.files
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 64 << 10
    assert bench.device.collected == [str(folder) for folder in (tmp_path / "root" / "sessions").iterdir()]


@pytest.mark.fault(stage="pull", done="a runner crashes after it left a huge file", holds="the crash is the reason")
def test_a_crash_is_reported_rather_than_the_file_that_it_left(tmp_path: Path) -> None:
    record = measured(tmp_path, a_bench(tmp_path, 'truncate -s 1T "$etdump"; kill -SEGV $$\n'))
    assert record.reason_code == "runner_crashed"


@pytest.mark.fault(stage="pull", done="a runner prints 40 MB to each stream", holds="logs are cut and it succeeds")
def test_a_long_log_is_cut_with_a_line_that_states_it(tmp_path: Path) -> None:
    noise = "echo begin; head -c 40000000 /dev/zero; echo end; "
    record = measured(tmp_path, a_bench(tmp_path, f"{{ {noise} }} | tee /dev/stderr\n{GOOD}"))
    assert record.status == "succeeded", record.reason
    for name in ("stdout.txt", "stderr.txt"):
        log = (tmp_path / "bundles" / NIGHT.sweep_id / record.session_id / name).read_bytes()
        assert log.startswith(b"begin\n")
        assert log.endswith(b"end\n")
        assert b"\n[etfarm: this log has more than 16777216 bytes; its middle was cut here]\n" in log
        assert len(log) < logs.LIMIT_BYTES + 200


@pytest.mark.fault(stage="check", done="an output is NaN where eager is finite", holds="the session fails")
def test_an_output_that_is_not_a_number_is_a_wrong_output(tmp_path: Path) -> None:
    script = 'cp "$model" "$etdump"; printf "\\0\\0\\300\\177" >"$output-0.bin"\n'
    record = measured(tmp_path, a_bench(tmp_path, script))
    assert (record.status, record.reason_code) == ("failed", "wrong_output")
    assert "output 0 is NaN or infinite in 1 of 1 elements" in str(record.reason)


@pytest.mark.fault(stage="check", done="the runner's clock stands still", holds="the session fails, not its load")
def test_an_etdump_that_the_load_would_refuse_fails_the_session(tmp_path: Path) -> None:
    runs = [Run([Profile(text=OPERATOR, start=0, end=0, instruction=1), Profile(name=METHOD, start=0, end=0)])] * 3
    record = measured(tmp_path, a_bench(tmp_path, GOOD, build_etdump(runs)))
    assert (record.status, record.reason_code) == ("failed", "bad_etdump")
    assert "every measured execution lasts 0 ns" in str(record.reason)


@pytest.mark.fault(
    stage="check", done="an unforeseen error in a session", holds="it ends as failed and is not repeated"
)
def test_an_unforeseen_error_ends_that_session_with_its_class_and_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # given a step that fails in a way that nobody foresaw
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("lone \ud800\nand more")

    monkeypatch.setattr(measure, "check_result", fail)
    bench = a_bench(tmp_path, GOOD)
    record = measured(tmp_path, bench)
    # then there is a bundle with the reason and the trace, the log has the sentence, and no job is left to collect
    assert (record.status, record.reason_code) == ("failed", "farm_error")
    assert "unexpected error (ZeroDivisionError: lone ? and more)" in str(record.reason)
    trace = tmp_path / "bundles" / NIGHT.sweep_id / record.session_id / "farm_error.txt"
    assert b"in fail\n" in trace.read_bytes()
    assert "ZeroDivisionError: lone" in caplog.text
    assert "Traceback" not in caplog.text
    assert bench.device.collected == [str(folder) for folder in (tmp_path / "root" / "sessions").iterdir()]
    assert loaded(tmp_path, record) == 1


@pytest.mark.fault(stage="check", done="a record does not match its schema", holds="the session fails with the field")
def test_a_record_that_the_load_would_refuse_fails_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given facts that no column of the warehouse can hold
    bench = a_bench(tmp_path, GOOD)
    record = measured(tmp_path, replace(bench, facts=bench.facts.model_copy(update={"cores": 2**70})))
    assert (record.status, record.reason_code) == ("failed", "not_loadable")
    assert "`device.facts.cores`" in str(record.reason)
    assert loaded(tmp_path, record) == 1


def test_an_etdump_of_many_executions_passes_the_gate(tmp_path: Path) -> None:
    session = a_session()
    session = replace(session, cell=replace(session.cell, executions=5000))
    record = measured(tmp_path, a_bench(tmp_path, GOOD, etdump_of(5000)), session)
    assert record.status == "succeeded", record.reason
