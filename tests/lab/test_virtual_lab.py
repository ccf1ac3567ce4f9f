"""The virtual lab: its devices answer like real ones and are removed without a trace; survival tests break them."""

import subprocess
import sys
from pathlib import Path

import pytest

from devices.device import Device
from devices.ondevice.facts import read_facts
from tests.fixtures.lab import Lab
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.lab import adb_server, journal, loopback, processes

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


def test_every_device_answers_as_a_stand_in_and_a_second_up_repairs_what_ended_alone(
    lab_down: Lab, tmp_path: Path
) -> None:
    states = {name: device["state"] for name, device in lab_down.up().items()}
    assert states == {PHONE: "device", SME2_PHONE: "device", MAC: "ready", "lab-mac-2": "ready"}
    phone, mac = lab_down.device(SME2_PHONE), lab_down.device(MAC)
    facts = read_facts(phone)
    assert (facts.os, facts.platform, facts.sme2) == ("android", "android-arm64", True)
    assert (read_facts(mac).soc or "").endswith("(stand-in)")
    # and a device reaches the lab, 10.77.0.0, and nothing else
    routes = output_of(phone, "cat", "/proc/net/route").splitlines()[1:]
    assert [line.split()[1] for line in routes] == ["00004D0A"]
    # and a Mac has nothing of Linux except behind its launcher
    linux = ["sh", "-c", "command -v setsid sha256sum taskset timeout || [ -d /proc/self ]"]
    assert mac.run(linux, deadline_s=ENOUGH_S).exit_code == 1
    assert output_of(mac, "/usr/local/bin/linux", "cat", "/proc/self/comm") == "cat"
    # when a device has ended, then `up` starts that one
    before = lab_down.part(PHONE).pid
    lab_down.part(MAC).halt()
    assert lab_down.up()[MAC]["state"] == "ready"
    assert lab_down.part(PHONE).pid == before is not None
    # and one lab is not that of another folder
    refused = Lab(tmp_path / "other", lab_down.packages).run("up")
    assert refused.returncode == 1
    assert "the lab of another checkout or data folder is up: run `make lab-down` there first" in refused.stderr


def test_down_leaves_nothing_also_of_an_up_that_was_killed(lab_down: Lab) -> None:
    before = traces(lab_down)
    lab_down.up()
    assert traces(lab_down) != before
    lab_down.down()
    assert traces(lab_down) == before
    assert not list((lab_down.data_dir / "lab").iterdir())
    with subprocess.Popen(lab_down.argv("up"), env=lab_down.env(), stdout=subprocess.DEVNULL) as halfway:
        wait_for(lambda: journal.is_noted("process", PHONE), "the first phone to be started")
        halfway.kill()
    lab_down.down()
    assert traces(lab_down) == before


def test_up_refuses_a_bridge_that_it_did_not_make(lab_down: Lab) -> None:
    subprocess.run(["ip", "link", "add", "etfarm0", "type", "bridge"], check=True)
    try:
        refused = lab_down.run("up")
    finally:
        subprocess.run(["ip", "link", "delete", "etfarm0"], check=True)
    assert (refused.returncode, journal.noted()) == (1, [])
    assert "run `ip link delete etfarm0`" in refused.stderr


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


def test_the_loopback_adbd_listens_only_on_the_loopback_address(adbd: loopback.Adbd, adb_port: int) -> None:
    assert adb_server.connect(f"127.0.0.1:{adbd.port}", adb_port, wait_s=ENOUGH_S) == "device"
    ends = [line.split()[1] for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    listening = [end.partition(":")[0] for end in ends if int(end.partition(":")[2], 16) == adbd.port]
    assert set(listening) == {"0000000000000000FFFF00000100007F"}  # ::ffff:127.0.0.1, words of four bytes reversed
