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
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    # given the units beside each other, for a checkout whose programs exist
    programs = tmp_path / "opt/.venv/bin"
    programs.mkdir(parents=True)
    for name in ("etfarm", "prefect"):
        (programs / name).touch(mode=0o755)
    files = [tmp_path / unit.name.replace("@", "@lab-a") for unit in UNITS]
    for unit, file in zip(UNITS, files, strict=True):
        file.write_text(
            unit.read_text(encoding="utf-8").replace("/opt/etfarm", str(tmp_path / "opt")), encoding="utf-8"
        )
    # when systemd reads them, then it reports nothing about ours
    words, environment = (
        ["systemd-analyze", "verify", "--man=no", *map(str, files)],
        os.environ | {"SYSTEMD_LOG_LEVEL": "warning"},
    )
    verified = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    about = [line for line in verified.stderr.splitlines() if str(tmp_path) in line or "etfarm" in line]
    assert about == []
    assert verified.returncode == 0, verified.stderr


def test_a_service_runs_as_its_own_user_is_started_again_and_has_time_to_end_its_sweep() -> None:
    services = {unit.stem: read(unit)["Service"] for unit in UNITS}
    for service in services.values():
        assert service["User"] == "etfarm"
        assert service["EnvironmentFile"] == "/etc/etfarm/etfarm.env"
        assert service["WorkingDirectory"] == "/opt/etfarm"
        assert "Environment" not in service
    assert {services[name]["Restart"] for name in ("etfarm-server", "etfarm-worker", "etfarm-lab@")} == {"always"}
    for service in (services["etfarm-worker"], services["etfarm-lab@"]):
        assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")
        assert int(service["TimeoutStopSec"]) > 60


def test_the_lab_of_a_mac_reads_the_same_environment_and_passes_its_name(tmp_path: Path) -> None:
    plist = plistlib.loads((FOLDER / "org.etfarm.lab.plist").read_bytes())
    assert plist["KeepAlive"] is True
    assert plist["ExitTimeOut"] > 60
    # given the example file, and a program in etfarm's place that prints what it gets
    (tmp_path / "etfarm.env").write_text(EXAMPLE, encoding="utf-8")
    program = tmp_path / "etfarm"
    program.write_text('#!/bin/sh\necho "$PREFECT_API_URL $*"\n', encoding="utf-8")
    program.chmod(0o755)
    # when launchd's command runs
    here = {"/etc/etfarm/etfarm.env": str(tmp_path / "etfarm.env"), "/opt/etfarm/.venv/bin/etfarm": str(program)}
    words = [re.sub("|".join(here), lambda match: here[match[0]], word) for word in plist["ProgramArguments"]]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    # then it has the environment and its name
    assert ended.stdout == "http://127.0.0.1:4200/api server lab berlin\n"


def test_the_variables_that_the_manual_lists_are_in_the_environment_and_no_secret_is() -> None:
    manual = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    section = manual.partition("## Every night")[2].partition("\n##")[0]
    listed = set(re.findall(r"\b(PREFECT_\w+)=", section))
    assert "PREFECT_API_URL" in listed
    assert listed - set(re.findall(r"^(\w+)=", EXAMPLE, re.MULTILINE)) == set()
    secrets = re.findall(r"^(#?)\w*AUTH\w*=(.*)$", EXAMPLE, re.MULTILINE)
    assert secrets == [("#", "'farm:replace me'")] * 2
