"""The runner's program: its flags, its outputs and its errors."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tasks.etdump.reader import read_etdump
from tests.fixtures.runner import Program, assert_close, stats_of

pytestmark = pytest.mark.torch

FLAGS = """
model_path method_name num_executions cpu_threads inputs output_file print_output input_shapes setup_method setup_inputs
setup_input_shapes data_path output_execution untraced_executions memory_reads
etdump_path stats_path calibrate version sme2 kernel_profile_path
"""


def test_outputs_are_those_of_eager_pytorch(run: Program, models: Path, model: str, tmp_path: Path) -> None:
    flags = [f"--inputs={models / 'convolved-input.bin'}", f"--output_file={tmp_path / 'output'}"]
    assert run(model, *flags, "--num_executions=3").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output-0.bin", "output-1.bin"]
    for number in range(2):
        assert_close(tmp_path / f"output-{number}.bin", models / f"convolved-output-{number}.bin")


@pytest.mark.parametrize("executions", [1, 7, 1000])
def test_every_execution_is_one_run_in_the_etdump(run: Program, model: str, tmp_path: Path, executions: int) -> None:
    execution_ns = run.stats(tmp_path, model, "--num_executions", executions)["execution_ns"]
    read = read_etdump(tmp_path / "model.etdump")
    assert (read.executions, len(execution_ns)) == (executions, executions)
    # The clock around an execution measures at least the time that the runtime records.
    assert np.all(read.execute_ns <= execution_ns)
    assert {"Method::execute", "native_call_cumsum.out"} <= set(read.names)


def test_stats_have_times_memory_and_exit_reason(run: Program, model: str, tmp_path: Path) -> None:
    stats = run.stats(tmp_path, model, "--num_executions=4", "--cpu_threads=1")
    assert stats["load_ns"] > 0
    assert all(ns > 0 for ns in stats["execution_ns"])
    assert 1 << 20 < stats["model_peak_memory_bytes"] <= stats["peak_memory_bytes"] < 1 << 27
    assert (stats["sme2_requested"], stats["exit_reason"]) == (None, "ok")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_requested_threads_are_used(run: Program, model: str, tmp_path: Path, threads: int) -> None:
    stats = run.stats(tmp_path, model, "--cpu_threads", threads)
    assert (stats["threads_requested"], stats["threads_used"]) == (threads, threads)


def test_inputs_left_out_are_the_same_pattern_every_time(run: Program, model: str, tmp_path: Path) -> None:
    for name in "first", "second":
        assert run(model, f"--output_file={tmp_path / name}").code == 0
    first = (tmp_path / "first-0.bin").read_bytes()
    assert first == (tmp_path / "second-0.bin").read_bytes()
    assert len(set(first)) > 10


def test_outputs_are_printed_in_full_in_part_or_not_at_all(run: Program, model: str) -> None:
    everything, some = run(model, "--print_output=all").out, run(model, "--print_output", "summary").out
    assert everything.startswith("Output 0: tensor(sizes=[1, 32], [")
    assert len(everything) > len(some) > 0
    assert "..." in some
    assert run(model, "--print_output=none").out == ""


def test_the_version_is_json(run: Program) -> None:
    version = json.loads(run("--version").out)
    assert set(version) == {"runner_version", "executorch_version", "platform", "sme_hardware", "sme2_hardware"}


def test_the_calibration_load_needs_no_model_and_prints_its_time_in_nanoseconds(run: Program) -> None:
    ended = run("--calibrate")
    assert (ended.code, ended.err) == (0, "")
    # A fixed amount of work: far below 1 ms, the compiler would have dropped it.
    assert int(ended.out) > 5_000_000


def test_the_help_names_every_flag(run: Program) -> None:
    ended = run("--help")
    assert ended.code == 0
    assert set(FLAGS.split()) <= set(re.findall(r"^  --(\w+)", ended.out, re.MULTILINE))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--bad=1"], "unknown flag '--bad=1'"),
        (["stray"], "unknown flag 'stray'"),
        (["--num_executions"], "--num_executions needs a value"),
        (["--num_executions=0"], "at least 1, not '0'"),
        (["--num_executions=2x"], "must be an integer of at least 1, not '2x'"),
        (["--cpu_threads=0"], "--cpu_threads must be -1 (one thread per fast core) or from 1 to 1024, not '0'"),
        (["--cpu_threads=1025"], "or from 1 to 1024, not '1025'"),
        (["--print_output=loud"], "--print_output must be one of all, none, summary, not 'loud'"),
        (["--sme2=maybe"], "--sme2 must be one of off, on, sme1, not 'maybe'"),
        (["--model_path=again.pte"], "duplicate flag --model_path; remove one"),
        (["--method_name=backward"], "unknown method 'backward' of "),
        (["--method_name=backward"], "; use one of forward"),
        (["--inputs=/nowhere/a.bin"], "cannot read input /nowhere/a.bin: No such file or directory"),
        (["--inputs=a.bin,b.bin"], "has 1 inputs that are tensors, but --inputs lists 2 files"),
        (["--input_shapes=1x3x16x16,scalar"], "has 1 inputs that are tensors, but --input_shapes lists 2"),
        (["--input_shapes=1x3x8x8"], "input 0 of method 'forward' has the static shape 1x3x16x16, but --input_shapes"),
        (["--input_shapes=1x3x16x17"], "can be at most 1x3x16x16, with as many dimensions, but --input_shapes"),
        (["--input_shapes=scalar"], "with as many dimensions, but --input_shapes gives scalar"),
        (["--input_shapes=1x3x"], "--input_shapes must list shapes such as 1x3x64 or scalar, not '1x3x'"),
        (["--input_shapes=1x-3"], "--input_shapes must list shapes such as 1x3x64 or scalar, not '1x-3'"),
        (["--setup_inputs=a.bin"], "--setup_inputs needs --setup_method"),
        (["--untraced_executions=2"], "--untraced_executions needs --etdump_path"),
        (["--data_path=/nowhere/a.ptd"], "cannot read data /nowhere/a.ptd: No such file or directory"),
        (["--setup_input_shapes=1"], "--setup_input_shapes needs --setup_method"),
        (["--setup_method=fill"], "unknown method 'fill' of "),
        (["--setup_method=forward", "--setup_inputs=/nowhere/a.bin,b.bin"], "cannot read input /nowhere/a.bin"),
        (["--output_execution=2"], "--output_execution must be at most --num_executions, which is 1"),
    ],
)
def test_a_wrong_flag_is_one_line_and_exit_code_2(run: Program, model: str, flags: list[str], message: str) -> None:
    ended = run(model, *flags)
    assert message in ended.sentence()
    assert ended.sentence().startswith("executor_runner: ")
    assert ended.out == ""


def test_a_model_path_is_required(run: Program) -> None:
    assert run("--num_executions=2").sentence() == "executor_runner: --model_path is missing"


def test_an_input_of_the_wrong_size_is_refused(run: Program, models: Path, model: str) -> None:
    sentence = run(model, f"--inputs={models / 'convolved-output-0.bin'}").sentence()
    assert "input 0 of method 'forward' needs 3072 bytes for its shape 1x3x16x16" in sentence
    assert "has 128" in sentence


@pytest.mark.parametrize("size", ["32x32", "7x9"])
def test_a_dynamic_input_has_the_given_shape(run: Program, models: Path, tmp_path: Path, size: str) -> None:
    inputs = f"--inputs={models / f'resized-{size}-input.bin'},{models / 'resized-factor.bin'}"
    shapes = f"--input_shapes=1x3x{size},scalar"
    flags = [inputs, shapes, "--num_executions=2", f"--output_file={tmp_path / 'output'}"]
    run.stats(tmp_path, f"--model_path={models / 'resized.pte'}", *flags)
    assert_close(tmp_path / "output-0.bin", models / f"resized-{size}-output.bin")


def test_a_dynamic_input_has_the_largest_shape_by_default_and_its_file_must_match(run: Program, models: Path) -> None:
    model = f"--model_path={models / 'resized.pte'}"
    assert run(model).out.startswith("Output 0: tensor(sizes=[1, 4, 30, 30]")
    inputs = f"--inputs={models / 'resized-32x32-input.bin'},{models / 'resized-factor.bin'}"
    ended = run(model, inputs, "--input_shapes=1x3x7x9,scalar")
    assert "input 0 of method 'forward' needs 756 bytes for its shape 1x3x7x9, but " in ended.sentence()


def test_a_setup_fills_the_state_and_is_not_measured(run: Program, models: Path, tmp_path: Path) -> None:
    case = [f"--model_path={models / 'kept.pte'}", "--method_name=change", f"--inputs={models / 'kept-change.bin'}"]
    case += ["--num_executions=3", f"--output_file={tmp_path / 'output'}"]
    # given a method that doubles a state, which is zero without a setup
    assert run.stats(tmp_path, *case)["setup_ns"] is None
    assert np.fromfile(tmp_path / "output-0.bin", np.float32).tolist() == [14, 0, 0, 0]
    # when another method fills it first
    stats = run.stats(tmp_path, *case, "--setup_method=fill", f"--setup_inputs={models / 'kept-fill.bin'}")
    # then the outputs have it, and only the measured executions are recorded
    assert np.fromfile(tmp_path / "output-0.bin", np.float32).tolist() == [14, 4, 6, 8]
    read = read_etdump(tmp_path / "model.etdump")
    assert (read.executions, read.loaded_methods) == (3, 1)
    assert stats["setup_ns"] > 0
    assert len(stats["execution_ns"]) == 3
    assert np.all(read.execute_ns <= stats["execution_ns"])
    # and of several inputs of the setup, the last one is left
    np.zeros(4, np.float32).tofile(tmp_path / "zeros.bin")
    run.stats(tmp_path, *case, "--setup_method=fill", f"--setup_inputs={models / 'kept-fill.bin'},{tmp_path}/zeros.bin")
    assert np.fromfile(tmp_path / "output-0.bin", np.float32).tolist() == [14, 0, 0, 0]


def test_outputs_may_be_those_of_a_later_execution_and_repeat_or_not(
    run: Program, models: Path, tmp_path: Path
) -> None:
    # given a model whose output is false at first, and true from the second execution on
    case = [f"--model_path={models / 'grown.pte'}", f"--inputs={models / 'grown-input.bin'}"]
    assert run(*case, "--num_executions=2").out == "Output 0: false\n"
    assert run(*case, "--num_executions=2", "--output_execution=2").out == "Output 0: true\n"
    repeats = [run.stats(tmp_path, *case, f"--num_executions={count}")["outputs_repeat"] for count in (1, 2)]
    assert repeats == [True, False]


@pytest.mark.parametrize("length", [0, 10, 1000, 100_000])
def test_a_truncated_model_is_refused(run: Program, models: Path, tmp_path: Path, length: int) -> None:
    cut = tmp_path / "cut.pte"
    cut.write_bytes((models / "convolved.pte").read_bytes()[:length])
    sentence = run(f"--model_path={cut}", f"--stats_path={tmp_path / 'stats.json'}").sentence()
    assert f"{cut} is not a program that can be loaded" in sentence
    assert stats_of(tmp_path / "stats.json")["exit_reason"] == sentence.removeprefix("executor_runner: ")


def test_a_file_that_is_not_a_model_and_a_folder_are_refused(run: Program, tmp_path: Path) -> None:
    (tmp_path / "not a model").write_bytes(b"\xfa\x84\xff\x01" * 500)
    for path in (tmp_path / "not a model", tmp_path):
        assert str(path) in run(f"--model_path={path}").sentence()


@pytest.mark.parametrize("case", ["--inputs={}", "--setup_method=forward --setup_inputs={}"], ids=["model", "setup"])
def test_a_model_or_a_setup_that_fails_ends_with_exit_code_1_and_leaves_no_etdump(
    run: Program, models: Path, tmp_path: Path, case: str
) -> None:
    np.full(3, 10, np.int64).tofile(tmp_path / "beyond.bin")
    ended = run(
        f"--model_path={models / 'lookup.pte'}",
        *case.format(tmp_path / "beyond.bin").split(),
        f"--etdump_path={tmp_path / 'model.etdump'}",
        f"--stats_path={tmp_path / 'stats.json'}",
    )
    assert "method 'forward' failed" in ended.sentence(1)
    assert ended.out == ""
    stats = stats_of(tmp_path / "stats.json")
    assert stats["execution_ns"] == []
    assert "method 'forward' failed" in stats["exit_reason"]
    assert not (tmp_path / "model.etdump").exists()


def test_sme2_is_refused_without_sme2_and_can_be_off_everywhere(run: Program, model: str, tmp_path: Path) -> None:
    stats = run.stats(tmp_path, model, "--sme2", "off")
    assert (stats["sme2_requested"], stats["sme2_reported"]) == ("off", False)
    if json.loads(run("--version").out)["sme2_hardware"]:
        pytest.skip("this machine has SME2")
    ended = run(model, "--sme2=on", f"--stats_path={tmp_path / 'stats.json'}")
    assert "does not support SME2" in ended.sentence()
    stats = stats_of(tmp_path / "stats.json")
    assert (stats["sme2_requested"], stats["sme2_hardware"], stats["sme2_reported"]) == ("on", False, False)


def test_a_kernel_profile_counts_every_sample_once(run: Program, model: str, tmp_path: Path) -> None:
    path = tmp_path / "kernels.json"
    assert run(model, "--num_executions=20000", "--print_output=none", f"--kernel_profile_path={path}").code == 0
    profile = json.loads(path.read_text())
    named = sum(kernel["samples"] for kernel in profile["kernels"])
    unnamed = sum(library["samples"] for library in profile["unresolved_libraries"])
    assert profile["samples"] == named + unnamed > 0
    assert (profile["unresolved"], profile["dropped"]) == (unnamed, 0)
    assert profile["threads"] >= 1
    assert profile["cpu_ns"] > 0
    assert any("xnnpack" in entry["library"] for entry in profile["kernels"] + profile["unresolved_libraries"])
    assert all(kernel["name"] for kernel in profile["kernels"])
