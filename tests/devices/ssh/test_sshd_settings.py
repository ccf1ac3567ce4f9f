"""Hosts whose sshd is slow or restricted: a slow login is waited for, a missing permission is named."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.device import Device
from devices.errors import DeviceRefused
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.diagnostics import try_out
from devices.retry import probe
from devices.ssh import connect as ssh_connect
from tests.fixtures.devices import ADB_OVER_SSH
from tests.fixtures.waiting import ENOUGH_S, SCALE, change_policy
from tests.lab import loopback
from tests.lab.loopback import Sshd

pytestmark = pytest.mark.lab


@pytest.fixture
def restricted(
    sshd: Sshd, make_spec: Callable[..., DeviceSpec], tmp_path: Path
) -> Callable[..., AbstractContextManager[Device]]:
    """Opens a device behind another sshd, which has one line of its configuration replaced."""

    @contextmanager
    def opened(old: str, new: str, transport: str = "ssh") -> Iterator[Device]:
        port = loopback.free_port()
        text = sshd.config.read_text()
        assert old in text
        config = tmp_path / "sshd_config"
        config.write_text(text.replace(old, new).replace(f":{sshd.port}\n", f":{port}\n"))
        link: Any = SimpleNamespace(port=port)
        command = [sshd.program, "-D", "-e", "-f", str(config)]
        with (
            loopback.running(command, tmp_path / "sshd.log", lambda: loopback.listens(port)),
            open_device(make_spec(transport, link)) as device,
        ):
            yield device

    return opened


@pytest.mark.fault
def test_a_slow_login_does_not_count_against_a_commands_deadline(
    make_spec: Callable[..., DeviceSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a login that takes twice as long as a command may run
    deadline_s = 1.0 * SCALE
    enter = ssh_connect._connect_hop

    def enter_slowly(*arguments: Any) -> Any:
        time.sleep(2 * deadline_s)
        return enter(*arguments)

    monkeypatch.setattr(ssh_connect, "_connect_hop", enter_slowly)
    change_policy(monkeypatch, "PROBE", timeout_s=deadline_s)
    with open_device(make_spec("ssh")) as device:
        probe(device)


@pytest.mark.fault
def test_a_host_without_sftp_is_refused_with_the_setting(
    restricted: Callable[[str, str], AbstractContextManager[Device]], tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("x")
    with restricted("Subsystem sftp internal-sftp", "") as device:
        probe(device)
        with pytest.raises(DeviceRefused, match=r"does not offer SFTP \(.*\); enable `Subsystem sftp internal-sftp`"):
            device.upload(tmp_path / "there", f"{device.root}/file")
        assert device.run(["echo", "here"], deadline_s=ENOUGH_S).stdout == b"here\n"


@pytest.mark.fault
def test_an_sftp_server_that_sends_without_end_is_refused(
    restricted: Callable[[str, str], AbstractContextManager[Device]], tmp_path: Path
) -> None:
    # given a server whose first packet does not end
    server = tmp_path / "server"
    server.write_text("#!/bin/sh\nprintf '\\377\\377\\377\\377'\nexec cat /dev/zero\n")
    server.chmod(0o755)
    (tmp_path / "there").write_text("x")
    with (
        restricted("Subsystem sftp internal-sftp", f"Subsystem sftp {server}") as device,
        pytest.raises(DeviceRefused, match=r"does not offer SFTP \(Garbage packet received\)"),
    ):
        device.upload(tmp_path / "there", f"{device.root}/file")


@pytest.mark.fault
def test_a_host_that_allows_one_session_is_refused_with_the_setting(
    restricted: Callable[[str, str], AbstractContextManager[Device]], tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("x")
    with (
        restricted("MaxSessions 100", "MaxSessions 1") as device,
        pytest.raises(DeviceRefused, match=r"refuses another session .*; set `MaxSessions 10`"),
    ):
        # the first command or transfer leaves a session open
        device.upload(tmp_path / "there", f"{device.root}/file")


@pytest.mark.fault
def test_a_host_that_does_not_forward_to_its_adb_server_is_refused_with_the_setting(
    restricted: Callable[..., AbstractContextManager[Device]],
) -> None:
    with (
        restricted("UseDNS no", "UseDNS no\nAllowTcpForwarding no", ADB_OVER_SSH) as phone,
        pytest.raises(DeviceRefused, match=r"does not forward .*; set `AllowTcpForwarding yes` in the host's sshd_con"),
    ):
        probe(phone)


@pytest.mark.parametrize(
    ("line", "instead", "cause"),
    [
        ("Subsystem sftp internal-sftp", "", r"does not offer SFTP \(.*\); enable `Subsystem sftp internal-sftp`"),
        ("MaxSessions 100", "MaxSessions 2", r"refuses another session .*; set `MaxSessions 10`"),
    ],
    ids=["no SFTP", "no second command beside a transfer and a command"],
)
def test_a_host_that_answers_and_lacks_what_a_sweep_needs_is_refused_with_the_setting(
    restricted: Callable[[str, str], AbstractContextManager[Device]], line: str, instead: str, cause: str
) -> None:
    with restricted(line, instead) as device, pytest.raises(DeviceRefused, match=cause):
        try_out(device)
