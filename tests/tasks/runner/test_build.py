"""Runner bundles: built once, found again, never half-written."""

import importlib.metadata
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.runner import build, build_inputs
from tasks.runner.build import build_runner
from tasks.runner.build_inputs import WheelError
from tasks.runner.manifest import Runner, RunnerError, find_runner, read_runner
from tasks.runner.toolchain import host_platform
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.torch

BUILD = """
import sys
from pathlib import Path
from tasks.runner.build import build_runner
from tasks.runner.toolchain import host_platform
print(build_runner(host_platform(), Path(sys.argv[1])).folder.name)
assert not {"torch", "executorch"} & set(sys.modules), "a build must not import torch"
"""


def start_build(runners: Path, path: str = os.environ["PATH"]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", BUILD, str(runners)]
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


def test_a_bundle_is_described_by_its_manifest(host_runner: Runner) -> None:
    manifest = json.loads((host_runner.folder / "manifest.json").read_text())
    assert manifest["manifest_version"] == 1
    assert (manifest["kind"], manifest["platform"]) == ("wheel", host_platform())
    assert manifest["versions"]["executorch"] == importlib.metadata.version("executorch")
    assert host_runner.folder.name == manifest["runner_sha256"][:16]
    on_disk = {str(path.relative_to(host_runner.folder)) for path in host_runner.folder.rglob("*") if path.is_file()}
    assert set(manifest["files"]) == on_disk - {"manifest.json"}
    assert host_runner.supports_farm_flags


def test_a_second_build_compiles_nothing(host_runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_again(*_: object) -> None:
        raise AssertionError("nothing has changed")

    monkeypatch.setattr(build, "_compile", compile_again)
    assert build_runner(host_runner.platform, host_runner.folder.parent.parent) == host_runner


@pytest.mark.thorough
def test_a_changed_source_is_built_again_and_found_as_the_newest(
    copied: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runners = copied.folder.parent.parent
    sources = shutil.copytree(build_inputs.SOURCES, tmp_path / "sources")
    cmake = sources / "CMakeLists.txt"
    cmake.write_text(
        cmake.read_text().replace("project(executor_runner VERSION ", "project(executor_runner VERSION 9.")
    )
    monkeypatch.setattr(build_inputs, "SOURCES", sources)
    built = build_runner(copied.platform, runners)
    assert built.runner_sha256 != copied.runner_sha256
    assert (built.versions["runner"] or "").startswith("9.")
    assert find_runner(runners, copied.platform, "sme2_off", "timing") == built
    monkeypatch.undo()
    assert build_runner(copied.platform, runners) == copied
    assert find_runner(runners, copied.platform, "sme2_off", "timing") == copied


@pytest.mark.thorough
def test_two_builds_at_once_both_end_with_the_same_bundle_without_importing_torch(tmp_path: Path) -> None:
    runners = tmp_path / 'it\'s a "folder" with spaces' / "runners"
    started = [start_build(runners) for _ in range(2)]
    ended = [(*process.communicate(), process.returncode) for process in started]
    assert [code for *_, code in ended] == [0, 0], ended
    assert len({out for out, *_ in ended}) == 1
    (only,) = (runners / host_platform()).iterdir()
    assert only.name == ended[0][0].strip()
    assert read_runner(only).folder == only


@pytest.mark.thorough
def test_what_a_killed_build_left_is_gone_after_the_next(tmp_path: Path, host_runner: Runner) -> None:
    folder = tmp_path / "runners" / host_runner.platform
    # given a build that is killed when it starts `make`, or `gmake`, which CMake prefers
    tools, started = tmp_path / "tools", tmp_path / "started"
    tools.mkdir()
    for name in ("make", "gmake"):
        (tools / name).write_text(f"#!/bin/sh\n: >'{started}'; sleep 600\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    process = start_build(tmp_path / "runners", f"{tools}:{os.environ['PATH']}")
    wait_for(lambda: started.exists() or process.poll() is not None, "the build to start make", longest_s=120)
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert list(folder.glob(".part-*"))
    assert find_runner(tmp_path / "runners", host_runner.platform, "sme2_off", "timing") is None
    built = build_runner(host_runner.platform, tmp_path / "runners")
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


def test_a_missing_wheel_is_reported_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(WheelError, match=r"executorch is not installed for .*pip install"):
        build_runner(host_platform(), tmp_path / "runners")


def test_a_folder_that_cannot_be_written_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "runners").mkdir()
    (tmp_path / "runners" / host_platform()).touch()
    with pytest.raises(RunnerError, match=rf"the runner for {host_platform()} cannot be built: .* \(.*/runners/"):
        build_runner(host_platform(), tmp_path / "runners")


@pytest.mark.parametrize(
    "manifest",
    [None, "", "{}", "[]", '{"manifest_version": 2}', '{"manifest_version": 1, "kind": "wheel"}'],
)
def test_a_damaged_bundle_is_refused_in_one_sentence_and_not_found(copied: Runner, manifest: str | None) -> None:
    if manifest is None:
        (copied.folder / "lib").rename(copied.folder / "gone")
    else:
        (copied.folder / "manifest.json").write_text(manifest)
    words = "is not a complete runner bundle: No such file" if manifest is None else r"manifest\.json"
    with pytest.raises(RunnerError, match=words) as refused:
        read_runner(copied.folder)
    assert "\n" not in str(refused.value)
    assert find_runner(copied.folder.parent.parent, copied.platform, "sme2_off", "timing") is None
