"""`etfarm doctor`: a line for everything that is left or blocks a sweep, with what to do; it changes nothing."""

import os
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from devices.inventory import load_inventory, open_device
from devices.local import LocalDevice
from devices.ondevice.lease import acquire
from flows.setup.checks import CHECKS, prefect_server
from flows.setup.leftovers import clear_leftovers
from tasks.load.snapshot import publish_snapshot
from tasks.measure.health import Registry
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command
from tests.fixtures.warehouse import BundleMaker
from tests.lab.loopback import free_port

INVENTORY = "devices:\n  - {name: here, transport: local, root: %s}\n"
DEAD = 999_999_999  # above the largest process id


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "var").mkdir()
    return Workspace(tmp_path / "var")


@pytest.fixture
def doctor(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workspace: Workspace) -> Command:
    """Run `etfarm doctor` on a data folder, an inventory of this machine and an empty folder of temporary files."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(LocalDevice, "machine_folder", str(tmp_path / "machine"))
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(INVENTORY % (tmp_path / "device"), encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr("flows.setup.checks.CHECKS", ())  # of this machine; test_checks.py has them
    monkeypatch.setattr("flows.setup.checks.list_settings", lambda _: [])
    return lambda: command("doctor", "--inventory", inventory, "--data-dir", workspace.root)


@pytest.mark.fault
def test_what_the_next_sweep_clears_is_listed_and_needs_nobody(
    doctor: Command, workspace: Workspace, tmp_path: Path
) -> None:
    # given what a killed sweep leaves: a part folder, an archive, and a job; and what another machine may be writing
    part, tree = workspace.bundles / f".part-{DEAD}-x", tmp_path / "tmp" / f"etfarm-tree-{DEAD}-x"
    far = workspace.bundles / "smoke" / ".part-1-x@far"
    for folder in (part, tree, far, tmp_path / "device/jobs"):
        folder.mkdir(parents=True)
    (part / "large").write_bytes(b"x" * 2_000_000)
    (tmp_path / "device/jobs/1-1").touch()
    # when the doctor looks
    ended = doctor()
    # then each is a line that names the next sweep, and nothing was changed
    assert ended.lines == [
        f"note: {part}: left by a killed process (2 MB); the next sweep removes it",
        f"note: {tree}: left by a killed process (0 B); the next sweep removes it",
        f"note: {far}: far is writing it, or left it (0 B); the next sweep on far removes it, "
        "and any sweep after a day",
        "note: here: 1 job of a killed sweep; the next sweep that uses it ends them",
        "ok: 1 of 1 devices answer",
    ]
    assert (ended.code, part.exists()) == (0, True)
    # and the next sweep removes what is of this machine
    clear_leftovers(workspace)
    assert [path for path in (part, tree, far) if path.exists()] == [far]


@pytest.mark.fault
def test_what_needs_the_user_is_listed_with_what_to_do_and_the_exit_code_is_1(
    doctor: Command, workspace: Workspace, tmp_path: Path
) -> None:
    # given a device with a session folder and a snapshot: the device is in use, so nothing is left
    (tmp_path / "device/sessions/one").mkdir(parents=True)
    workspace.prefect_home.mkdir(parents=True)
    BundleMaker(workspace.warehouse.parent)
    publish_snapshot(workspace.warehouse, workspace.snapshots)
    (spec,) = load_inventory(tmp_path / "inventory.yaml").devices
    with open_device(spec) as device, acquire(device, "another farm"):
        assert doctor().lines == ["ok: 1 of 1 devices answer"]
    # when it is free and quarantined, a database was kept, and `current` is damaged
    Registry(workspace.registry).quarantine("here", "swollen battery")
    kept = workspace.prefect_home / "prefect.db.damaged-20261121T000000Z"
    kept.touch()
    (workspace.snapshots / "current").write_bytes(b"\xff\x00garbage")
    ended = doctor()
    # then each is a line with what to do
    assert (ended.code, len(ended.lines)) == (1, 5)
    wanted = [
        (f"{kept}: a damaged Prefect database", "remove it"),
        (f"{workspace.snapshots / 'current'}: ", "`etfarm warehouse load`"),
        ("here: quarantined until ", ": swollen battery; fix the cause, then `etfarm devices release here`"),
    ]
    for begin, way_on in wanted:
        assert any(line.startswith(f"fix: {begin}") and way_on in line for line in ended.lines), ended.lines
    # and folders that may be those of another data folder only have a note
    assert any(line.startswith("note: here: 1 session folder (") for line in ended.lines)


def test_a_fresh_folder_stays_empty(doctor: Command, workspace: Workspace) -> None:
    workspace.root.rmdir()
    assert doctor().code == 0
    assert not workspace.root.exists()


@pytest.mark.usefixtures("ssh_client")
def test_an_unreachable_device_and_server_are_found(
    doctor: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a server that refuses, and a device that cannot be reached
    port = free_port()
    entry = f"{{name: gone, transport: ssh, address: 127.0.0.1, port: {port}, user: nobody, root: /tmp/x}}"
    (tmp_path / "inventory.yaml").write_text(f"devices: [{entry}]\n", encoding="utf-8")
    url = f"http://127.0.0.1:{port}/api"
    monkeypatch.setenv("PREFECT_API_URL", url)
    monkeypatch.setattr("flows.setup.checks.CHECKS", [each for each in CHECKS if each is prefect_server])
    # when the doctor looks, then both are named with the cause
    with temporary_settings({PREFECT_API_URL: url}):
        ended = doctor()
    assert ended.code == 1, ended.err
    device, server = ended.lines
    assert server.startswith(f"fix: PREFECT_API_URL {url}: Connection refused; ")
    assert device.startswith("fix: gone: cannot reach nobody@127.0.0.1:")
