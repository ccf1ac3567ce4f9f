"""Runners for other platforms: built from package registries, checked, and run on an emulated processor with SME2."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from tasks.bundle.cell import VARIANTS
from tasks.etdump.reader import read_etdump
from tasks.runner.binary import read_binary
from tasks.runner.build import build_runner, check_libraries
from tasks.runner.delegate_files import delegate_backends
from tasks.runner.manifest import Runner, RunnerError
from tasks.runner.toolchain import host_platform
from tasks.runner.wheels import WheelError
from tests.fixtures.devices import PLAIN_CPU, SME2_CPU, SYSROOT
from tests.fixtures.paths import KEPT
from tests.fixtures.runner import Program, assert_close, stats_of

pytestmark = [pytest.mark.torch, pytest.mark.lab, pytest.mark.timeout(900)]

# Kept from one test run to the next: wheels are downloaded and zig's C++ library is compiled into it.
RUNNERS = KEPT / "runners"


def build(platform: str) -> Runner:
    try:
        return build_runner(platform, RUNNERS)
    except WheelError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def aarch64_runner() -> Runner:
    if host_platform() != "linux-aarch64" and shutil.which("aarch64-linux-gnu-g++") is None:
        pytest.skip("aarch64-linux-gnu-g++ is not installed (apt install g++-aarch64-linux-gnu)")
    return build("linux-aarch64")


@pytest.fixture(scope="session")
def android_runner(aarch64_runner: Runner) -> Runner:
    return build("android-arm64")


@pytest.fixture(scope="session")
def macos_runner() -> Runner:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed (extra `cross`)")
    return build("macos-arm64")


def on(cpu: str, qemu: str, runner: Runner) -> Program:
    """Start a Linux runner on an emulated processor."""
    sysroot = ["-L", str(SYSROOT)] if host_platform() != "linux-aarch64" else []
    return Program([qemu, "-cpu", cpu, *sysroot, *runner.command(str(runner.folder))])


@pytest.fixture
def linux(qemu: str, aarch64_runner: Runner) -> Program:
    return on(SME2_CPU, qemu, aarch64_runner)


@pytest.fixture
def android(qemu: str, android_runner: Runner) -> Program:
    """As on a phone: no C library except the one in the bundle."""
    return Program([qemu, "-cpu", SME2_CPU, *android_runner.command(str(android_runner.folder))])


@pytest.mark.parametrize("system", ["linux", "android"])
@pytest.mark.parametrize(("sme2", "type_of_data"), [("on", "PF32"), ("sme1", "PF32"), ("off", "F32")])
def test_sme2_is_switched_in_one_program_and_shows_in_operator_names(
    request: pytest.FixtureRequest, models: Path, tmp_path: Path, system: str, sme2: str, type_of_data: str
) -> None:
    run: Program = request.getfixturevalue(system)
    inputs, outputs = f"--inputs={models / 'convolved-input.bin'}", f"--output_file={tmp_path / 'output'}"
    stats = run.stats(tmp_path, f"--model_path={models / 'convolved.pte'}", inputs, outputs, "--sme2", sme2)
    names = {name for name in read_etdump(tmp_path / "model.etdump").names if "GEMM" in name}
    operators = f"Convolution (NHWC, {type_of_data}) IGEMM #1", f"Fully Connected (NC, {type_of_data}) GEMM #1"
    assert names == set(operators)
    assert (stats["sme2_requested"], stats["sme_hardware"], stats["sme2_hardware"]) == (sme2, True, True)
    assert (stats["sme_reported"], stats["sme2_reported"]) == (sme2 != "off", sme2 == "on")
    for number in range(2):
        assert_close(tmp_path / f"output-{number}.bin", models / f"convolved-output-{number}.bin")


def test_sme2_on_is_refused_on_a_processor_without(qemu: str, aarch64_runner: Runner, models: Path) -> None:
    run = on(PLAIN_CPU, qemu, aarch64_runner)
    model = f"--model_path={models / 'convolved.pte'}"
    assert "does not support SME2" in run(model, "--sme2=on").sentence()
    assert run(model, "--sme2=sme1").sentence().endswith("does not support SME")
    assert run(model, "--sme2=off").code == 0


@pytest.mark.parametrize(("sme2", "kernel"), [("on", "_sme2_mopa"), ("sme1", "_sme_mopa"), ("off", None)])
def test_the_kernel_profile_names_kernels_of_sme_only_if_they_ran(
    linux: Program, models: Path, tmp_path: Path, sme2: str, kernel: str | None
) -> None:
    path = tmp_path / "kernels.json"
    flags = [f"--sme2={sme2}", "--num_executions=200", f"--kernel_profile_path={path}"]
    assert linux(f"--model_path={models / 'convolved.pte'}", *flags).code == 0
    profile = stats_of(path)
    assert profile["samples"] > 10
    products = {"_sme2_mopa", "_sme_mopa"}
    ran = {end for end in products for each in profile["kernels"] if each["name"].endswith(end)}
    assert ran == ({kernel} if kernel else set())
    assert any("sme2" in each["name"] for each in profile["kernels"]) == (sme2 == "on")


def test_one_source_makes_all_bundles_and_each_lists_the_libraries_that_it_needs(
    aarch64_runner: Runner, android_runner: Runner, macos_runner: Runner
) -> None:
    runners = [aarch64_runner, android_runner, macos_runner]
    assert len({runner.source_sha256 for runner in runners}) == 1
    assert [runner.variants for runner in runners] == [list(VARIANTS)] * 3
    assert aarch64_runner.files["executor_runner"] == android_runner.files["executor_runner"]
    assert set(aarch64_runner.needs or {}) == {"glibc", "glibcxx"}
    assert (android_runner.needs, macos_runner.needs) == ({}, {"macos": "14.0"})


def test_a_runner_for_another_processor_carries_its_openvino_and_computes_as_eager_pytorch(
    qemu: str, openvino_model: Path, aarch64_runner: Runner, tmp_path: Path
) -> None:
    # given aarch64_runner, whose compiler it needs
    try:
        runner = build_runner(aarch64_runner.platform, RUNNERS, None, delegate_backends(["openvino"]))
    except WheelError as error:
        pytest.skip(str(error))
    assert runner.backends == frozenset({"OpenvinoBackend", "XnnpackBackend"})
    files = [f"--model_path={openvino_model / 'model.pte'}", f"--inputs={openvino_model / 'input.bin'}"]
    properties = "--backend_options=OpenvinoRuntime:INFERENCE_NUM_THREADS=1,INFERENCE_PRECISION_HINT=f32"
    run = on(PLAIN_CPU, qemu, runner)
    stats = run.stats(tmp_path, *files, f"--output_file={tmp_path / 'output'}", properties)
    assert stats["backend_options"]["OpenvinoRuntime"]["INFERENCE_NUM_THREADS"] == 1
    assert_close(tmp_path / "output-0.bin", openvino_model / "output.bin")


def test_a_macos_runner_without_a_library_is_refused(macos_runner: Runner, tmp_path: Path) -> None:
    bundle = shutil.copytree(macos_runner.folder, tmp_path / "bundle")
    (bundle / "manifest.json").unlink()
    check_libraries(bundle, "macos-arm64")
    (bundle / "lib" / "libexecutorch.dylib").unlink()
    with pytest.raises(RunnerError, match=r"needs libexecutorch\.dylib, which is not in the bundle"):
        check_libraries(bundle, "macos-arm64")


def test_a_macos_runner_with_core_ml_and_mlx_is_linked_with_their_libraries() -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed (extra `cross`)")
    try:
        runner = build_runner("macos-arm64", RUNNERS, None, delegate_backends(["coreml", "mlx"]))
    except WheelError as error:
        pytest.skip(str(error))
    libraries = {"libexecutorch_backend_coreml.dylib", "libexecutorch_backend_mlx.dylib"}
    needed = read_binary(runner.folder / "executor_runner").needed
    assert libraries <= set(needed)
    assert {f"lib/{name}" for name in (*libraries, "mlx.metallib")} <= set(runner.files)
    assert runner.backends == frozenset({"CoreMLBackend", "MLXBackend", "XnnpackBackend"})
    assert runner.needs == {"macos": "14.0"}
    # what the libraries need beside the bundle are those of macOS: system frameworks
    check_libraries(runner.folder, "macos-arm64")
