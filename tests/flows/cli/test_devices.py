"""`etfarm devices`: state and health apart, a reason for everything, quarantine and release, and the queue."""

import json
import os
import re
from pathlib import Path

import pytest

from devices.inventory import load_inventory, open_device
from devices.ondevice.lease import acquire
from tests.fixtures.command import Command
from tests.fixtures.documented import assert_documented
from tests.fixtures.leases import held_file, put_waiter

INVENTORY = """
devices:
  - {name: here, transport: local, root: "%s", labels: {tier: nightly}}
  - {name: gone, transport: ssh, address: 127.0.0.1, port: 9, user: nobody, root: /tmp/x, site: lab-a}
"""


@pytest.fixture
def devices(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `etfarm devices` with these words against an inventory of one device that is here and one that is not."""
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(INVENTORY % (tmp_path / "device"), encoding="utf-8")
    monkeypatch.setattr("devices.device.Device.machine_folder", str(tmp_path / "machine"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.delenv("ETFARM_SITE", raising=False)
    var = ("--data-dir", tmp_path / "var")
    return lambda *words: command("devices", *words, "--inventory", inventory, *(() if "queue" in words else var))


def test_devices_are_listed_with_their_state_apart_from_their_health(devices: Command, tmp_path: Path) -> None:
    ended = devices()
    assert ended.lines[2].split() == ["here", "local", "idle", "good"]
    assert ended.lines[3].startswith("gone    ssh        lab-a  unreachable: ")
    assert ended.lines[3].split()[-1] == "unknown"
    # and what cannot be reached has no health, unless somebody stated it
    devices("retire", "gone", "--reason", "given back")
    assert devices().lines[3].endswith("retired: given back")
    rows = json.loads(devices("--format", "json").out)
    assert rows[0] == {"device": "here", "transport": "local", "site": "", "state": "idle", "health": "good"}
    assert_documented("devices", rows)
    # and the exit code tells that one cannot be reached
    (tmp_path / "inventory.yaml").write_text(INVENTORY.partition("  - {name: gone")[0] % (tmp_path / "device"))
    assert (ended.code, devices().code) == (1, 0)


def test_a_device_that_answers_and_cannot_measure_is_unusable(devices: Command, tmp_path: Path) -> None:
    (tmp_path / "device").write_text("in the way")
    # then its state is what is missing, and its health is not known
    line = devices().lines[2]
    assert ("unusable: no folder can be made in its root" in line, line.split()[-1]) == (True, "unknown")
    assert f"unusable: no folder can be made in its root {tmp_path / 'device'}" in devices("why", "name=here").out


@pytest.mark.usefixtures("ssh_client")
def test_a_phone_of_an_ssh_host_is_listed_with_a_host_that_is_off(devices: Command, tmp_path: Path) -> None:
    entry = "{name: pixel, transport: adb, serial: X, via: nobody@127.0.0.1:9}"
    (tmp_path / "inventory.yaml").write_text(f"devices:\n  - {entry}\n")
    line = devices().lines[2]
    assert line.startswith("pixel   adb via 127.0.0.1")
    assert "unreachable: host 127.0.0.1: cannot reach nobody@127.0.0.1:9 (" in line


def test_a_device_is_listed_with_its_holder_unless_that_has_ended(devices: Command, tmp_path: Path) -> None:
    with open_device(load_inventory(tmp_path / "inventory.yaml").devices[0]) as device, acquire(device, "a farm"):
        assert "leased by a farm (process " in devices().out
        # when its process is killed, then its lease is not taken for a live one
        path = held_file(device)
        path.write_text(path.read_text("utf-8").replace(f'"pid": {os.getpid()}', '"pid": 999999999'), encoding="utf-8")
        assert re.search(r"idle: a farm \(process .*\) has ended, and the next sweep takes its lease ov", devices().out)
        assert devices("queue").lines[2].startswith("here    has ended ")
    # and a device that is idle has no row in the queue
    assert devices("queue").lines[2].startswith("gone ")


def test_the_queue_shows_who_measures_who_waits_and_what_is_off(devices: Command, tmp_path: Path) -> None:
    # given a device that is held, and two that wait for it
    spec = load_inventory(tmp_path / "inventory.yaml").devices[0]
    with open_device(spec) as device, acquire(device, "nightly-2026-01-02"):
        held = held_file(device).read_text(encoding="utf-8")
        put_waiter(device, came_s=90)
        put_waiter(device, priority=10, record=held.replace("nightly", "urgent").strip())
        rows = json.loads(devices("queue", "--format", "json").out)
    assert_documented("devices queue", rows)
    # then each has a row, in the order in which they get the device
    holder = json.loads(held)
    process = {"process": f"process {holder['pid']} on {holder['host']}", "since": holder["since"]}
    turn = {"device": "here", "turn": "measures", "sweep": "nightly-2026-01-02", "priority": 0, **process}
    assert rows[0] == turn
    assert rows[1] == turn | {"turn": "waits, 1", "sweep": "urgent-2026-01-02", "priority": 10}
    assert (rows[2]["turn"], rows[2]["sweep"], rows[2]["process"]) == ("waits, 2", "another process", "")
    assert (rows[3]["device"], rows[3]["turn"].partition(": ")[0], rows[3]["sweep"]) == ("gone", "unreachable", None)


def test_a_quarantine_states_its_end_and_reason_and_is_ended_by_the_user(devices: Command) -> None:
    assert devices("quarantine", "here", "--reason", "swollen battery").out.startswith("here: quarantined until 2")
    assert "swollen battery" in devices("why", "tier=nightly").out
    assert devices("release", "here") == (0, "here: good\n", "")
    ended = devices("why", "tier=nightly", "--format", "json")
    assert (ended.code, json.loads(ended.out)[0]) == (0, {"device": "here", "used": True, "why": "would be used"})
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
    ended = devices("why", "site=lab-a", "--format", "json")
    rows = {row["device"]: row for row in json.loads(ended.out)}
    assert ended.code == 1
    assert (rows["gone"]["used"], rows["gone"]["why"].startswith("unreachable: ")) == (False, True)
    assert_documented("devices why", list(rows.values()))


def test_a_probe_prints_facts_and_conditions(devices: Command) -> None:
    printed = devices("probe", "here").out
    assert ("platform: " in printed, "free_disk_bytes: " in printed) == (True, True)


def test_only_its_lab_reaches_a_device(devices: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given an inventory whose second device belongs to a lab
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text("labs: [lab-a]\n" + inventory.read_text(encoding="utf-8"), encoding="utf-8")
    assert "in lab lab-a" in devices().lines[3]
    assert "in lab lab-a; run this command there with ETFARM_SITE=lab-a" in devices("queue").lines[-2]
    assert devices("probe", "gone").err.startswith("etfarm: gone: the device is in lab lab-a; run this command on the ")
    # then that machine, and no other, tries to reach it
    monkeypatch.setenv("ETFARM_SITE", "lab-a")
    assert "unreachable" in devices().out
