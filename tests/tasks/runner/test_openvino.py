"""The runner with OpenVINO: its outputs, threads and types, what it records, and its errors."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tasks.bundle.delegate_settings import ALL_PROCESSORS, TYPE
from tasks.etdump.reader import read_etdump
from tasks.runner.manifest import Runner
from tests.fixtures.runner import Program, assert_close
from tests.fixtures.waiting import wait_for

pytestmark = [pytest.mark.torch, pytest.mark.thorough]


@pytest.fixture
def run(openvino_runner: Runner) -> Program:
    return Program(openvino_runner.command(str(openvino_runner.folder)))


def flags(folder: Path, threads: int = 1, computed: str = "f32", name: str = "model") -> list[str]:
    properties = f"INFERENCE_NUM_THREADS={threads},{ALL_PROCESSORS}=YES,{TYPE}={computed}"
    files = [f"--model_path={folder / f'{name}.pte'}", f"--inputs={folder / 'input.bin'}"]
    return [*files, f"--cpu_threads={threads}", f"--backend_options=OpenvinoRuntime:{properties}"]


def test_outputs_are_those_of_eager_pytorch_in_the_stated_type(
    run: Program, openvino_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENVINO_LIB_PATH", "/another/libopenvino_c.so")
    output = f"--output_file={tmp_path / 'output'}"
    stats = run.stats(tmp_path, *flags(openvino_model), output, "--num_executions=3")
    in_force = stats["backend_options"]["OpenvinoRuntime"]
    assert isinstance(in_force.pop(ALL_PROCESSORS), bool)  # whether the processor has it
    assert in_force == {"INFERENCE_NUM_THREADS": 1, TYPE: "f32"}
    assert_close(tmp_path / "output-0.bin", openvino_model / "output.bin")
    # and a call is one part of the ETDump, since OpenVINO has no tracer
    read = read_etdump(tmp_path / "model.etdump", backends={(0, 0): "OpenvinoBackend"})
    assert "OpenVINO delegate" in read.names
    # and what is not set is as OpenVINO decides, which is read back: bf16 where the processor computes in it
    stats = run.stats(tmp_path, *flags(openvino_model, computed="default"), output)
    in_force = stats["backend_options"]["OpenvinoRuntime"][TYPE]
    assert in_force in ("f32", "bf16", "f16")
    error = np.fromfile(tmp_path / "output-0.bin", np.float32) - np.fromfile(openvino_model / "output.bin", np.float32)
    assert (np.abs(error).max() > 1e-5) == (in_force != "f32")


@pytest.mark.parametrize("threads", [1, 2])
def test_the_stated_threads_do_the_work_and_no_others(run: Program, openvino_model: Path, threads: int) -> None:
    command = [*run.command, *flags(openvino_model, threads), "--num_executions=1000000", "--print_output=none"]
    with subprocess.Popen(command) as process:
        try:
            # On a busy machine a thread may wait long for a processor, while another does most of the work.
            wait_for(lambda: sum(cpu_ticks(process.pid)) > 150, "1.5 s of work")
            wait_for(lambda: len(working(process.pid)) >= threads, "0.3 s of work of each thread")
            count = len(working(process.pid))
            lines = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
        finally:
            process.kill()
    assert count == threads
    # and the runtime is the one in the bundle, not the package that is installed here
    paths = [Path(line.split()[-1]) for line in lines]
    runtime = [path for path in paths if path.name.startswith(("libopenvino", "libtbb"))]
    assert {path.parent for path in runtime} == {(Path(run.command[0]).parent / "lib").resolve()}


def test_it_uses_all_logical_processors_of_a_core(run: Program, openvino_model: Path, tmp_path: Path) -> None:
    # given two logical processors a core, by what the kernel seems to state about their caches
    processors, mounts = os.cpu_count() or 1, []
    for path in sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index[0-2]/shared_cpu_list")):
        first = int(path.parts[5].removeprefix("cpu")) // 2 * 2
        (tmp_path / str(first)).write_text(f"{first}-{first + 1}\n")
        mounts.append(f"mount --bind {tmp_path / str(first)} {path}")
    script = " && ".join(mounts)
    namespace = ["unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh"]
    if (
        not shutil.which("unshare")
        or not mounts
        or processors % 2
        or subprocess.run([*namespace, "true"], check=False).returncode != 0
    ):
        pytest.skip("needs root, for a mount namespace, and two processors")
    on_two = Program([*namespace, *run.command])
    stats = on_two.stats(tmp_path, *flags(openvino_model, processors))
    assert stats["backend_options"]["OpenvinoRuntime"]["INFERENCE_NUM_THREADS"] == processors
    assert stats["backend_options"]["OpenvinoRuntime"][ALL_PROCESSORS] is True
    # and without the property only one of each
    by_default = [each.replace("=YES", "=default") for each in flags(openvino_model, processors)]
    stats = on_two.stats(tmp_path, *by_default)
    assert stats["backend_options"]["OpenvinoRuntime"]["INFERENCE_NUM_THREADS"] == processors // 2


def working(pid: int) -> list[int]:
    """Return the CPU time of each thread of a process that worked for 0.3 s or more, of which loading takes less."""
    return [ticks for ticks in cpu_ticks(pid) if ticks >= 30]


def cpu_ticks(pid: int) -> list[int]:
    """Return the CPU time of each thread of a process."""
    stats = [path.read_text().rpartition(")")[2].split() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return [int(fields[11]) + int(fields[12]) for fields in stats]


def test_a_crash_inside_openvino_names_it(openvino_runner: Runner, openvino_model: Path, tmp_path: Path) -> None:
    # given a truncated library, whose mapping ends behind the end of its file
    folder = shutil.copytree(openvino_runner.folder, tmp_path / "copy")
    os.truncate(next((folder / "lib").glob("*_cpu_plugin.so")), 1 << 20)
    ended = Program(openvino_runner.command(str(folder)))(*flags(openvino_model))
    assert ended.code == -signal.SIGBUS
    assert ended.err == "executor_runner: ExecuTorch crashed (SIGBUS) while it loaded the model in OpenvinoBackend\n"


def test_each_thing_that_is_missing_or_damaged_is_one_sentence(
    openvino_runner: Runner, host_runner: Runner, openvino_model: Path, tmp_path: Path
) -> None:
    def sentence(runner: Runner, change: Callable[[Path], None] = lambda _: None, name: str = "model") -> str:
        folder = shutil.copytree(runner.folder, tmp_path / "copy")
        change(folder / "lib")
        ended = Program(runner.command(str(folder)))(*flags(openvino_model, name=name)[:3])
        shutil.rmtree(folder)
        return ended.sentence()

    def without(pattern: str) -> Callable[[Path], None]:
        return lambda lib: next(lib.glob(pattern)).unlink()

    assert "Backend OpenvinoBackend is not registered" in sentence(host_runner)
    assert "OpenVINO runtime not found (dlopen failed: libopenvino_c.so" in sentence(
        openvino_runner, without("*_c.so.*")
    )
    assert "Backend OpenvinoBackend is not available" in sentence(openvino_runner, without("*_cpu_plugin.so"))
    assert "OpenVINO cannot import a part of the model: " in sentence(openvino_runner, name="damaged")
