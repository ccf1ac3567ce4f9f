"""Registered runners: checked, hashed, and preferred to those that the farm builds."""

import shutil
from pathlib import Path

import pytest

from tasks.runner.manifest import Runner, RunnerError, find_earlier_runner, find_runner, read_runner
from tasks.runner.register import register_runner
from tasks.runner.toolchain import host_platform

pytestmark = pytest.mark.torch

PROVENANCE = "executorch 1.5.1, built with EXECUTORCH_ENABLE_EVENT_TRACER=ON"


def register(source: Path, runners: Path, **changed: str) -> Runner:
    usual = {"platform": host_platform(), "variant": "sme2_off", "mode": "trace", "provenance": PROVENANCE}
    return register_runner(source, runners, **(usual | changed))


@pytest.fixture
def source(host_runner: Runner, tmp_path: Path) -> Path:
    """A folder with a program that works and its libraries, as a user would register it."""
    return shutil.copytree(host_runner.folder, tmp_path / "user's build")


def test_a_registered_runner_is_a_bundle_with_its_provenance_and_the_libraries_that_it_needs(
    source: Path, host_runner: Runner, tmp_path: Path
) -> None:
    runner = register(source, tmp_path / "runners")
    assert read_runner(runner.folder) == runner
    assert (runner.kind, runner.variants, runner.modes) == ("registered", ["sme2_off"], ["trace"])
    assert (runner.provenance, runner.needs) == (PROVENANCE, host_runner.needs)
    assert not runner.supports_farm_flags
    assert {"executor_runner", "lib/libexecutorch.so"} <= set(runner.files) or host_platform() == "macos-arm64"
    # and is found for its platform, variant and mode only
    uses = [("sme2_off", "trace"), ("sme2_on", "trace"), ("sme2_off", "timing"), ("sme2_off", "numerics")]
    assert [find_runner(tmp_path / "runners", host_platform(), *use) for use in uses] == [runner, None, None, None]
    assert find_runner(tmp_path / "runners", "amiga", "sme2_off", "trace") is None


def test_a_registered_runner_comes_before_one_that_was_built_here(
    source: Path, host_runner: Runner, tmp_path: Path
) -> None:
    runners = tmp_path / "runners"
    (source / "note.txt").write_text("makes other bytes than the built one")
    registered = register(source, runners, mode="timing")
    built = runners / host_runner.platform / host_runner.folder.name
    shutil.copytree(host_runner.folder, built)
    assert find_runner(runners, host_platform(), "sme2_off", "timing") == registered
    # and each is found by its hash for a measurement of an earlier night, as long as it is there
    found = find_earlier_runner(runners, host_platform(), host_runner.runner_sha256, "sme2_off")
    assert found.folder == built
    with pytest.raises(RunnerError, match=r"^its runner \(00000000\) is not in .* any more$"):
        find_earlier_runner(runners, host_platform(), "0" * 64, "sme2_off")


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
def test_an_unknown_option_is_refused_with_the_valid_ones(
    source: Path, tmp_path: Path, changed: dict[str, str], message: str
) -> None:
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
