"""What is unusual about a model, a machine or a file does not make the runner's results wrong, and it never hangs."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tasks.etdump.reader import read_etdump
from tests.fixtures.program_builder import Signature, Tensor, Unknown, build_program
from tests.fixtures.runner import Program, assert_close, library_of, stats_of

pytestmark = pytest.mark.torch
OVER_2_GB = 100_000_000


@pytest.mark.thorough
def test_a_model_that_changes_its_state_is_compared_by_its_first_execution(
    run: Program, models: Path, tmp_path: Path
) -> None:
    # given a model that adds to what it returned before, and whose second input is a number
    flags = [f"--model_path={models / 'summed.pte'}", f"--inputs={models / 'summed-input.bin'}"]
    # when it is executed several times
    stats = run.stats(tmp_path, *flags, "--num_executions=5", f"--output_file={tmp_path / 'output'}")
    # then its outputs are those of the first time, and that later ones differ is said
    assert_close(tmp_path / "output-0.bin", models / "summed-output.bin", atol=1e-6)
    assert stats["outputs_repeat"] is False


def test_a_model_without_state_repeats_its_outputs(run: Program, model: str, tmp_path: Path) -> None:
    assert run.stats(tmp_path, model, "--num_executions=3")["outputs_repeat"] is True


def test_a_setup_by_the_measured_method_is_not_recorded(run: Program, models: Path, tmp_path: Path) -> None:
    # given a method that adds its input to what it returned before, and that fills its own state first
    example = models / "summed-input.bin"
    case = [f"--model_path={models / 'summed.pte'}", f"--inputs={example}", f"--output_file={tmp_path / 'output'}"]
    setup = ["--setup_method=forward", f"--setup_inputs={example}"]
    stats = run.stats(tmp_path, *case, *setup, "--num_executions=2", "--untraced_executions=1")
    # then only the two measured executions are recorded, and the first one begins with the filled state
    read = read_etdump(tmp_path / "model.etdump")
    assert (read.executions, read.loaded_methods, len(stats["execution_ns"])) == (2, 1, 2)
    once, twice = (np.fromfile(path, np.float32) for path in (models / "summed-output.bin", tmp_path / "output-0.bin"))
    np.testing.assert_allclose(twice, 2 * once, atol=1e-5)


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is for Linux")
def test_an_error_that_loading_recovered_from_is_not_the_cause_of_a_later_failure(
    run: Program, models: Path, tmp_path: Path
) -> None:
    # given a runtime that logs an error whenever it reads the model's file, and a model that fails
    log = "#include <executorch/runtime/platform/log.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
    read = 'ssize_t pread(int file, void* to, size_t bytes, off_t at) { ET_LOG(Error, "a harmless warning");'
    library = library_of(f'{log}extern "C" {read} return syscall(SYS_pread64, file, to, bytes, at); }}', tmp_path)
    np.full(3, 10, np.int64).tofile(tmp_path / "beyond.bin")
    noisy = replace(run, command=["env", f"LD_PRELOAD={library}", *run.command])
    case = [f"--model_path={models / 'lookup.pte'}", f"--inputs={tmp_path / 'beyond.bin'}"]
    assert "method 'forward' failed: Check failed (indices_ptr" in noisy(*case).sentence(1)
    # and the error is the cause where it was logged by the step that failed
    cut = tmp_path / "cut.pte"
    cut.write_bytes((models / "lookup.pte").read_bytes()[:1000])
    assert noisy(f"--model_path={cut}").sentence().endswith("a harmless warning")


# Beside letters of all lengths: a byte alone, a longer form of `/`, half of a pair, beyond the last, and a beginning.
@pytest.mark.parametrize("damaged", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_a_path_that_is_not_utf_8_leaves_valid_statistics(run: Program, tmp_path: Path, damaged: bytes) -> None:
    path = os.fsencode(tmp_path) + "/é€😀-".encode() + damaged
    run(os.fsdecode(b"--model_path=" + path), f"--stats_path={tmp_path / 'stats.json'}")
    reason = json.loads((tmp_path / "stats.json").read_bytes())["exit_reason"]
    name = "é€😀-" + len(damaged) * "\N{REPLACEMENT CHARACTER}"
    assert reason == f"cannot read model {tmp_path}/{name}: No such file or directory"


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is a device of Linux")
@pytest.mark.parametrize("flag", ["--version", "--help", "--calibrate", "--print_output=all"])
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


def test_an_input_that_is_neither_tensor_nor_number_is_refused(run: Program, tmp_path: Path) -> None:
    path = tmp_path / "symbolic.pte"
    path.write_bytes(build_program({"forward": Signature([Tensor(), Unknown()], [])}))
    assert run(f"--model_path={path}").sentence()


def test_the_memory_of_the_model_does_not_contain_its_etdump(run: Program, model: str, tmp_path: Path) -> None:
    def memory(executions: int) -> tuple[int, int]:
        stats = run.stats(tmp_path, model, f"--num_executions={executions}", "--print_output=none")
        return stats["model_peak_memory_bytes"], stats["peak_memory_bytes"]

    (model_one, _), (model_many, process_many) = memory(1), memory(20_000)
    etdump_bytes = (tmp_path / "model.etdump").stat().st_size
    assert process_many - model_many > etdump_bytes // 2
    assert abs(model_many - model_one) < etdump_bytes // 4


def test_an_etdump_that_would_be_too_large_is_refused_before_the_second_execution(
    run: Program, model: str, tmp_path: Path
) -> None:
    paths = [f"--etdump_path={tmp_path / 'model.etdump'}", f"--stats_path={tmp_path / 'stats.json'}"]
    ended = run(model, f"--num_executions={OVER_2_GB}", *paths)
    assert f"--num_executions={OVER_2_GB} needs an ETDump of over 2 GB" in ended.sentence()
    assert len(stats_of(tmp_path / "stats.json")["execution_ns"]) == 1
    assert not (tmp_path / "model.etdump").exists()


def test_executions_without_an_etdump_show_what_it_costs(run: Program, model: str, tmp_path: Path) -> None:
    stats = run.stats(tmp_path, model, "--num_executions=4", "--untraced_executions=3")
    assert (len(stats["execution_ns"]), len(stats["untraced_execution_ns"])) == (4, 3)
    assert all(ns > 0 for ns in stats["untraced_execution_ns"])


def test_memory_is_read_only_if_requested_and_not_as_a_part_of_the_model(
    run: Program, model: str, tmp_path: Path
) -> None:
    assert run.stats(tmp_path, model)["memory_read_bytes_per_s"] is None
    stats = run.stats(tmp_path, model, "--memory_reads=1", "--cpu_threads=2")
    # between the slowest memory of a phone on a busy machine and the caches of the largest server
    assert 10**8 < stats["memory_read_bytes_per_s"] < 10**13
    # the 256 MB that are read are not memory of the model
    assert stats["peak_memory_bytes"] < 1 << 27


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit is a program of Linux")
def test_more_threads_than_the_system_can_start_are_refused(run: Program, model: str) -> None:
    # given room for the stacks of some threads; only for this process, so that all others can start theirs
    prlimit = shutil.which("prlimit") or pytest.skip("no prlimit")
    ended = replace(run, command=[prlimit, "--as=2000000000", *run.command])(model, "--cpu_threads=1000")
    assert "--cpu_threads=1000 is not possible: this system starts at most " in ended.sentence()


def test_a_pipe_is_refused_without_waiting_for_it(run: Program, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "pipe: it is not a regular file" in run(f"--model_path={tmp_path / 'pipe'}").sentence()


def test_the_standard_output_is_written_to_and_stays_what_it_is(run: Program, model: str, tmp_path: Path) -> None:
    # given the standard output as a link, as /dev/stdout is, that leads to a pipe here
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    ended = run(model, "--print_output=none", f"--stats_path={tmp_path / 'stdout'}")
    assert ended.code == 0
    assert json.loads(ended.out)["exit_reason"] == "ok"
    assert (tmp_path / "stdout").readlink() == Path("/proc/self/fd/1")


def test_what_a_link_points_to_is_written(run: Program, model: str, tmp_path: Path) -> None:
    (tmp_path / "real.json").touch()
    (tmp_path / "link.json").symlink_to("real.json")
    (tmp_path / "lost.json").symlink_to("nothing.json")
    assert run(model, f"--stats_path={tmp_path / 'link.json'}").code == 0
    assert (tmp_path / "link.json").is_symlink()
    assert stats_of(tmp_path / "real.json")["exit_reason"] == "ok"
    assert "it is a link to nothing; remove it" in run(model, f"--stats_path={tmp_path / 'lost.json'}").sentence(1)


def test_a_program_that_crashes_executorch_is_distinguished_from_a_killed_runner(run: Program, models: Path) -> None:
    # given a program whose output is a value that it does not have
    ended = run(f"--model_path={models / 'damaged.pte'}")
    # then the runner ends with the signal, and says what it was doing
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


def test_a_device_is_written_to_and_not_replaced_by_a_file(run: Program, model: str, tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    assert "No space left on device" in run(model, f"--etdump_path={tmp_path / 'full'}").sentence(1)
    assert (tmp_path / "full").is_symlink()


def test_a_path_that_cannot_be_written_is_reported(run: Program, model: str) -> None:
    for flag in "--etdump_path", "--stats_path", "--kernel_profile_path":
        sentence = run(model, f"{flag}=/nowhere/file").sentence(1)
        assert sentence == "executor_runner: cannot write /nowhere/file: No such file or directory"
