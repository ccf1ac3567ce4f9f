"""What `etfarm doctor` checks of Prefect, adb and SSH: a line for each, with what to do."""

import contextlib
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path

import paramiko
import prefect
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.settings import PREFECT_API_URL, temporary_settings

from devices.inventory import DeviceSpec, open_device, ssh_address
from devices.retry import probe
from flows.setup import checks as setup_checks
from flows.setup import connections
from tasks.store.workspace import Workspace
from tests.fixtures.devices import ADB_OVER_SSH
from tests.fixtures.findings import text_of
from tests.fixtures.http_server import answering
from tests.fixtures.waiting import wait_for
from tests.lab.loopback import free_port
from tests.lab.unusable_phone import UnusablePhone

HERE = DeviceSpec(name="here", transport="local")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "var").mkdir()
    return Workspace(tmp_path / "var")


def test_without_a_server_phones_and_ssh_hosts_none_of_them_is_checked(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    assert setup_checks.prefect_server(workspace, [HERE]) == []
    assert setup_checks.prefect_worker(workspace, [HERE]) == []
    assert connections.adb(workspace, [HERE]) == []
    assert connections.ssh(workspace, [HERE]) == []


def test_a_prefect_server_of_another_version_is_named_with_both_versions(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a stand-in for a server of another version, which cannot be installed beside this one
    with answering(200, '"3.1.0"') as api, temporary_settings({PREFECT_API_URL: api}):
        monkeypatch.setenv("PREFECT_API_URL", api)
        text = text_of(setup_checks.prefect_server(workspace, [HERE]))
    ours = prefect.__version__
    assert text == (
        f"fix: the Prefect server is 3.1.0, the client of this machine {ours}; "
        f"install prefect {ours} for the server and restart it"
    )


@pytest.mark.thorough
def test_a_prefect_server_of_this_version_is_right_and_a_worker_is_one_with_a_heartbeat(
    workspace: Workspace, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = prefect.__version__
    monkeypatch.setenv("PREFECT_API_URL", server)
    monkeypatch.setattr(setup_checks, "POOL", "farm")  # other tests use the pool of the farm at the same server
    with get_client(sync_client=True) as client:
        # given a server without the work pool
        assert text_of(setup_checks.prefect_server(workspace, [HERE])).startswith(f"ok: Prefect server {ours} answers")
        never = "fix: 0 workers of the work pool `farm` online (never a heartbeat): scheduled sweeps will not start; "
        assert text_of(setup_checks.prefect_worker(workspace, [HERE])).startswith(never)
        client.create_work_pool(WorkPoolCreate(name="farm", type="process"))
        try:
            # when a worker sends a heartbeat, and then no more
            client.send_worker_heartbeat("farm", "lab", heartbeat_interval_seconds=1)
            online = text_of(setup_checks.prefect_worker(workspace, [HERE]))
            offline = wait_for(
                lambda: [line for line in setup_checks.prefect_worker(workspace, [HERE]) if line.needs_user],
                "the worker stayed online",
            )
        finally:
            client.delete_work_pool("farm")
    # then it is counted, and later missed
    assert online == "ok: 1 of 1 workers of the work pool `farm` online"
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
    closing = socketserver.ThreadingTCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
    threading.Thread(target=closing.serve_forever, daemon=True).start()
    with closing:
        port = closing.server_address[1]
        phone = DeviceSpec(name="phone", transport="adb", serial="ABC", adb_server_port=port)
        text = text_of(connections.adb(workspace, [phone]))
        closing.shutdown()
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
    # and an SSH host that phones are connected to is counted as well
    hosts = [line.text for line in connections.ssh(workspace, [spec])]
    assert hosts == (["ok: 1 of 1 SSH hosts with a known host key and a private key"] if where else [])


@pytest.mark.lab
def test_an_adb_server_that_does_not_run_at_an_ssh_host_is_started_by_a_sweep(
    workspace: Workspace, make_spec: Callable[..., DeviceSpec]
) -> None:
    port = free_port()
    text = text_of(connections.adb(workspace, [make_spec(ADB_OVER_SSH, adb_server_port=port)]))
    assert text == f"ok: no adb server on port {port} of 127.0.0.1; a sweep starts it there"


@pytest.mark.lab
@pytest.mark.parametrize(("silent", "state"), [(False, "unauthorized"), (True, "offline")])
def test_a_phone_that_waits_for_a_confirmation_is_named(
    workspace: Workspace, adb_port: int, silent: bool, state: str
) -> None:
    from adbutils import AdbClient, AdbTimeout

    with UnusablePhone(silent=silent) as phone:
        # given a phone that the adb server lists but cannot use
        client = AdbClient(port=adb_port)
        with contextlib.suppress(AdbTimeout):  # it would wait for the silent one
            client.connect(phone.serial, timeout=0.5)
        wait_for(lambda: [each for each in client.list() if each.serial == phone.serial and each.state == state], state)
        # when its set-up is checked
        spec = DeviceSpec(name="new", transport="adb", address=phone.serial, adb_server_port=adb_port)
        text = text_of(connections.adb(workspace, [spec]))
        client.disconnect(phone.serial)
    # then it is named with what to do on it
    assert text == (
        f"fix: new: {state} at the adb server on port {adb_port}; unlock it and confirm the request on its screen"
    )


@pytest.fixture
def host(ssh_client: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeviceSpec:
    """An SSH host that does not run, with a known host key and a private key."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = paramiko.ECDSAKey.generate()
    key.write_private_key_file(str(tmp_path / "key"))
    (tmp_path / "known").write_text(f"[127.0.0.1]:2 {key.get_name()} {key.get_base64()}\n")
    (tmp_path / "config").write_text(f"IdentityFile {tmp_path / 'key'}\n")
    address = {"address": "127.0.0.1", "port": 2, "user": "farm"}
    files = {"known_hosts": tmp_path / "known", "ssh_config": tmp_path / "config"}
    return DeviceSpec.model_validate({"name": "mac", "transport": "ssh", **address, **files})


def test_an_unknown_host_key_is_named_with_a_command_that_shows_it_first(
    workspace: Workspace, host: DeviceSpec, tmp_path: Path
) -> None:
    known = (tmp_path / "known").read_text()
    (tmp_path / "known").write_text("")
    assert text_of(connections.ssh(workspace, [host])) == (
        f"fix: mac: the host key of 127.0.0.1:2 is not in {tmp_path}/known; run "
        f"`ssh -o UserKnownHostsFile={tmp_path}/known -p 2 farm@127.0.0.1 true` "
        "and accept the key if its fingerprint is correct"
    )
    assert (tmp_path / "known").read_text() == ""
    # and so is that of a jump host
    (tmp_path / "known").write_text(known)
    behind = host.model_copy(update={"proxy_jump": "gate@127.0.0.1:3"})
    assert text_of(connections.ssh(workspace, [behind])).startswith("fix: mac: the host key of 127.0.0.1:3 is not in ")


def test_a_host_without_a_private_key_is_named_beside_the_right_ones(
    workspace: Workspace, host: DeviceSpec, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text(f"IdentityFile {tmp_path}/none\n")
    without = host.model_copy(update={"name": "keyless", "ssh_config": tmp_path / "other"})
    wrong, right = connections.ssh(workspace, [host, without])
    assert wrong.text == (
        "fix: keyless: no private key for farm@127.0.0.1:2 in a file or an SSH agent; "
        "set its `identity_file`, or run `ssh-add` with the key's file"
    )
    assert right.text == "ok: 1 of 2 SSH hosts with a known host key and a private key"


def at(host: DeviceSpec, name: str) -> DeviceSpec:
    """A phone of an SSH host."""
    return DeviceSpec(name=name, transport="adb", serial=name, via=ssh_address(host))


def test_a_host_that_is_off_is_one_line_with_all_of_its_phones(workspace: Workspace, host: DeviceSpec) -> None:
    text = text_of(connections.adb(workspace, [at(host, "one"), at(host, "two")]))
    assert text.startswith("fix: one, two: host 127.0.0.1: cannot reach farm@127.0.0.1:2 (")


def test_an_unknown_host_of_phones_is_named_once(workspace: Workspace, host: DeviceSpec, tmp_path: Path) -> None:
    (tmp_path / "known").write_text("")
    phones = [at(host, "one"), at(host, "two")]
    assert connections.adb(workspace, phones) == []
    assert text_of(connections.ssh(workspace, phones)).startswith("fix: one: the host key of 127.0.0.1:2 is not in ")
