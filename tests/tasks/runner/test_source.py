"""Runners built from a checkout of ExecuTorch's sources; a small CMake project stands in for it."""

import fcntl
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.bundle.cell import Use, Variant
from tasks.etdump.xnntrace import selected_kernels
from tasks.runner import register, toolchain
from tasks.runner.binary import read_elf
from tasks.runner.manifest import Runner, RunnerError, find_runner
from tasks.runner.register import build_from_source
from tasks.runner.toolchain import find_cmake, host_platform
from tests.fixtures.paths import KEPT
from tests.fixtures.stand_in import GOOD, a_context, a_session, measured, put_on_path
from tests.fixtures.stand_in_checkout import PLAIN_KERNEL, SME2_KERNEL, commit, git, write_checkout

pytestmark = pytest.mark.timeout(600)

HOST_VARIANT: Variant = "sme2_off" if host_platform() == "linux-x86_64" else "sme2_on"
Build = Callable[..., Runner]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    try:
        find_cmake()
    except RunnerError as error:
        pytest.skip(str(error))
    if shutil.which("git") is None or shutil.which("g++") is None:
        pytest.skip("git or g++ is not installed")
    return write_checkout(tmp_path / "ExecuTorch's sources")


@pytest.fixture
def messages() -> list[str]:
    """What builds report."""
    return []


@pytest.fixture
def build(checkout: Path, tmp_path: Path, messages: list[str]) -> Build:
    def run(**changed: Any) -> Runner:
        settings = {"source": checkout, "platform": host_platform(), "variant": None, "trace": True} | changed
        return build_from_source(
            settings.pop("source"), tmp_path / "var" / "runners", **settings, report=messages.append
        )

    return run


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "cache" not in path.parts]


def test_a_trace_runner_of_a_checkout_is_registered_with_its_commit_and_traces_a_session(
    build: Build, checkout: Path, messages: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # when a checkout is built for this machine
    runner = build()
    # then the runner is found for mode trace, and its provenance has commit, options and compiler
    assert find_runner(tmp_path / "var" / "runners", host_platform(), Use(HOST_VARIANT, "trace")) == runner
    assert (runner.kind, runner.modes, runner.variants) == ("registered", ["trace"], [HOST_VARIANT])
    start, options, compiler = (runner.provenance or "").split("; ")
    assert start == f"executorch {git(checkout, 'rev-parse', 'HEAD')}"
    assert "-DEXECUTORCH_BUILD_EXECUTOR_RUNNER=ON" in options
    assert "-DCMAKE_C_FLAGS=-UXNN_NO_LOGGING -DXNN_LOG_LEVEL=5" in options
    assert compiler
    # and the log was named while it was built; only the bundle is left
    log = tmp_path / "var" / "runners" / f"{host_platform()}-source-build.log"
    assert [line.endswith(f"; log: {log}") for line in messages] == [True]
    assert {path.name for path in files_in(tmp_path / "var")} == {"executor_runner", "manifest.json"}
    # and the same commit is not built again
    with monkeypatch.context() as context:
        context.setattr(register, "run_steps", None)
        assert build() == runner
    # and a session with it records the kernels that were selected
    session = a_session(HOST_VARIANT, mode="trace")
    record = measured(tmp_path, replace(a_context(tmp_path, GOOD), runner=runner), session)
    assert record.status == "succeeded", record.reason
    log = tmp_path / "bundles" / session.sweep.sweep_id / record.session_id / "stderr.txt"
    assert list(selected_kernels(log)) == [PLAIN_KERNEL]


def test_another_commit_is_built_again_and_so_are_changed_files(build: Build, checkout: Path, tmp_path: Path) -> None:
    (checkout / "log.c").write_text((checkout / "log.c").read_text().replace("gemm-config.c:1", "gemm-config.c:2"))
    changed = build()
    # nor is a runner for timing the one for traces
    timing = build(trace=False)
    assert (timing.modes, "XNN_LOG_LEVEL" in (timing.provenance or "")) == (["timing"], False)
    paths = [f"--etdump_path={tmp_path / 'x'}", f"--output_file={tmp_path / 'y'}"]
    assert subprocess.run([timing.folder / "executor_runner", *paths], capture_output=True, check=True).stderr == b""
    commit(checkout)
    committed = build()
    before, after = (git(checkout, "rev-parse", name) for name in ("HEAD~", "HEAD"))
    origins = [(each.provenance or "").partition(";")[0] for each in (changed, committed)]
    assert origins == [f"executorch {before}, changed", f"executorch {after}"]
    assert committed.runner_sha256 == changed.runner_sha256


@pytest.mark.thorough
@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed (extra `cross`)")
@pytest.mark.parametrize(("variant", "has_sme2"), [(None, True), ("sme2_off", False)])
def test_zig_builds_for_arm64_with_sme2_or_without_and_for_an_old_c_library(
    build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variant: str | None, has_sme2: bool
) -> None:
    monkeypatch.setattr(toolchain, "host_platform", lambda: "linux-x86_64")  # an arm64 machine would use its own
    (KEPT / "cache").mkdir(parents=True, exist_ok=True)
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "cache").symlink_to(KEPT / "cache")  # of the C++ library that zig compiles
    runner = build(platform="linux-aarch64", variant=variant)
    assert (runner.variants, runner.modes) == ([variant or "sme2_on"], ["trace"])
    program = runner.folder / "executor_runner"
    elf = read_elf(program)
    assert elf.processor == "aarch64"
    assert not [name for name in elf.needed if "++" in name]
    versions = {tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in elf.versions_needed["libc.so.6"]}
    assert max(versions) <= (2, 27)
    assert (SME2_KERNEL.encode() in program.read_bytes()) == has_sme2
    assert "zig" in (runner.provenance or "")


def test_a_compiler_without_sme2_is_refused(build: Build, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # given a compiler for arm64 without SME2, and no zig
    compiler = '[ "$1" = --version ] && echo gcc 12'
    names = ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "gcc", "g++", "clang", "clang++")
    put_on_path(monkeypatch, tmp_path / "tools", **dict.fromkeys(names, compiler))
    monkeypatch.setattr(toolchain, "find_zig", lambda: None)
    monkeypatch.setattr(register, "run_steps", None)
    with pytest.raises(
        RunnerError, match=r"no C and C\+\+ compiler for linux-aarch64 that assembles SME2; .*`pip install"
    ):
        build(platform="linux-aarch64")
    assert not (tmp_path / "var").exists()


NO_COMMIT = "has no git commit to register the runner with: git reported "
NO_MODULE = """printf 'message(FATAL_ERROR\\n  "no submodule")\\n' >CMakeLists.txt"""


@pytest.mark.parametrize(
    ("spoil", "path", "message"),
    [
        ("", "main.cpp", r"main\.cpp is not a folder; pass a checkout of ExecuTorch's sources$"),
        ("rm CMakeLists.txt", "", r"has no CMakeLists\.txt; pass a checkout of ExecuTorch's sources$"),
        ("rm -rf .git", "", f"{NO_COMMIT}`fatal: not a git repository"),
        ("rm -rf .git && git init --quiet", "", NO_COMMIT),
        ("mkdir unpacked && cp *.* unpacked", "unpacked", "belongs to the git checkout .*; pass the top folder"),
        ("echo this is not C >log.c", "", r"does not build: .*log\.c.*error.*; the full output is in "),
        (NO_MODULE, "", r"CMake Error at .*\(message\): no submodule; the full output is in "),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_sentence_and_leaves_only_its_log(
    build: Build, checkout: Path, tmp_path: Path, spoil: str, path: str, message: str
) -> None:
    subprocess.run(["sh", "-c", spoil], cwd=checkout, check=True)
    with pytest.raises(RunnerError, match=message) as refused:
        build(source=checkout / path)
    assert "\n" not in str(refused.value)
    logs = [log for log in files_in(tmp_path / "var") if log.stat().st_size]
    assert [str(log) for log in logs] == re.findall("the full output is in (.+)", str(refused.value))
    assert logs or not (tmp_path / "var").exists()


def test_a_checkout_that_is_being_built_is_refused(build: Build, checkout: Path, tmp_path: Path) -> None:
    with (checkout / "CMakeLists.txt").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RunnerError, match=r"is being built by another process; run this again when it has ended$"):
            build()
    assert not (tmp_path / "var").exists()
