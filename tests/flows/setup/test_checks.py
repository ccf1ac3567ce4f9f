"""What `etfarm doctor` checks of the set-up, Prefect, adb and SSH: a line for each, with what to do."""

import contextlib
import os
import sys
import threading
import time
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import prefect
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.settings import PREFECT_API_URL, temporary_settings

from devices.inventory import DeviceSpec, Inventory, open_device
from devices.retry import probe
from devices.settings import FILE
from flows.setup import checks as setup_checks
from flows.setup import connections
from flows.setup.leftovers import Finding
from tasks.runner.toolchain import host_platform
from tasks.store.workspace import Workspace
from tests.fixtures.devices import ADB_OVER_SSH
from tests.fixtures.http_server import Quiet, answering, serving
from tests.fixtures.paths import ROOT
from tests.fixtures.stand_in import publish_stand_in
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.lab.loopback import free_port
from tests.lab.unusable_phone import UnusablePhone

HERE = DeviceSpec(name="here", transport="local")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "var").mkdir()
    return Workspace(tmp_path / "var")


def text_of(findings: list[Finding]) -> str:
    """The only line; it needs the user if, and only if, it begins with `fix: `."""
    (finding,) = findings
    assert finding.text.startswith("fix: " if finding.needs_user else "ok: ")
    return finding.text


def test_the_pinned_pair_is_right_another_is_named_with_the_pinned_one_and_none_cannot_export(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = dict(line.split("==") for line in project["optional-dependencies"]["export"] if "==" in line)
    pinned = f"executorch {pins['executorch']}, torch {pins['torch']}"
    told = {
        f"{pins['torch']}+cpu": f"ok: {pinned}",
        "2.1.0": f"fix: executorch {pins['executorch']}, torch 2.1.0; pinned are {pinned}: run `pip install",
    }
    for torch, line in told.items():
        for name, version in (("executorch", pins["executorch"]), ("torch", torch)):
            described = tmp_path / torch / f"{name}-{version}.dist-info"
            described.mkdir(parents=True)
            (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        monkeypatch.syspath_prepend(tmp_path / torch)
        assert text_of(setup_checks.versions(workspace, [HERE])).startswith(line)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    text = text_of(setup_checks.versions(workspace, [HERE]))
    assert text.startswith("ok: executorch and torch are not installed: this machine cannot export models; ")


def test_each_setting_has_a_line_with_its_value_and_origin_and_secrets_are_masked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("ETFARM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    FILE.write_text("notify: slack://secret-token\nsite: berlin\n", encoding="utf-8")
    FILE.chmod(0o600)
    monkeypatch.setenv("ETFARM_BUNDLES", "s3://farm/bundles")
    monkeypatch.setenv("ETFARM_REPORT_URL", "https://me:secret-password@farm.org")
    lines = [finding.text for finding in setup_checks.list_settings({"data_dir": Path("/srv/farm")})]
    assert lines == [
        "bundles = s3://farm/bundles (ETFARM_BUNDLES)",
        "data_dir = /srv/farm (--data-dir)",
        "inventory = this machine, built in (default)",
        *(f"{name} = not set (default)" for name in ("log", "metrics")),
        "notify = ********** (etfarm.yaml:1)",
        "report_url = https://***@farm.org (ETFARM_REPORT_URL)",
        "site = berlin (etfarm.yaml:2)",
        *(f"{name} = not set (default)" for name in ("site_url", "warehouse")),
    ]


@pytest.mark.parametrize(
    ("check", "measured", "line"),
    [
        ("open_files", (144, 144), "ok: 144 open files allowed, 144 needed (devices: 1)"),
        ("open_files", (143, 200), "fix: 143 open files allowed, 144 needed (devices: 1); run `ulimit -n 144` before"),
        (
            "open_files",
            (100, 120),
            "fix: 100 open files allowed, 144 needed (devices: 1); raise this user's hard limit, 120,",
        ),
        ("disk", 5e9, "ok: 5.0 GB free in "),
        ("disk", 4.9e9, "fix: 4.9 GB free in "),
        ("server_clock", 120.0, "ok: the clock agrees with the Prefect server's"),
        (
            "server_clock",
            -121.0,
            "fix: this machine's clock is 121 s behind the Prefect server's; set the one that is wrong",
        ),
        ("server_clock", 3600.0, "fix: this machine's clock is 3600 s ahead of the Prefect server's; set"),
    ],
)
def test_open_files_and_disk_must_suffice_and_the_clock_may_differ_by_two_minutes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, check: str, measured: Any, line: str
) -> None:
    usage = SimpleNamespace(free=measured)
    monkeypatch.setattr("flows.setup.checks.resource.getrlimit", lambda _: measured)
    monkeypatch.setattr("flows.setup.checks.shutil.disk_usage", lambda _: usage)
    monkeypatch.setattr(setup_checks, "clock_difference_s", lambda: measured)
    assert text_of(getattr(setup_checks, check)(workspace, [HERE])).startswith(line)


def test_a_bundle_from_the_future_means_a_wrong_clock(workspace: Workspace) -> None:
    assert setup_checks.clock(workspace, [HERE]) == []
    record = workspace.bundles / "smoke" / "one" / "session.json"
    record.parent.mkdir(parents=True)
    record.touch()
    assert text_of(setup_checks.clock(workspace, [HERE])) == "ok: the clock is not behind the newest bundle"
    tomorrow = time.time() + 86_400
    os.utime(record, (tomorrow, tomorrow))
    newest = f"fix: the newest bundle in {workspace.bundles} is 86"
    assert text_of(setup_checks.clock(workspace, [HERE])).startswith(newest)


def test_a_missing_compiler_is_named_with_what_to_install_unless_the_runner_exists(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = text_of(setup_checks.compilers(workspace, [HERE]))
    assert text.startswith(f"fix: {host_platform()}: no C++ compiler on PATH to build the runner with; install it with")
    runner = publish_stand_in(workspace.runners, "exit 0\n")
    spec = DeviceSpec.model_validate({"name": "x", "transport": "local", "platform": runner.platform})
    text = text_of(setup_checks.compilers(workspace, [spec]))
    assert text.startswith(f"ok: {spec.platform}: runners are in {workspace.runners / runner.platform} (1); to build")


def test_a_check_that_hangs_is_a_line_and_the_others_still_report(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a check that does not end, beside one that does
    released = threading.Event()

    def hangs(*_: object) -> list[Finding]:
        released.wait()
        return []

    monkeypatch.setattr(setup_checks, "CHECKS", (hangs, lambda *_: [Finding("ok: here", needs_user=False)]))
    monkeypatch.setattr(setup_checks, "_MAX_CHECK_S", ENOUGH_S / 100)
    # when all are run, then both have a line
    late, other = setup_checks.check_setup(workspace, Inventory(devices=[HERE]))
    released.set()
    assert late.text.startswith("fix: the check `hangs` did not end within ")
    assert (late.needs_user, other.text) == (True, "ok: here")


def test_a_prefect_server_of_another_version_is_named_with_both_versions(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(200, '"3.1.0"') as api, temporary_settings({PREFECT_API_URL: api}):
        monkeypatch.setenv("PREFECT_API_URL", api)
        text = text_of(setup_checks.prefect_server(workspace, [HERE]))
    assert text.startswith(f"fix: the Prefect server is 3.1.0, the client of this machine {prefect.__version__}; ")


@pytest.mark.thorough
def test_a_prefect_server_of_this_version_is_right_and_a_worker_is_one_with_a_heartbeat(
    workspace: Workspace, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", server)
    monkeypatch.setattr(setup_checks, "POOL", "farm")  # other tests use the pool of the farm at the same server
    text = text_of(setup_checks.prefect_server(workspace, [HERE]))
    assert text.startswith(f"ok: Prefect server {prefect.__version__} answers")
    # given a server without the work pool
    worker = partial(setup_checks.prefect_worker, workspace, [HERE])
    assert text_of(worker()).startswith("fix: 0 workers of the work pool `farm` online (never a heartbeat): scheduled ")
    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="farm", type="process"))
        try:
            # when a worker sends a heartbeat, and then no more, then it is counted, and later missed
            client.send_worker_heartbeat("farm", "lab", heartbeat_interval_seconds=3600)
            assert text_of(worker()) == "ok: 1 of 1 workers of the work pool `farm` online"
            client.send_worker_heartbeat("farm", "lab", heartbeat_interval_seconds=1)
            offline = wait_for(lambda: [each for each in worker() if each.needs_user], "the worker stayed online")
        finally:
            client.delete_work_pool("farm")
    assert "0 workers of the work pool `farm` online (last heartbeat 2" in text_of(offline)


def test_an_adb_server_that_does_not_run_is_started_by_a_sweep(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADBUTILS_ADB_PATH", "/opt/platform-tools/adb")
    port = free_port()
    phone = DeviceSpec(name="phone", transport="adb", serial="ABC", adb_server_port=port)
    text = text_of(connections.adb(workspace, [HERE, phone]))
    assert text == f"ok: no adb server on port {port}; a sweep starts /opt/platform-tools/adb"


def test_another_program_on_the_port_of_the_adb_server_is_found(workspace: Workspace) -> None:
    closing = type("Closing", (Quiet,), {"handle": lambda _: None})
    with serving(closing) as port:
        phone = DeviceSpec(name="phone", transport="adb", serial="ABC", adb_server_port=port)
        text = text_of(connections.adb(workspace, [phone]))
    assert text.startswith(f"fix: what listens on port {port} does not answer as an adb server (")


@pytest.mark.lab
@pytest.mark.parametrize(("transport", "where"), [("adb", ""), (ADB_OVER_SSH, " of 127.0.0.1")])
def test_a_connected_phone_is_counted_where_it_is_connected(
    workspace: Workspace, make_spec: Callable[..., DeviceSpec], transport: str, where: str
) -> None:
    spec = make_spec(transport)
    with open_device(spec) as device:
        probe(device)
    text = text_of(connections.adb(workspace, [spec]))
    assert text == f"ok: 1 of 1 phones connected to the adb server on port {spec.adb_server_port}{where}"
    if where:  # a host without an adb server gets one when a sweep needs it
        port = free_port()
        text = text_of(connections.adb(workspace, [make_spec(transport, adb_server_port=port)]))
        assert text == f"ok: no adb server on port {port} of 127.0.0.1; a sweep starts it there"


@pytest.mark.lab
@pytest.mark.parametrize(
    ("silent", "state", "remedy"),
    [(False, "unauthorized", "unlock it and confirm the request"), (True, "offline", "reconnect its cable")],
)
def test_a_phone_that_cannot_be_used_is_named_with_what_to_do_on_it(
    workspace: Workspace, adb_port: int, silent: bool, state: str, remedy: str
) -> None:
    from adbutils import AdbClient, AdbTimeout

    with UnusablePhone(silent=silent) as phone:
        # given a phone that the adb server lists but cannot use
        client = AdbClient(port=adb_port)
        with contextlib.suppress(AdbTimeout):  # it would wait for the silent one
            client.connect(phone.serial, timeout=0.5)
        wait_for(lambda: (phone.serial, state) in [(each.serial, each.state) for each in client.list()], state)
        # when its set-up is checked, then it is named with what to do on it
        spec = DeviceSpec(name="new", transport="adb", address=phone.serial, adb_server_port=adb_port)
        text = text_of(connections.adb(workspace, [spec]))
        client.disconnect(phone.serial)
    assert text.startswith(f"fix: new: {state} at the adb server on port {adb_port}; {remedy}")


@pytest.mark.usefixtures("ssh_client")
def test_each_cause_is_one_line_with_its_fix_also_if_it_concerns_several_devices(
    workspace: Workspace, tmp_path: Path
) -> None:
    # given two phones of a host that is off, a host whose key file is missing, and this machine
    inventory = tmp_path / "inventory.yaml"
    phone = "transport: adb, via: 'farm@127.0.0.1:2'"
    entries = [
        *(f"{{name: {name}, serial: {name}, {phone}}}" for name in ("one", "two")),
        "{name: keyless, transport: ssh, address: 127.0.0.1, identity_file: /none}",
        f"{{name: here, transport: local, root: {tmp_path}/device}}",
    ]
    inventory.write_text(f"devices: [{', '.join(entries)}]\n", encoding="utf-8")
    # when all is checked, then each cause is named once
    texts = [finding.text for finding in setup_checks.check_all(workspace, inventory)]
    (off,) = [text for text in texts if "127.0.0.1:2" in text]
    assert off.startswith("fix: one, two: host 127.0.0.1: cannot reach farm@127.0.0.1:2 (")
    assert off.endswith("; start its SSH server (macOS: Remote Login), or correct its `port`")
    assert "fix: keyless: the private key /none does not exist; correct its `identity_file`" in texts
    assert "ok: 1 of 4 devices answer" in texts


def test_a_missing_inventory_is_a_line_and_the_other_checks_still_report(workspace: Workspace, tmp_path: Path) -> None:
    first, *others = setup_checks.check_all(workspace, tmp_path / "none.yaml")
    assert first.text.startswith(f"fix: {tmp_path}/none.yaml: no such inventory; pass another with --inventory")
    assert any(finding.text.startswith("ok: ") for finding in others)
