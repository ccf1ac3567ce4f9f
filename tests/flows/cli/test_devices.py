"""`etfarm devices`: state and health apart, a reason for everything, and quarantine, retirement and release."""

import json
from pathlib import Path

import pytest

from devices.inventory import load_inventory, open_device
from devices.ondevice.lease import acquire
from tests.fixtures.command import Command, run_python
from tests.fixtures.documented import assert_documented

INVENTORY = """
devices:
  - {name: here, transport: local, root: "%s", labels: {tier: nightly}}
  - {name: gone, transport: ssh, address: 127.0.0.1, port: 9, user: nobody, root: /tmp/x, site: lab-a}
"""

# Acquires the first device of an inventory, and is killed.
ACQUIRE = """
import os, signal, sys
from pathlib import Path
from devices.inventory import load_inventory, open_device
from devices.ondevice.lease import acquire
acquire(open_device(load_inventory(Path(sys.argv[1])).devices[0]), "a farm", ttl_s=600)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def devices(command: Command, tmp_path: Path) -> Command:
    """Run `etfarm devices` with these words against an inventory of one device that is here and one that is not."""
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(INVENTORY % (tmp_path / "device"), encoding="utf-8")
    return lambda *words: command("devices", *words, "--inventory", inventory, "--data-dir", tmp_path / "var")


def test_devices_are_listed_with_their_state_apart_from_their_health(devices: Command, tmp_path: Path) -> None:
    code, out, _ = devices()
    lines = out.splitlines()
    assert lines[2].split() == ["here", "local", "idle", "good"]
    assert lines[3].startswith("gone    ssh        lab-a  unreachable: ")
    # and what cannot be reached has no health, unless somebody stated it
    assert lines[3].split()[-1] == "unknown"
    devices("retire", "gone", "--reason", "given back")
    assert devices().out.splitlines()[3].endswith("retired: given back")
    # and the exit code tells that one cannot be reached
    (tmp_path / "inventory.yaml").write_text(INVENTORY.partition("  - {name: gone")[0] % (tmp_path / "device"))
    assert (code, devices().code) == (1, 0)


def test_a_device_that_answers_and_cannot_measure_is_unusable(devices: Command, tmp_path: Path) -> None:
    # given a device whose root cannot be made
    (tmp_path / "device").write_text("in the way")
    # then its state is what is missing and what to do, and its health is not known
    line = devices().out.splitlines()[2]
    assert "unusable: no folder can be made in its root" in line
    assert "; set `root` in its entry to a folder that its user may write" in line
    assert line.split()[-1] == "unknown"
    assert f"unusable: no folder can be made in its root {tmp_path / 'device'}" in devices("why", "name=here").out


@pytest.mark.usefixtures("ssh_client")
def test_a_phone_of_an_ssh_host_is_listed_with_the_host_that_cannot_be_reached(
    devices: Command, tmp_path: Path
) -> None:
    entry = "{name: pixel, transport: adb, serial: X, via: nobody@127.0.0.1:9}"
    (tmp_path / "inventory.yaml").write_text(f"devices:\n  - {entry}\n")
    line = devices().out.splitlines()[2]
    assert line.startswith("pixel   adb via 127.0.0.1")
    assert "unreachable: host 127.0.0.1: cannot reach nobody@127.0.0.1:9 (" in line


def test_a_holder_that_has_ended_does_not_hold_a_device(devices: Command, tmp_path: Path) -> None:
    # given a process that acquired the device and was killed
    run_python("-c", ACQUIRE, tmp_path / "inventory.yaml")
    # then its lease is not taken for a live one
    assert "idle: a farm (process " in devices().out
    assert ") has ended, and the next sweep takes its lease over" in devices().out


def test_a_leased_device_is_listed_with_its_holder(devices: Command, tmp_path: Path) -> None:
    spec = load_inventory(tmp_path / "inventory.yaml").devices[0]
    with open_device(spec) as device, acquire(device, "another farm"):
        assert "leased by another farm (process " in devices().out
    assert "idle" in devices().out


def test_a_quarantine_states_its_end_and_reason_and_is_ended_by_the_user(devices: Command) -> None:
    assert devices("quarantine", "here", "--reason", "swollen battery").out.startswith("here: quarantined until 2")
    assert "swollen battery" in devices("why", "tier=nightly").out
    assert devices("release", "here") == (0, "here: good\n", "")
    lines = [line.split(maxsplit=2) for line in devices("why", "tier=nightly").out.splitlines()]
    assert ["here", "True", "would be used"] in lines
    # and a retired one stays out
    assert devices("retire", "here", "--reason", "given back") == (0, "here: retired: given back\n", "")
    assert "it is retired: given back" in devices("why", "name=here").out


def test_why_names_every_label_that_does_not_fit_and_fails_if_nothing_matches(devices: Command) -> None:
    ended = devices("why", "tier=weekly", "transport=ssh")
    reasons = "label tier is nightly, the sweep selects weekly; label transport is local, the sweep selects ssh"
    assert f"False  {reasons}" in ended.out
    assert ended.code == 1
    assert "`tier` is not a label; write key=value" in devices("why", "tier").err


def test_why_states_that_a_device_cannot_be_reached(devices: Command) -> None:
    # given a device that the selector matches and that does not answer
    ended = devices("why", "site=lab-a", "--format", "json")
    rows = {row["device"]: row for row in json.loads(ended.out)}
    assert ended.code == 1
    assert (rows["gone"]["used"], rows["gone"]["why"].startswith("unreachable: ")) == (False, True)
    # and one that answers is used
    assert_documented("devices why", list(rows.values()))
    ended = devices("why", "tier=nightly", "--format", "json")
    assert (ended.code, json.loads(ended.out)[0]) == (0, {"device": "here", "used": True, "why": "would be used"})


def test_devices_are_objects_for_programs(devices: Command) -> None:
    rows = json.loads(devices("--format", "json").out)
    assert rows[0] == {"device": "here", "transport": "local", "site": "", "state": "idle", "health": "good"}
    assert_documented("devices", rows)


def test_a_probe_prints_facts_and_conditions(devices: Command) -> None:
    printed = devices("probe", "here").out
    assert "platform: " in printed
    assert "free_disk_bytes: " in printed


def test_devices_of_a_lab_are_listed_but_reached_only_by_its_machine(
    devices: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given an inventory whose second device belongs to a lab
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text("labs: [lab-a]\n" + inventory.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    # when it is listed and probed elsewhere
    _, _, here, gone, *_ = devices().out.splitlines()
    assert here.split()[:2] == ["here", "local"]
    assert "in lab lab-a" in gone
    assert devices("probe", "gone").err.startswith(
        "etfarm: gone: the device is in lab lab-a; run this command on the machine of that lab, with ETFARM_SITE=lab-a"
    )
    # then that machine, and no other, tries to reach it
    monkeypatch.setenv("ETFARM_SITE", "lab-a")
    assert "unreachable" in devices().out
