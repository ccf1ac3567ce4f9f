"""Registered runners: checked, hashed, and preferred to those that the farm builds."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tasks.prepare.runner.bundle import Runner, RunnerError, find_runner, read_runner
from tasks.prepare.runner.register import register_runner
from tasks.prepare.runner.toolchain import host_platform

pytestmark = pytest.mark.torch

PROVENANCE = "executorch 1.5.1, built with EXECUTORCH_ENABLE_EVENT_TRACER=ON"
# Lists the stock flags, and does nothing.
IDLE = '#include <cstdio>\nint main() { std::puts("--model_path --num_executions --etdump_path"); return 1; }\n'


def register(source: Path, runners: Path, **changed: str | Path) -> Runner:
    arguments = {
        "platform": host_platform(),
        "variant": "sme2_off",
        "mode": "trace",
        "provenance": PROVENANCE,
    } | changed
    return register_runner(source, runners, **arguments)  # type: ignore[arg-type]


@pytest.fixture
def source(host_runner: Runner, tmp_path: Path) -> Path:
    """A folder with a program that works and its libraries, as a user would register it."""
    return shutil.copytree(host_runner.folder, tmp_path / "user's build")


@pytest.fixture
def idle(tmp_path: Path) -> Path:
    (tmp_path / "idle.cpp").write_text(IDLE)
    compiler = shutil.which("g++") or shutil.which("clang++") or pytest.skip("no C++ compiler is installed")
    subprocess.run([compiler, str(tmp_path / "idle.cpp"), "-o", str(tmp_path / "idle")], check=True)
    return tmp_path / "idle"


def test_a_registered_runner_is_a_bundle_with_its_provenance(source: Path, models: Path, tmp_path: Path) -> None:
    runner = register(source, tmp_path / "runners", model=models / "convolved.pte")
    assert read_runner(runner.folder) == runner
    assert (runner.kind, runner.variants, runner.modes) == ("registered", ["sme2_off"], ["trace"])
    assert runner.provenance == PROVENANCE
    assert not runner.supports_farm_flags
    assert {"executor_runner", "lib/libexecutorch.so"} <= set(runner.files) or host_platform() == "macos-arm64"
    assert not [name for name in runner.files if "etdump" in name and not name.startswith("lib/")]


def test_a_registered_runner_is_found_for_its_variant_and_mode_only(source: Path, tmp_path: Path) -> None:
    runners = tmp_path / "runners"
    runner = register(source, runners)
    assert find_runner(runners, host_platform(), "sme2_off", "trace") == runner
    assert find_runner(runners, host_platform(), "sme2_on", "trace") is None
    assert find_runner(runners, host_platform(), "sme2_off", "timing") is None
    assert find_runner(runners, "amiga", "sme2_off", "trace") is None


def test_a_registered_runner_comes_before_one_that_was_built_here(
    source: Path, host_runner: Runner, tmp_path: Path
) -> None:
    runners = tmp_path / "runners"
    (source / "note.txt").write_text("makes other bytes than the built one")
    registered = register(source, runners, mode="timing")
    shutil.copytree(host_runner.folder, runners / host_runner.platform / host_runner.folder.name)
    assert find_runner(runners, host_platform(), "sme2_off", "timing") == registered


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"platform": "amiga"}, "unknown platform `amiga`: use one of linux-x86_64, .*, android-arm64$"),
        ({"variant": "sme2"}, r"unknown variant `sme2`: use one of sme2_on, sme1, sme2_off; did you mean `sme1`\?"),
        ({"mode": "fast"}, "unknown mode `fast`: use one of timing, trace$"),
        ({"provenance": " "}, "needs its provenance"),
        ({"platform": "macos-arm64"}, "cannot be registered for macos-arm64: it is a program for "),
    ],
)
def test_an_unknown_word_is_refused_with_the_known_ones(
    source: Path, tmp_path: Path, changed: dict[str, str], message: str
) -> None:
    if changed.get("platform") == host_platform():
        pytest.skip("this machine is of that platform")
    with pytest.raises(RunnerError, match=message):
        register(source, tmp_path / "runners", **changed)
    assert not (tmp_path / "runners").exists()


def test_a_file_that_is_not_a_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    with pytest.raises(
        RunnerError, match=r"script cannot be registered for .*: it is not a program for any known platform"
    ):
        register(tmp_path / "script", tmp_path / "runners")
    with pytest.raises(
        RunnerError, match="executor_runner does not exist; register a program, or a folder that contains"
    ):
        register(tmp_path, tmp_path / "runners")


def test_a_program_without_the_stock_flags_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="true has no flag --model_path"):
        register(Path(shutil.which("true") or "/bin/true"), tmp_path / "runners")
    assert list((tmp_path / "runners" / host_platform()).iterdir()) == []


def test_a_program_that_fails_on_a_model_is_refused(idle: Path, models: Path, tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match=r"idle ended with exit code 1 on .*convolved\.pte"):
        register(idle, tmp_path / "runners", model=models / "convolved.pte")


def test_a_program_that_writes_no_etdump_is_refused(idle: Path, models: Path, tmp_path: Path) -> None:
    idle.with_suffix(".cpp").write_text(IDLE.replace("return 1", "return 0"))
    subprocess.run(["c++", str(idle.with_suffix(".cpp")), "-o", str(idle)], check=True)
    with pytest.raises(RunnerError, match="wrote no ETDump; build it with EXECUTORCH_ENABLE_EVENT_TRACER=ON"):
        register(idle, tmp_path / "runners", model=models / "convolved.pte")
    assert register(idle, tmp_path / "runners").kind == "registered"


SME1_ONLY = "kai_run_matmul_clamp_f32_f32p2vlx1_f32p2vlx1b_2vlx2vl_sme_mopa"
PACKS = "kai_run_lhs_pack_f32p2vlx1_f32_sme"
SME2 = "kai_run_matmul_clamp_f32_f32p2vlx1_f32p2vlx1biasf32_sme2_mopa"


@pytest.mark.parametrize(
    ("kernels", "variant", "is_refused"),
    [
        ([SME1_ONLY, PACKS], "sme2_on", True),
        ([SME1_ONLY, PACKS], "sme1", False),
        ([SME1_ONLY, SME2], "sme2_on", False),
        ([PACKS], "sme2_on", False),
    ],
)
def test_a_runner_with_kernels_of_sme_alone_is_refused_for_sme2(
    idle: Path, tmp_path: Path, kernels: list[str], variant: str, is_refused: bool
) -> None:
    # given a program with functions of these names
    functions = "".join(f'extern "C" void {name}() {{}}\n' for name in kernels)
    (tmp_path / "named.cpp").write_text(IDLE + functions)
    compiler = shutil.which("g++") or "clang++"
    subprocess.run([compiler, str(tmp_path / "named.cpp"), "-o", str(idle)], check=True)
    if is_refused:
        with pytest.raises(RunnerError, match=f"for sme2_on: .* of SME, such as {SME1_ONLY}, .* for sme1$"):
            register(idle, tmp_path / "runners", variant=variant)
        assert not list((tmp_path / "runners" / host_platform()).iterdir())
    else:
        assert register(idle, tmp_path / "runners", variant=variant).variants == [variant]
