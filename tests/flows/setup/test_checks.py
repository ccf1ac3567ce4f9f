"""What `etfarm doctor` checks of the set-up: a wrong one is a line with what to do, a right one a line, too."""

import os
import shutil
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

from devices.inventory import DeviceSpec
from flows.setup import checks as setup_checks
from flows.setup import connections
from flows.setup.leftovers import Finding
from tasks.runner.toolchain import host_platform
from tasks.store.workspace import Workspace
from tests.fixtures.findings import text_of
from tests.fixtures.paths import ROOT
from tests.fixtures.stand_in import publish_stand_in
from tests.fixtures.waiting import ENOUGH_S

HERE = DeviceSpec(name="here", transport="local")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "var").mkdir()
    return Workspace(tmp_path / "var")


def install(folder: Path, **versions: str) -> None:
    for name, version in versions.items():
        described = folder / f"{name}-{version}.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_the_pinned_pair_is_right_and_another_is_named_with_the_pinned_one(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = dict(line.split("==") for line in project["optional-dependencies"]["export"] if "==" in line)
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    for folder, torch in ((right, f"{pins['torch']}+cpu"), (wrong, "2.1.0")):
        folder.mkdir()
        install(folder, executorch=pins["executorch"], torch=torch)
    monkeypatch.syspath_prepend(right)
    assert text_of(setup_checks.versions(workspace, [HERE])).startswith(f"ok: executorch {pins['executorch']}, torch ")
    monkeypatch.syspath_prepend(wrong)
    assert text_of(setup_checks.versions(workspace, [HERE])) == (
        f"fix: executorch {pins['executorch']}, torch 2.1.0; "
        f"pinned are executorch {pins['executorch']}, torch {pins['torch']}: run `pip install '.[export]'`"
    )


def test_a_machine_without_the_export_extra_is_right_but_cannot_export(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    text = text_of(setup_checks.versions(workspace, [HERE]))
    assert text.startswith("ok: executorch and torch are not installed: this machine cannot export models; ")


def test_the_settings_of_the_environment_are_listed_without_secrets(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("ETFARM_")]:
        monkeypatch.delenv(name)
    assert setup_checks.set_variables(workspace, [HERE]) == []
    monkeypatch.setenv("ETFARM_NOTIFY", "slack://secret-token")
    monkeypatch.setenv("ETFARM_BUNDLES", "s3://farm/bundles")
    assert text_of(setup_checks.set_variables(workspace, [HERE])) == (
        "ok: settings of the environment: ETFARM_BUNDLES=s3://farm/bundles, ETFARM_NOTIFY=**********"
    )


@pytest.mark.parametrize(
    ("soft", "hard", "line"),
    [
        (144, 144, "ok: 144 open files allowed, 144 needed (devices: 1)"),
        (100, 200, "fix: 100 open files allowed, 144 needed (devices: 1); run `ulimit -n 144` before etfarm"),
        (100, 120, "fix: 100 open files allowed, 144 needed (devices: 1); raise this user's hard limit, 120, as the "),
    ],
)
def test_the_limit_of_open_files_must_suffice_for_the_devices(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, line: str
) -> None:
    monkeypatch.setattr("flows.setup.checks.resource.getrlimit", lambda _: (soft, hard))
    assert text_of(setup_checks.open_files(workspace, [HERE])).startswith(line)


@pytest.mark.parametrize(
    ("free", "line"), [(5e9, "ok: 5.0 GB free in {}"), (2.1e9, "fix: 2.1 GB free in {}, 5 GB needed; ")]
)
def test_the_disk_of_the_var_folder_needs_space(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, free: float, line: str
) -> None:
    monkeypatch.setattr("flows.setup.checks.shutil.disk_usage", lambda _: shutil._ntuple_diskusage(9, 9, int(free)))
    assert text_of(setup_checks.disk(workspace, [HERE])).startswith(line.format(workspace.root))


@pytest.mark.parametrize(
    ("ahead_s", "line"),
    [
        (None, None),
        (120.0, "ok: the clock agrees with the Prefect server's"),
        (-121.0, "fix: this machine's clock is 121 s behind the Prefect server's; set the one that is wrong, for "),
        (3600.0, "fix: this machine's clock is 3600 s ahead of the Prefect server's; set the one that is wrong, for "),
    ],
)
def test_the_clock_may_differ_from_the_server_s_by_two_minutes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, ahead_s: float | None, line: str | None
) -> None:
    monkeypatch.setattr(setup_checks, "clock_difference_s", lambda: ahead_s)
    findings = setup_checks.server_clock(workspace, [HERE])
    assert [each.text[: len(line or "")] for each in findings] == ([line] if line else [])


def test_a_bundle_from_the_future_means_a_wrong_clock(workspace: Workspace) -> None:
    assert setup_checks.clock(workspace, [HERE]) == []
    record = workspace.bundles / "smoke" / "one" / "session.json"
    record.parent.mkdir(parents=True)
    record.touch()
    assert text_of(setup_checks.clock(workspace, [HERE])) == "ok: the clock is not behind the newest bundle"
    tomorrow = time.time() + 86_400
    os.utime(record, (tomorrow, tomorrow))
    text = text_of(setup_checks.clock(workspace, [HERE]))
    assert text.startswith(f"fix: the newest bundle in {workspace.bundles} is 86")
    assert text.endswith(" s in the future; correct this machine's clock, for example with NTP")


def test_a_missing_compiler_is_named_with_what_to_install(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = text_of(setup_checks.compilers(workspace, [HERE]))
    assert text.startswith(f"fix: {host_platform()}: no C++ compiler on PATH to build the runner with; install it with")


def test_a_runner_that_exists_needs_no_compiler(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = publish_stand_in(workspace.runners, "exit 0\n")
    spec = DeviceSpec.model_validate({"name": "x", "transport": "local", "platform": runner.platform})
    monkeypatch.setenv("PATH", str(tmp_path))
    text = text_of(setup_checks.compilers(workspace, [spec]))
    assert text.startswith(
        f"ok: {spec.platform}: runners are in {workspace.runners / runner.platform} (1); to build new"
    )


@pytest.mark.torch
@pytest.mark.skipif(not (shutil.which("g++") and shutil.which("make")), reason="no C++ compiler or make")
def test_a_compiler_is_named_once_for_each_platform(workspace: Workspace) -> None:
    same = DeviceSpec(name="same", transport="ssh", address="x", platform=host_platform())
    unknown = DeviceSpec(name="unknown", transport="ssh", address="x")
    text = text_of(setup_checks.compilers(workspace, [HERE, same, unknown]))
    assert text.startswith(f"ok: {host_platform()}: a runner can be built with ")


def test_a_check_that_hangs_is_a_line_and_the_others_still_report(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a check that does not end, beside one that does
    released = threading.Event()

    def hangs(_places: Workspace, _devices: connections.Devices) -> list[Finding]:
        released.wait()
        return []

    def ends(_places: Workspace, devices: connections.Devices) -> list[Finding]:
        return [Finding(f"ok: {devices[0].name}", needs_user=False)]

    monkeypatch.setattr(setup_checks, "CHECKS", (hangs, ends))
    monkeypatch.setattr(setup_checks, "_MAX_CHECK_S", ENOUGH_S / 30)
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text("devices: [{name: here, transport: local}]\n")
    # when all are run
    late, other = setup_checks.check_setup(workspace, inventory)
    released.set()
    # then both have a line
    assert late.text.startswith("fix: the check `hangs` did not end within ")
    assert late.needs_user
    assert other.text == "ok: here"
