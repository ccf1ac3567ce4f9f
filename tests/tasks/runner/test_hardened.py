"""What is unusual about a model, a machine or a file does not make the runner's results wrong, and it never hangs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.runner import Program, assert_close, stats_of

pytestmark = pytest.mark.torch
OVER_2_GB = 100_000_000


@pytest.mark.thorough
def test_a_changing_model_is_compared_by_its_first_execution(run: Program, models: Path, tmp_path: Path) -> None:
    # given a model that adds to what it returned before, and whose second input is a number
    flags = [f"--model_path={models / 'summed.pte'}", f"--inputs={models / 'summed-input.bin'}"]
    stats = run.stats(tmp_path, *flags, "--num_executions=5", f"--output_file={tmp_path / 'output'}")
    # then its outputs are those of the first time, and that later ones differ is said
    assert_close(tmp_path / "output-0.bin", models / "summed-output.bin", atol=1e-6)
    assert stats["outputs_repeat"] is False


# Beside letters of all lengths: a byte alone, a longer form of `/`, half of a pair, beyond the last, and a beginning.
@pytest.mark.parametrize("damaged", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_a_path_that_is_not_utf_8_leaves_valid_statistics(run: Program, tmp_path: Path, damaged: bytes) -> None:
    path = os.fsencode(tmp_path) + "/é€😀-".encode() + damaged
    run(os.fsdecode(b"--model_path=" + path), f"--stats_path={tmp_path / 'stats.json'}")
    reason = json.loads((tmp_path / "stats.json").read_bytes())["exit_reason"]
    name = "é€😀-" + len(damaged) * "\N{REPLACEMENT CHARACTER}"
    assert reason == f"cannot read model {tmp_path}/{name}: No such file or directory"


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is a device of Linux")
@pytest.mark.parametrize("flag", ["--version", "--print_output=all"])
def test_a_standard_output_that_is_full_is_reported(run: Program, model: str, flag: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [*run.command, model, flag]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.stderr == "executor_runner: cannot write to standard output: No space left on device\n"
    assert ended.returncode == 1


def test_weights_may_lie_outside_the_program(run: Program, models: Path, tmp_path: Path) -> None:
    flags = [f"--model_path={models / 'outside.pte'}", f"--inputs={models / 'outside-input.bin'}"]
    assert run(*flags).sentence().endswith("; its weights are outside of it: name their .ptd file as data")
    assert run(*flags, f"--data_path={models / 'outside.ptd'}", f"--output_file={tmp_path / 'output'}").code == 0
    assert_close(tmp_path / "output-0.bin", models / "outside-output.bin", atol=1e-6)


def test_the_memory_of_the_model_does_not_contain_its_etdump(run: Program, model: str, tmp_path: Path) -> None:
    def memory(executions: int) -> tuple[int, int]:
        stats = run.stats(tmp_path, model, f"--num_executions={executions}", "--print_output=none")
        return stats["model_peak_memory_bytes"], stats["peak_memory_bytes"]

    (model_one, _), (model_many, process_many) = memory(1), memory(10_000)
    etdump_bytes = (tmp_path / "model.etdump").stat().st_size
    assert process_many - model_many > etdump_bytes // 2
    assert abs(model_many - model_one) < etdump_bytes // 4


def test_an_etdump_that_would_be_too_large_is_refused_early(run: Program, model: str, tmp_path: Path) -> None:
    paths = [f"--etdump_path={tmp_path / 'model.etdump'}", f"--stats_path={tmp_path / 'stats.json'}"]
    ended = run(model, f"--num_executions={OVER_2_GB}", *paths)
    assert f"--num_executions={OVER_2_GB} needs an ETDump of over 2 GB" in ended.sentence()
    assert len(stats_of(tmp_path / "stats.json")["execution_ns"]) == 1
    assert not (tmp_path / "model.etdump").exists()


def test_memory_is_read_on_request_and_is_no_part_of_the_model(run: Program, model: str, tmp_path: Path) -> None:
    stats = run.stats(tmp_path, model, "--num_executions=4", "--untraced_executions=3")
    assert (stats["memory_read_bytes_per_s"], stats["outputs_repeat"]) == (None, True)
    # and executions without an ETDump, which show what it costs, are counted apart
    assert (len(stats["execution_ns"]), len(stats["untraced_execution_ns"])) == (4, 3)
    assert all(ns > 0 for ns in stats["untraced_execution_ns"])
    assert stats["read_speeds"] is None
    stats = run.stats(tmp_path, model, "--memory_reads=1", "--cache_reads=1", "--cpu_threads=2")
    # between the slowest memory of a phone on a busy machine and the caches of the largest server
    assert 10**8 < stats["memory_read_bytes_per_s"] < 10**13
    assert [speed["bytes"] for speed in stats["read_speeds"]] == [2**14 * 4**step for step in range(8)]
    assert all(10**8 < speed["bytes_per_s"] < 10**13 for speed in stats["read_speeds"])
    # the 256 MB that are read are not memory of the model
    assert stats["peak_memory_bytes"] < 1 << 27


def test_a_program_that_crashes_executorch_is_distinguished_from_a_killed_runner(run: Program, models: Path) -> None:
    # given a program whose output is a value that it does not have
    ended = run(f"--model_path={models / 'damaged.pte'}")
    assert ended.code == -signal.SIGABRT
    assert ended.err.splitlines()[-1] == "executor_runner: ExecuTorch crashed (SIGABRT) while it executed the model"


def test_a_full_disk_leaves_the_old_etdump_complete(run: Program, model: str, full_disk: Path) -> None:
    dump = full_disk / "model.etdump"
    assert run(model, f"--etdump_path={dump}").code == 0
    before = dump.read_bytes()
    ended = run(model, "--num_executions=3000", "--print_output=none", f"--etdump_path={dump}")
    assert (ended.code, ended.err) == (1, f"executor_runner: cannot write {dump}: No space left on device\n")
    assert [path.name for path in full_disk.iterdir()] == ["model.etdump"]
    assert dump.read_bytes() == before
