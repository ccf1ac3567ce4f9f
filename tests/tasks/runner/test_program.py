"""The runner's program: its flags, its outputs and its errors."""

import json
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from devices.platform import PLATFORM_FACTS
from tasks.bundle.failure_kinds import printed_kind
from tasks.etdump.reader import read_etdump
from tasks.runner.toolchain import host_platform
from tests.fixtures.runner import Program, assert_close, stats_of

pytestmark = pytest.mark.torch


def test_outputs_are_those_of_eager_pytorch(run: Program, models: Path, model: str, tmp_path: Path) -> None:
    flags = [f"--inputs={models / 'convolved-input.bin'}", f"--output_file={tmp_path / 'output'}"]
    assert run(model, *flags, "--num_executions=3").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output-0.bin", "output-1.bin"]
    for number in range(2):
        assert_close(tmp_path / f"output-{number}.bin", models / f"convolved-output-{number}.bin")


@pytest.mark.parametrize("executions", [1, 1000])
def test_every_execution_is_one_run_in_the_etdump(run: Program, model: str, tmp_path: Path, executions: int) -> None:
    stats = run.stats(tmp_path, model, "--num_executions", executions)
    execution_ns = stats["execution_ns"]
    read = read_etdump(tmp_path / "model.etdump")
    assert (read.executions, len(execution_ns)) == (executions, executions)
    # The clock around an execution measures at least the time that the runtime records.
    assert np.all(read.execute_ns <= execution_ns)
    assert {"Method::execute", "native_call_cumsum.out"} <= set(read.names)
    # and the statistics have times, memory and the exit reason
    assert min(stats["load_ns"], *execution_ns) > 0
    assert 1 << 20 < stats["model_peak_memory_bytes"] <= stats["peak_memory_bytes"] < 1 << 27
    assert (stats["sme2_requested"], stats["exit_reason"]) == (None, "ok")


@pytest.mark.parametrize("threads", [1, 3])
def test_the_requested_threads_are_used(run: Program, model: str, tmp_path: Path, threads: int) -> None:
    stats = run.stats(tmp_path, model, "--cpu_threads", threads)
    assert (stats["threads_requested"], stats["threads_used"]) == (threads, threads)


def test_options_of_a_backend_are_read_back_and_one_that_it_does_not_have_is_null(
    run: Program, model: str, tmp_path: Path
) -> None:
    stats = run.stats(tmp_path, model)
    assert (stats["load_mode"], stats["backend_options"]) == ("file", {})
    assert (stats["first_load_ns"], stats["cache_bytes"]) == (None, None)
    options = "XnnpackBackend:workspace_sharing_mode=1,weight_cache_enabled=true,no_such_key=1"
    stats = run.stats(tmp_path, model, f"--backend_options={options}", "--load_mode=mmap")
    returned = {"workspace_sharing_mode": 1, "weight_cache_enabled": True, "no_such_key": None}
    assert (stats["load_mode"], stats["backend_options"]) == ("mmap", {"XnnpackBackend": returned})
    assert 1 << 20 < stats["model_anonymous_bytes"] + stats["model_file_bytes"] < 1 << 27


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists mappings")
def test_memory_is_reported_before_and_after_the_load_and_the_run_with_the_largest_mappings(
    run: Program, model: str, tmp_path: Path
) -> None:
    stats = run.stats(tmp_path, model, "--load_mode=mmap", "--list_mappings", "--num_executions=3")
    # then memory grows from the start to the end, and none of it is in swap
    anonymous, of_files = (
        [stats[f"{moment}_{kind}_bytes"] for moment in ("start", "load", "model", "end")]
        for kind in ("anonymous", "file")
    )
    assert 0 < anonymous[0] < anonymous[1] <= anonymous[2]
    assert 0 < of_files[0] < of_files[1] <= of_files[2] <= of_files[3]
    # and the mappings are those of the first run, the largest first
    names = [each["name"] for each in stats["mappings"]]
    sizes = [each["resident_bytes"] for each in stats["mappings"]]
    assert {"program", "libexecutorch.so"} & set(names)
    assert len(names) <= 8
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) <= anonymous[2] + of_files[2] + (1 << 20)
    # and without the flag none are listed
    assert "mappings" not in run.stats(tmp_path, model)


def test_a_cache_on_disk_is_written_by_a_first_start_and_removed_at_the_end(
    run: Program, models: Path, model: str, tmp_path: Path
) -> None:
    # given a backend that keeps packed weights in a file
    cache = tmp_path / "packed.cache"
    options = f"--backend_options=XnnpackBackend:weight_cache_enabled=true,packed_cache_path={cache}"
    flags = [options, f"--cache_file={cache}", f"--inputs={models / 'convolved-input.bin'}", "--num_executions=3"]
    stats = run.stats(tmp_path, model, *flags, "--untraced_executions=2", f"--output_file={tmp_path / 'output'}")
    # then the second start is measured, the first one has its own figures, and the outputs are right
    assert stats["cache_bytes"] > 16 * 14 * 14 * 32 * 4  # the weights of its linear layer
    assert min(stats["first_load_ns"], stats["first_peak_memory_bytes"]) > 0
    assert len(stats["execution_ns"]) == 3
    assert_close(tmp_path / "output-0.bin", models / "convolved-output-0.bin")
    assert not cache.exists()
    # and without the flag the file stays, which a second process reads
    assert run(model, *flags[:1]).code == 0
    assert cache.exists()
    # and a start that fails is one sentence, and so is one that crashes, without a file
    cache.unlink()
    assert "unknown method 'nope'" in run(model, *flags[:2], "--method_name=nope").sentence()
    crashed = run(f"--model_path={models / 'damaged.pte'}", *flags[:2])
    assert crashed.code == -signal.SIGABRT
    assert crashed.err.count("while it executed the model") == 1
    assert not cache.exists()


def test_a_cache_that_the_first_start_cannot_complete_is_no_second_start(
    run: Program, model: str, tmp_path: Path
) -> None:
    # given a limit of files, in blocks of 512 bytes, that leaves no space for the index after the packed weights
    cache = tmp_path / "packed.cache"
    options = f"--backend_options=XnnpackBackend:weight_cache_enabled=true,packed_cache_path={cache}"
    limited = Program(["sh", "-c", 'ulimit -f 800; exec "$@"', "sh", *run.command])
    assert "the second start wrote the cache again" in limited(model, options, f"--cache_file={cache}").sentence(1)
    assert not cache.exists()


def test_the_calibration_load_needs_no_model_and_prints_its_time_in_nanoseconds(run: Program) -> None:
    ended = run("--calibrate")
    assert (ended.code, ended.err) == (0, "")
    # A fixed amount of work: far below 1 ms, the compiler would have dropped it.
    assert int(ended.out) > 5_000_000


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--bad=1"], "unknown flag '--bad=1'"),
        (["--num_executions"], "--num_executions needs a value"),
        (["--num_executions=0"], "at least 1, not '0'"),
        (["--cpu_threads=0"], "--cpu_threads must be -1 (one thread per fast core) or from 1 to 1024, not '0'"),
        (["--cpu_threads=1025"], "or from 1 to 1024, not '1025'"),
        (["--print_output=loud"], "--print_output must be one of all, none, summary, not 'loud'"),
        (["--sme2=maybe"], "--sme2 must be one of off, on, sme1, not 'maybe'"),
        (["--model_path=again.pte"], "duplicate flag --model_path; remove one"),
        (["--method_name=backward"], "unknown method 'backward' of "),
        (["--inputs=/nowhere/a.bin"], "cannot read input /nowhere/a.bin: No such file or directory"),
        (["--inputs=a.bin,b.bin"], "has 1 inputs that are tensors, but --inputs lists 2 files"),
        (["--input_shapes=1x3x16x16,scalar"], "has 1 inputs that are tensors, but --input_shapes lists 2"),
        (["--input_shapes=1x3x8x8"], "input 0 of method 'forward' has the static shape 1x3x16x16, but --input_shapes"),
        (["--input_shapes=1x3x16x17"], "can be at most 1x3x16x16, with as many dimensions, but --input_shapes"),
        (["--input_shapes=1x-3"], "--input_shapes must list shapes such as 1x3x64 or scalar, not '1x-3'"),
        (["--setup_inputs=a.bin"], "--setup_inputs needs --setup_method"),
        (["--untraced_executions=2"], "--untraced_executions needs --etdump_path"),
        (["--data_path=/nowhere/a.ptd"], "cannot read data /nowhere/a.ptd: No such file or directory"),
        (["--setup_method=fill"], "unknown method 'fill' of "),
        (["--setup_method=forward", "--setup_inputs=/nowhere/a.bin,b.bin"], "cannot read input /nowhere/a.bin"),
        (["--load_mode=lazy"], "one of file, mmap, mmap_madvise, mmap_mlock, mmap_try_mlock, not 'lazy'"),
        (["--backend_options=XnnpackBackend"], "must list options such as XnnpackBackend:key=true,other=1, not 'Xnn"),
        (["--backend_options=Xnn:k=1,k=2"], "--backend_options: duplicate key k"),
        (["--backend_options=Xnn:key=1"], "this runner does not have the backend Xnn"),
        ([f"--backend_options=Xnn:{'k' * 64}=1"], "has more than 63 characters"),
        ([f"--backend_options=Xnn:k={'v' * 256}"], "the value of k has more than 255 characters"),
        (
            ["--backend_options=XnnpackBackend:workspace_sharing_mode=3"],
            "must be between 0 and 2, inclusive, but was 3",
        ),
        (["--backend_options=XnnpackBackend:weight_cache_enabled=3"], "weight cache enabled must be a bool"),
        (["--cache_file=/dev/null"], "--cache_file=/dev/null exists, but the first start must be without a cache"),
        (["--output_execution=2"], "--output_execution must be at most --num_executions, which is 1"),
    ],
)
def test_a_wrong_flag_is_one_line_and_exit_code_2(run: Program, model: str, flags: list[str], message: str) -> None:
    ended = run(model, *flags)
    assert message in ended.sentence()
    assert ended.sentence().startswith("executor_runner: ")
    assert ended.out == ""


def test_kernels_are_counted_only_where_they_have_slots(run: Program, model: str) -> None:
    if PLATFORM_FACTS[host_platform()].counts_kernels:
        pytest.skip("this machine can count them")
    refusal = "--kernel_counts_path is possible on Linux and Android with arm64 only"
    assert refusal in run(model, "--kernel_counts_path=counts.json").sentence()


@pytest.mark.parametrize("size", ["32x32", "7x9"])
def test_a_dynamic_input_has_the_given_shape(run: Program, models: Path, tmp_path: Path, size: str) -> None:
    inputs = f"--inputs={models / f'resized-{size}-input.bin'},{models / 'resized-factor.bin'}"
    shapes = f"--input_shapes=1x3x{size},scalar"
    flags = [inputs, shapes, "--num_executions=2", f"--output_file={tmp_path / 'output'}"]
    run.stats(tmp_path, f"--model_path={models / 'resized.pte'}", *flags)
    assert_close(tmp_path / "output-0.bin", models / f"resized-{size}-output.bin")


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


def test_outputs_may_be_of_a_later_execution_and_repeat_or_not(run: Program, models: Path, tmp_path: Path) -> None:
    # given a model whose output is false at first, and true from the second execution on
    case = [f"--model_path={models / 'grown.pte'}", f"--inputs={models / 'grown-input.bin'}"]
    assert run(*case, "--num_executions=2").out == "Output 0: false\n"
    assert run(*case, "--num_executions=2", "--output_execution=2").out == "Output 0: true\n"
    repeats = [run.stats(tmp_path, *case, f"--num_executions={count}")["outputs_repeat"] for count in (1, 2)]
    assert repeats == [True, False]


@pytest.mark.parametrize("length", [0, 1000, 100_000, None])
def test_a_truncated_or_other_file_is_refused(run: Program, models: Path, tmp_path: Path, length: int | None) -> None:
    cut = tmp_path / "cut.pte"
    content = (models / "convolved.pte").read_bytes() if length is not None else b"\xfa\x84\xff\x01" * 500
    cut.write_bytes(content[:length])
    sentence = run(f"--model_path={cut}", f"--stats_path={tmp_path / 'stats.json'}").sentence()
    assert f"{cut} is not a program that can be loaded" in sentence
    assert stats_of(tmp_path / "stats.json")["exit_reason"] == sentence.removeprefix("executor_runner: ")


@pytest.mark.parametrize(
    ("written", "instead", "kind", "names"),
    [
        (b"aten::cumsum", b"aten::cumsun", "missing_operator", ["aten::cumsun.out"]),
        (b"XnnpackBackend", b"XnnpackBackenD", "no_backend", ["XnnpackBackenD"]),
        (b"XN01", b"XX01", "damaged_program", []),
        (b"ET12", b"BP08", "damaged_program", []),
    ],
)
def test_what_is_printed_about_a_broken_program_identifies_the_kind_of_its_failure(
    run: Program, models: Path, tmp_path: Path, written: bytes, instead: bytes, kind: str, names: list[str]
) -> None:
    content = (models / "convolved.pte").read_bytes()
    assert content.count(written) == 1
    (tmp_path / "broken.pte").write_bytes(content.replace(written, instead))
    assert printed_kind([run(f"--model_path={tmp_path / 'broken.pte'}").sentence()]) == (kind, names)


def test_what_is_printed_without_memory_identifies_it(run: Program, model: str) -> None:
    # given a limit of 4 GB, and as many executions as need 16 GB for their times
    limited = Program(["sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh", *run.command])
    assert printed_kind([limited(model, "--num_executions=2000000000").sentence(1)]) == ("out_of_memory", [])


@pytest.mark.parametrize("case", ["--inputs={}", "--setup_method=forward --setup_inputs={}"], ids=["model", "setup"])
def test_a_model_or_setup_that_fails_leaves_no_etdump(run: Program, models: Path, tmp_path: Path, case: str) -> None:
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
    assert run(model, "--num_executions=5000", "--print_output=none", f"--kernel_profile_path={path}").code == 0
    profile = json.loads(path.read_text())
    named = sum(kernel["samples"] for kernel in profile["kernels"])
    unnamed = sum(library["samples"] for library in profile["unresolved_libraries"])
    assert profile["samples"] == named + unnamed > 0
    assert (profile["unresolved"], profile["dropped"]) == (unnamed, 0)
    assert profile["threads"] >= 1
    assert profile["cpu_ns"] > 0
    assert any("xnnpack" in entry["library"] for entry in profile["kernels"] + profile["unresolved_libraries"])
    assert all(kernel["name"] for kernel in profile["kernels"])
