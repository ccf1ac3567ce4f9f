"""Runner bundles: built once, found again, never half-written."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasks.bundle.cell import Use
from tasks.runner import build, build_inputs
from tasks.runner.build import build_runner
from tasks.runner.manifest import Runner, RunnerError, find_earlier_runner, find_runner, read_runner
from tasks.runner.register import register_runner
from tasks.runner.toolchain import host_platform
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.torch

BUILD = """
import sys
from pathlib import Path
from tasks.runner import build_inputs
from tasks.runner.build import build_runner
from tasks.runner.toolchain import host_platform
build_inputs.SOURCES = Path(sys.argv[2])
print(build_runner(host_platform(), Path(sys.argv[1])).folder.name)
assert not {"torch", "executorch"} & set(sys.modules), "a build must not import torch"
"""
SMALL = {
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.28)
project(executor_runner VERSION 1.0 LANGUAGES CXX)
add_executable(executor_runner main.cpp)
target_compile_definitions(executor_runner PRIVATE RUNNER_VERSION="${PROJECT_VERSION}")
""",
    "main.cpp": """
#include <cstdio>
int main() { std::puts(R"({"runner_version": ")" RUNNER_VERSION R"(", "executorch_version": "@WHEEL@"})"); }
""",
}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources in place of the runner's, of a program that states versions alone: it is built in a second."""
    folder = tmp_path / "sources"
    folder.mkdir()
    for name, text in SMALL.items():
        (folder / name).write_text(text.replace("@WHEEL@", build_inputs.installed_wheel().version))
    monkeypatch.setattr(build_inputs, "SOURCES", folder)
    return folder


def start_build(runners: Path, sources: Path, path: str = os.environ["PATH"]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", BUILD, str(runners), str(sources)]
    environment = os.environ | {"PATH": path}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.fixture
def copied(host_runner: Runner, tmp_path: Path) -> Runner:
    """A runner bundle to damage."""
    folder = tmp_path / "runners" / host_runner.platform / host_runner.folder.name
    shutil.copytree(host_runner.folder, folder)
    return read_runner(folder)


def test_a_second_build_compiles_nothing(host_runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_again(*_: object) -> None:
        raise AssertionError("nothing has changed")

    monkeypatch.setattr(build, "_compile", compile_again)
    assert build_runner(host_runner.platform, host_runner.folder.parent.parent) == host_runner


@pytest.mark.thorough
def test_a_changed_source_is_a_newer_runner(small: Path, tmp_path: Path) -> None:
    runners, cmake = tmp_path / "runners", small / "CMakeLists.txt"
    before, text = build_runner(host_platform(), runners), cmake.read_text()
    cmake.write_text(text.replace("VERSION 1.0", "VERSION 9.1"))
    built = build_runner(host_platform(), runners)
    assert built.folder != before.folder
    assert (before.versions["runner"], built.versions["runner"]) == ("1.0", "9.1")
    assert find_runner(runners, host_platform(), Use("sme2_off", "timing")) == built
    cmake.write_text(text)
    assert build_runner(host_platform(), runners) == before
    assert find_runner(runners, host_platform(), Use("sme2_off", "timing")) == before


@pytest.mark.thorough
def test_a_build_in_another_folder_gives_equal_bytes(host_runner: Runner, tmp_path: Path) -> None:
    built = build_runner(host_runner.platform, tmp_path / 'it\'s a "folder" with spaces' / "runners")
    assert (built.runner_sha256, built.files) == (host_runner.runner_sha256, host_runner.files)


@pytest.mark.thorough
def test_two_builds_at_once_both_end_with_the_same_bundle_without_importing_torch(small: Path, tmp_path: Path) -> None:
    runners = tmp_path / "runners"
    started = [start_build(runners, small) for _ in range(2)]
    ended = [(*process.communicate(), process.returncode) for process in started]
    (only,) = (runners / host_platform()).iterdir()
    assert [(out.strip(), code) for out, _, code in ended] == [(only.name, 0)] * 2, ended
    assert read_runner(only).folder == only


@pytest.mark.thorough
def test_what_a_killed_build_left_is_gone_after_the_next(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runners" / host_platform()
    # given a build that is killed when it starts `make`, or `gmake`, which CMake prefers
    tools, started = tmp_path / "tools", tmp_path / "started"
    tools.mkdir()
    for name in ("make", "gmake"):
        (tools / name).write_text(f"#!/bin/sh\n: >'{started}'; sleep 600\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    process = start_build(tmp_path / "runners", small, f"{tools}:{os.environ['PATH']}")
    wait_for(lambda: started.exists() or process.poll() is not None, "the build to start make", longest_s=120)
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert list(folder.glob(".part-*"))
    assert find_runner(tmp_path / "runners", host_platform(), Use("sme2_off", "timing")) is None
    built = build_runner(host_platform(), tmp_path / "runners")
    assert list(folder.iterdir()) == [built.folder]


@pytest.mark.parametrize(
    ("present", "message"), [([], "no C\\+\\+ compiler on PATH .*install"), (["g++"], "no `make` on PATH .*install")]
)
def test_a_missing_tool_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host_runner: Runner, present: list[str], message: str
) -> None:
    for name in present:
        (tmp_path / name).symlink_to(shutil.which(name) or pytest.skip(f"{name} is not installed"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunnerError, match=message):
        build_runner(host_runner.platform, tmp_path / "runners")
    assert not (tmp_path / "runners").exists()


@pytest.mark.parametrize("manifest", [None, "", "{}", "[]", '{"manifest_version": 2}', '{"manifest_version": 1}'])
def test_a_damaged_bundle_is_refused_in_one_sentence_and_not_found(copied: Runner, manifest: str | None) -> None:
    if manifest is None:
        (copied.folder / "lib").rename(copied.folder / "gone")
    else:
        (copied.folder / "manifest.json").write_text(manifest)
    words = "is not a complete runner bundle: No such file" if manifest is None else r"manifest\.json"
    with pytest.raises(RunnerError, match=words) as refused:
        read_runner(copied.folder)
    assert "\n" not in str(refused.value)
    assert find_runner(copied.folder.parent.parent, copied.platform, Use("sme2_off", "timing")) is None


PROVENANCE = "executorch 1.5.1, built with EXECUTORCH_ENABLE_EVENT_TRACER=ON"


def register(source: Path, runners: Path, **changed: str) -> Runner:
    usual: dict[str, Any] = {
        "platform": host_platform(),
        "variant": "sme2_off",
        "mode": "trace",
        "provenance": PROVENANCE,
    }
    usual |= changed
    use = Use(usual.pop("variant"), usual.pop("mode"))
    return register_runner(source, runners, **usual, use=use)


@pytest.fixture
def source(host_runner: Runner, tmp_path: Path) -> Path:
    """A folder with a program that works and its libraries, as a user would register it."""
    return shutil.copytree(host_runner.folder, tmp_path / "user's build")


def test_a_registered_runner_is_a_bundle_with_its_provenance(source: Path, host_runner: Runner, tmp_path: Path) -> None:
    runner = register(source, tmp_path / "runners")
    assert read_runner(runner.folder) == runner
    assert (runner.kind, runner.variants, runner.modes) == ("registered", ["sme2_off"], ["trace"])
    assert (runner.provenance, runner.needs) == (PROVENANCE, host_runner.needs)
    assert not runner.supports_farm_flags
    assert {"executor_runner", "lib/libexecutorch.so"} <= set(runner.files) or host_platform() == "macos-arm64"
    # and comes before one that was built here, which is found by its hash, as long as it is there
    built = tmp_path / "runners" / host_runner.platform / host_runner.folder.name
    shutil.copytree(host_runner.folder, built)
    found = find_earlier_runner(tmp_path / "runners", host_platform(), host_runner.runner_sha256, "sme2_off")
    assert found.folder == built
    with pytest.raises(RunnerError, match=r"^its runner \(00000000\) is not in .* any more$"):
        find_earlier_runner(tmp_path / "runners", host_platform(), "0" * 64, "sme2_off")
    shutil.rmtree(built)
    # and is found for its platform, variant and mode only
    uses = [
        Use("sme2_off", "trace"),
        Use("sme2_on", "trace"),
        Use("sme2_off", "timing"),
        Use("sme2_off", "numerics"),
    ]
    assert [find_runner(tmp_path / "runners", host_platform(), use) for use in uses] == [runner, None, None, None]
    assert find_runner(tmp_path / "runners", "amiga", Use("sme2_off", "trace")) is None


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
def test_an_unknown_option_is_refused(source: Path, tmp_path: Path, changed: dict[str, str], message: str) -> None:
    if changed.get("platform") == host_platform():
        pytest.skip("this machine is of that platform")
    with pytest.raises(RunnerError, match=message):
        register(source, tmp_path / "runners", **changed)
    assert not (tmp_path / "runners").exists()


def test_what_is_not_a_program_with_the_stock_flags_is_refused(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    true = Path(shutil.which("true") or "/bin/true")
    for source, sentence in (
        (tmp_path / "script", r"script cannot be registered for .*: it is not a program for any supported platform"),
        (tmp_path, "executor_runner does not exist; register a program, or a folder that contains"),
        (true, "true has no flag --model_path"),
    ):
        with pytest.raises(RunnerError, match=sentence):
            register(source, tmp_path / "runners")
    assert list((tmp_path / "runners" / host_platform()).iterdir()) == []
