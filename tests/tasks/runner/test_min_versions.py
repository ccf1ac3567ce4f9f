"""The oldest libraries that a runner starts with, and devices that have older ones."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from devices.ondevice.facts import Facts
from tasks.measure.session.context import add_runner_facts
from tasks.runner.manifest import Runner
from tasks.runner.min_versions import min_versions, why_too_old
from tests.fixtures.stand_in import GOOD, a_farm_context, measured

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at a Linux runner")


def largest(names: list[str]) -> str:
    return max(names, key=lambda version: [int(part) for part in version.split(".")])


@linux
@pytest.mark.torch
def test_the_minimum_versions_of_a_built_runner_are_those_that_its_files_declare(host_runner: Runner) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed (binutils)")
    # given the versions that readelf finds in the program and in its libraries
    files = [str(path) for path in host_runner.folder.rglob("*") if path.name != "manifest.json" and path.is_file()]
    text = subprocess.run(["readelf", "--wide", "--version-info", *files], capture_output=True, text=True).stdout
    needed = re.findall(r"Name: (GLIBC|GLIBCXX)_([0-9.]+) +Flags", text)
    # then the manifest has the largest of each
    expected = {key.lower(): largest([version for name, version in needed if name == key]) for key in dict(needed)}
    assert set(expected) == {"glibc", "glibcxx"}
    assert host_runner.needs == expected


@linux
@pytest.mark.torch
def test_libraries_in_the_bundle_do_not_count(host_runner: Runner, tmp_path: Path) -> None:
    bundle = shutil.copytree(host_runner.folder, tmp_path / "bundle")
    (bundle / "lib" / "libstdc++.so.6").touch()
    assert set(min_versions(bundle)) == {"glibc"}
    for name in "libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1":
        (bundle / "lib" / name).touch()
    assert min_versions(bundle) == {}


OLD = Facts(os="linux", glibc="2.31", glibcxx="3.4.9")


@pytest.mark.parametrize(
    ("needs", "facts", "cause"),
    [
        ({"glibc": "2.34"}, OLD, r"pi has glibc 2\.31, but its runner \([0-9a-f]{8}\) needs 2\.34; on a machine"),
        ({"glibc": "2.4", "glibcxx": "3.4.22"}, OLD, r"pi has libstdc\+\+ with GLIBCXX 3\.4\.9, but .* needs 3\.4\.22"),
        ({"glibc": "2.31", "glibcxx": "3.4.9"}, OLD, None),
        ({"glibc": "2.31.1"}, OLD, r"needs 2\.31\.1;"),
        ({"glibc": "2.34"}, Facts(os="linux"), None),
        ({"glibc": "2.34"}, Facts(os="android"), None),
        ({"macos": "14.0"}, Facts(os="macos", os_version="13.6.1"), r"pi has macOS 13\.6\.1, .* needs 14\.0; update"),
        ({"macos": "14.0"}, Facts(os="macos", os_version="14.0"), None),
        ({"macos": "14.0"}, Facts(os="linux", os_version="Debian 12"), None),
        ({}, OLD, None),
    ],
)
def test_a_device_is_too_old_only_if_it_has_less_than_the_runner_needs(
    tmp_path: Path, needs: dict[str, str], facts: Facts, cause: str | None
) -> None:
    runner = replace(a_farm_context(tmp_path, GOOD).runner, needs=needs)
    reason = why_too_old(runner, "pi", facts)
    if cause is None:
        assert reason is None
    else:
        assert reason
        assert re.search(cause, reason)


@pytest.mark.fault
def test_a_device_that_is_too_old_fails_its_sessions_before_anything_is_pushed(tmp_path: Path) -> None:
    # given a runner whose manifest needs a C library that no machine has yet
    context = a_farm_context(tmp_path, GOOD)
    context = replace(context, runner=replace(context.runner, needs={"glibc": "99.1"}), facts=OLD)
    # when it is asked for SME2, and a session is measured
    facts = add_runner_facts(context.runner, context.device, context.spec, context.facts)
    record = measured(tmp_path, context)
    # then the session fails with the sentence, and the device got neither runner nor model
    assert facts == OLD
    assert (record.status, record.reason_code) == ("failed", "device_too_old")
    assert record.reason == why_too_old(context.runner, "local", OLD)
    assert [path for path in (tmp_path / "root").rglob("*") if path.is_file()] == []
