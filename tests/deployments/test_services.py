"""The units of systemd and launchd, and the file with their environment."""

import os
import plistlib
import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.fixtures.paths import ROOT

FOLDER = ROOT / "deployments/services"
UNITS = sorted(FOLDER.glob("*.service"))
EXAMPLE = (FOLDER / "etfarm.env.example").read_text(encoding="utf-8")


def read(unit: Path) -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(unit.read_text(encoding="utf-8"))
    return parser


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_the_unit(unit: Path, tmp_path: Path) -> None:
    # given the units beside each other, for a checkout whose programs exist
    programs = tmp_path / "opt/.venv/bin"
    programs.mkdir(parents=True)
    for name in ("etfarm", "prefect"):
        (programs / name).touch(mode=0o755)
    for each in UNITS:
        text = each.read_text(encoding="utf-8").replace("/opt/etfarm", str(tmp_path / "opt"))
        (tmp_path / each.name.replace("@", "@lab-a")).write_text(text, encoding="utf-8")
    # when systemd reads them
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit.name.replace("@", "@lab-a"))],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SYSTEMD_LOG_LEVEL": "warning"},
    )
    # then it reports nothing about ours
    about = [line for line in verified.stderr.splitlines() if str(tmp_path) in line or "etfarm" in line]
    assert about == []
    assert verified.returncode == 0, verified.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_service_runs_as_its_own_user_with_the_environment_of_one_file(unit: Path) -> None:
    service = read(unit)["Service"]
    assert service["User"] == "etfarm"
    assert service["EnvironmentFile"] == "/etc/etfarm/etfarm.env"
    assert service["WorkingDirectory"] == "/opt/etfarm"
    assert "Environment" not in service


@pytest.mark.parametrize("name", ["etfarm-server.service", "etfarm-worker.service", "etfarm-lab@.service"])
def test_server_and_workers_are_started_again(name: str) -> None:
    assert read(FOLDER / name)["Service"]["Restart"] == "always"


def test_a_stopped_worker_has_time_to_end_its_sweep() -> None:
    for name in ("etfarm-worker.service", "etfarm-lab@.service"):
        service = read(FOLDER / name)["Service"]
        assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")
        assert int(service["TimeoutStopSec"]) > 60
    plist = plistlib.loads((FOLDER / "org.etfarm.lab.plist").read_bytes())
    assert plist["ExitTimeOut"] > 60


def test_the_lab_of_a_mac_reads_the_same_environment_and_passes_its_name(tmp_path: Path) -> None:
    plist = plistlib.loads((FOLDER / "org.etfarm.lab.plist").read_bytes())
    assert plist["KeepAlive"] is True
    # given the example file, and a program in etfarm's place that prints what it gets
    (tmp_path / "etfarm.env").write_text(EXAMPLE, encoding="utf-8")
    program = tmp_path / "etfarm"
    program.write_text('#!/bin/sh\necho "$PREFECT_API_URL $*"\n', encoding="utf-8")
    program.chmod(0o755)
    words = [
        word.replace("/etc/etfarm/etfarm.env", str(tmp_path / "etfarm.env")).replace(
            "/opt/etfarm/.venv/bin/etfarm", str(program)
        )
        for word in plist["ProgramArguments"]
    ]
    # when launchd's command runs
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    # then it has the environment and its name
    assert ended.stdout == "http://127.0.0.1:4200/api server lab berlin\n"


def test_the_variables_that_the_manual_lists_are_in_the_environment() -> None:
    manual = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    section = manual.partition("## Every night")[2].partition("\n##")[0]
    listed = set(re.findall(r"\b(PREFECT_\w+)=", section))
    assert "PREFECT_API_URL" in listed
    assert listed - set(re.findall(r"^(\w+)=", EXAMPLE, re.MULTILINE)) == set()


def test_the_example_contains_no_secret() -> None:
    secrets = re.findall(r"^(#?)\w*AUTH\w*=(.*)$", EXAMPLE, re.MULTILINE)
    assert secrets == [("#", "'farm:replace me'"), ("#", "'farm:replace me'")]
