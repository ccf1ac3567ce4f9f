"""The virtual lab: its devices answer like real ones, fail on request, and are removed without a trace."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import NoSpaceOnDevice
from devices.ondevice.conditions import read_conditions
from devices.ondevice.facts import read_facts
from tests.fixtures.lab import Lab
from tests.fixtures.needs import needs
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.lab import adb_server, faults, journal, loopback, processes
from tests.lab.lab import greeting
from tests.lab.link_proxy import LinkProxy
from tests.lab.phone import Phone
from tests.lab.unusable_phone import UnusablePhone

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(sys.platform != "linux", reason="the virtual lab is made of Linux's namespaces"),
]

PHONE, SME2_PHONE, MAC = "lab-phone-x86", "lab-phone-sme2", "lab-mac-1"


def output_of(device: Device, *argv: str) -> str:
    """What a command on the device prints."""
    result = device.run(list(argv), deadline_s=ENOUGH_S)
    assert result.exit_code == 0, result.stderr
    return result.stdout.decode().strip()


def traces(lab: Lab) -> dict[str, list[str]]:
    """What this lab has made on the machine, by the names it gives; other tests mount disks and run adbd meanwhile."""
    own = ("etfarm-lab", str(lab.data_dir), "/system/bin/adbd", f"adb -P {adb_server.PORT}")
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    running = (path for path in Path("/proc").iterdir() if path.name.isdigit())
    commands = [" ".join(processes.command_of(int(path.name))) for path in running]
    folders = (Path("/sys/class/net"), Path("/run/netns"), Path("/run"), journal.BINFMT)
    return {
        "mounts": sorted(line.split()[4] for line in mounts if any(word in line for word in own)),
        "processes": sorted(line for line in commands if any(word in line for word in own)),
        **{str(folder): sorted(path.name for path in folder.glob("etfarm*")) for folder in folders},
    }


def test_every_device_answers_and_reports_that_it_is_a_stand_in(lab: Lab) -> None:
    states = {name: device["state"] for name, device in lab.up().items()}
    assert states == {PHONE: "device", SME2_PHONE: "device", MAC: "ready", "lab-mac-2": "ready"}
    for name in (PHONE, SME2_PHONE):
        assert output_of(lab.device(name), "getprop", "ro.etfarm.stand_in") == "1"
    assert "ProductVersion:" in output_of(lab.device(MAC), "sw_vers")
    assert (read_facts(lab.device(MAC)).soc or "").endswith("(stand-in)")


def test_the_arm64_phone_has_sme2(lab: Lab) -> None:
    phone = lab.device(SME2_PHONE)
    assert " sme2 " in f"{output_of(phone, 'grep', '-m1', 'Features', '/proc/cpuinfo')} "
    facts = read_facts(phone)
    assert (facts.os, facts.platform, facts.sme2) == ("android", "android-arm64", True)


def test_a_mac_has_nothing_of_linux_except_behind_its_launcher(lab: Lab) -> None:
    mac = lab.device(MAC)
    absent = mac.run(
        ["sh", "-c", "command -v setsid sha256sum taskset timeout || [ -d /proc/self ]"], deadline_s=ENOUGH_S
    )
    assert (absent.exit_code, absent.stdout) == (1, b"")
    assert output_of(mac, "/usr/local/bin/linux", "cat", "/proc/self/comm") == "cat"
    assert output_of(mac, "sh", "-c", "printf x | shasum -a 256").startswith("2d711642b726b044")


def test_devices_reach_the_lab_and_nothing_else(lab: Lab) -> None:
    routes = output_of(lab.device(PHONE), "cat", "/proc/net/route").splitlines()[1:]
    assert [line.split()[1] for line in routes] == ["00004D0A"]  # 10.77.0.0, byte by byte from the right


def test_a_second_up_leaves_the_first_alone(lab: Lab) -> None:
    before = {name: lab.part(name).pid for name in (PHONE, SME2_PHONE, MAC)}
    lab.device(PHONE).run(["touch", "/data/local/tmp/kept"], deadline_s=ENOUGH_S)
    lab.up()
    assert {name: lab.part(name).pid for name in before} == before
    assert None not in before.values()
    assert output_of(lab.device(PHONE), "ls", "/data/local/tmp/kept") == "/data/local/tmp/kept"


def test_up_starts_again_what_ended(lab: Lab) -> None:
    lab.part(MAC).halt()
    assert lab.part(MAC).pid is None
    assert lab.up()[MAC]["state"] == "ready"
    assert "macOS" in output_of(lab.device(MAC), "sw_vers")


def test_down_leaves_nothing(lab_down: Lab) -> None:
    before = traces(lab_down)
    lab_down.up()
    assert traces(lab_down) != before
    lab_down.down()
    assert traces(lab_down) == before
    assert not list((lab_down.data_dir / "lab").iterdir())


def test_down_cleans_up_after_an_up_that_was_killed(lab_down: Lab) -> None:
    before = traces(lab_down)
    halfway = subprocess.Popen(lab_down.argv("up"), env=lab_down.env(), stdout=subprocess.DEVNULL)
    wait_for(lambda: journal.is_noted("process", PHONE), "the first phone to be started")
    halfway.kill()
    halfway.wait()
    lab_down.down()
    assert traces(lab_down) == before


def test_up_refuses_a_bridge_that_it_did_not_make(lab_down: Lab) -> None:
    subprocess.run(["ip", "link", "add", "etfarm0", "type", "bridge"], check=True)
    try:
        refused = lab_down.run("up")
    finally:
        subprocess.run(["ip", "link", "delete", "etfarm0"], check=True)
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "this lab did not make the network interface etfarm0: run `ip link delete etfarm0`"
    ]
    assert not journal.noted()


def test_up_refuses_while_the_lab_of_another_folder_is_up(lab: Lab, tmp_path: Path) -> None:
    other = Lab(tmp_path / "other", lab.packages)
    refused = other.run("up")
    assert refused.returncode == 1
    assert "the lab of another checkout or data folder is up: run `make lab-down` there first" in refused.stderr
    assert lab.up()[MAC]["state"] == "ready"


def test_only_the_process_that_was_started_is_ended() -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    started = processes.start_of(bystander.pid)
    try:
        processes.end(bystander.pid, started - 1)
        assert bystander.poll() is None
        assert processes.end(bystander.pid, started)
        assert bystander.wait(ENOUGH_S) == -9
    finally:
        bystander.kill()


def test_a_cut_link_swallows_packets_until_it_is_restored(lab: Lab) -> None:
    mac = lab.part(MAC)
    faults.cut_link(mac)
    assert greeting(mac.address, mac.port, wait_s=0.5) == b""
    faults.restore_link(mac)
    wait_for(lambda: greeting(mac.address, mac.port) == b"SSH-", "sshd to answer")


@pytest.mark.parametrize("name", [PHONE, SME2_PHONE])
def test_a_killed_adbd_comes_back(lab: Lab, name: str) -> None:
    phone, serial = lab.part(name), f"{lab.part(name).address}:{lab.part(name).port}"
    faults.kill_daemon(phone)
    assert wait_for(lambda: adb_server.connect(serial, wait_s=1) == "device", "adbd to answer")


def test_a_stopped_sshd_stays_away_until_it_is_started(lab: Lab) -> None:
    mac = lab.part(MAC)
    faults.stop_daemon(mac)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((mac.address, mac.port), timeout=ENOUGH_S)
    faults.start_daemon(mac)
    wait_for(lambda: greeting(mac.address, mac.port) == b"SSH-", "sshd to answer")


def test_a_frozen_sshd_accepts_and_stays_silent(lab: Lab) -> None:
    mac = lab.part(MAC)
    faults.freeze_daemon(mac)
    assert greeting(mac.address, mac.port, wait_s=0.5) == b""
    faults.thaw_daemon(mac)
    assert greeting(mac.address, mac.port, ENOUGH_S) == b"SSH-"


def test_a_reboot_keeps_the_disk_and_changes_the_boot(lab: Lab) -> None:
    boot = ["cat", "/proc/sys/kernel/random/boot_id"]
    first = output_of(lab.device(PHONE), *boot)
    output_of(lab.device(PHONE), "sh", "-c", "echo here >/data/local/tmp/kept")
    faults.reboot(lab.part(PHONE), lab.packages)
    lab.up()
    assert output_of(lab.device(PHONE), *boot) != first
    assert output_of(lab.device(PHONE), "cat", "/data/local/tmp/kept") == "here"


@pytest.mark.parametrize("name", [PHONE, MAC])
def test_a_skewed_clock_is_seen_on_the_device_and_put_right(lab: Lab, name: str) -> None:
    faults.skew_clock(lab.part(name), lab.packages, -86_400)
    lab.up()
    assert int(output_of(lab.device(name), "date", "+%s")) == pytest.approx(time.time() - 86_400, abs=60)
    faults.skew_clock(lab.part(name), lab.packages, 0)
    lab.up()
    assert int(output_of(lab.device(name), "date", "+%s")) == pytest.approx(time.time(), abs=60)


def test_a_full_disk_is_full_for_the_farm(lab: Lab, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(3 << 20))
    device = lab.device(MAC)
    target = f"{device.root}/large"
    faults.fill_disk(lab.part(MAC))
    with pytest.raises(NoSpaceOnDevice):
        device.upload(large, target)
    faults.empty_disk(lab.part(MAC))
    device.upload(large, target)


def test_a_phone_is_as_hot_as_a_test_wants(lab: Lab) -> None:
    phone = lab.part(PHONE)
    assert isinstance(phone, Phone)
    phone.set_conditions(temperature_c=51.5, thermal_status=3, battery_percent=7)
    found = read_conditions(lab.device(PHONE))
    assert (found.temperature_c, found.thermal_status, found.battery_percent) == (51.5, 3, 7)


def test_a_killed_adb_server_forgets_its_phones_until_up(lab: Lab) -> None:
    faults.kill_adb_server()
    assert not adb_server.answers()
    assert lab.up()[PHONE]["state"] == "device"


@pytest.mark.parametrize(("silent", "state"), [(False, "unauthorized"), (True, "offline")])
def test_an_unusable_phone_is_listed_with_its_state(adb_port: int, silent: bool, state: str) -> None:
    with UnusablePhone(silent=silent) as phone:
        with contextlib.suppress(adb_server.AdbServerError):  # it would wait for the silent one
            adb_server.ask(f"host:connect:{phone.serial}", adb_port, answer_s=0.5)
        wait_for(lambda: adb_server.state_of(phone.serial, adb_port) == state, f"the phone to be {state}")


def test_a_link_is_slow_silent_and_broken_on_request(sshd: loopback.Sshd) -> None:
    with LinkProxy("127.0.0.1", sshd.port) as link:
        link.delay_s = 0.2
        begun = time.monotonic()
        assert greeting("127.0.0.1", link.port, ENOUGH_S) == b"SSH-"
        assert time.monotonic() - begun >= 0.2
        link.stalled = True
        assert greeting("127.0.0.1", link.port, wait_s=0.5) == b""
        link.restore()
        with socket.create_connection(("127.0.0.1", link.port), timeout=ENOUGH_S) as connection:
            while not connection.recv(100).endswith(b"\n"):
                pass
            link.cut()
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
        link.restore()
        assert greeting("127.0.0.1", link.port, ENOUGH_S) == b"SSH-"


def test_the_loopback_sshd_accepts_its_key(sshd: loopback.Sshd) -> None:
    command = ["ssh", "-F", str(sshd.ssh_config), "loopback", "id", "-u"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(os.geteuid()), done.stderr


def test_a_daemon_whose_port_is_taken_before_it_starts_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("sshd", "ssh-keygen")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        taken = other.getsockname()[1]
        ports = iter([taken, loopback.free_port()])
        monkeypatch.setattr(loopback, "free_port", lambda: next(ports))

        with loopback.sshd() as daemon:
            assert daemon.port != taken


def test_the_loopback_adbd_listens_only_on_the_loopback_address(adbd: loopback.Adbd, adb_port: int) -> None:
    assert adb_server.connect(f"127.0.0.1:{adbd.port}", adb_port) == "device"
    ends = [line.split()[1] for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    listening = [end.partition(":")[0] for end in ends if int(end.partition(":")[2], 16) == adbd.port]
    assert set(listening) == {"0000000000000000FFFF00000100007F"}  # ::ffff:127.0.0.1, words of four bytes reversed
