"""`etfarm devices queue`: who holds each device and who waits, read from the devices without a server."""

import json
import os
from pathlib import Path

import pytest

from devices.inventory import load_inventory, open_device
from devices.ondevice.lease import acquire
from tests.fixtures.command import Command
from tests.fixtures.documented import assert_documented
from tests.fixtures.leases import held_file, put_waiter

INVENTORY = """
labs: [berlin]
devices:
  - {name: here, transport: local, root: "%s"}
  - {name: gone, transport: ssh, address: 127.0.0.1, port: 9, user: nobody, root: /tmp/x}
  - {name: phone, transport: adb, serial: X, site: berlin}
"""


@pytest.fixture
def queue(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `etfarm devices queue` on an inventory of one device that is here, one that is not, and one of a lab."""
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(INVENTORY % (tmp_path / "device"), encoding="utf-8")
    monkeypatch.setattr("devices.device.Device.machine_folder", str(tmp_path / "machine"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.delenv("ETFARM_SITE", raising=False)
    return lambda *words: command("devices", "queue", "--inventory", inventory, *words)


def test_the_queue_shows_who_measures_and_who_waits_and_which_devices_cannot_be_asked(
    queue: Command, tmp_path: Path
) -> None:
    with open_device(load_inventory(tmp_path / "inventory.yaml").devices[0]) as device:
        # given a device that is held, and two that wait for it
        with acquire(device, "nightly-2026-01-02"):
            record = held_file(device).read_text(encoding="utf-8").replace("nightly", "urgent")
            put_waiter(device, came_s=90)
            put_waiter(device, priority=10, record=record.strip())
            rows = json.loads(queue("--format", "json").out)
            assert_documented("devices queue", rows)
            holder = json.loads(held_file(device).read_text(encoding="utf-8"))
        # then each has a row, in the order in which they get the device
        process = {"process": f"process {holder['pid']} on {holder['host']}", "since": holder["since"]}
        turn = {"device": "here", "turn": "measures", "sweep": "nightly-2026-01-02", "priority": 0, **process}
        assert rows[0] == turn
        assert rows[1] == turn | {"turn": "waits, 1", "sweep": "urgent-2026-01-02", "priority": 10}
        assert (rows[2]["turn"], rows[2]["sweep"], rows[2]["process"]) == ("waits, 2", "another process", "")
    # and those that cannot be asked have one with the cause
    assert [row["device"] for row in rows[3:]] == ["gone", "phone"]
    assert rows[3]["turn"].startswith("unreachable: ")
    assert rows[4]["turn"] == "in lab berlin; run this command there with ETFARM_SITE=berlin"
    assert {row["sweep"] for row in rows[3:]} == {None}


def test_a_holder_that_was_killed_is_shown_as_ended(queue: Command, tmp_path: Path) -> None:
    with open_device(load_inventory(tmp_path / "inventory.yaml").devices[0]) as device, acquire(device, "nightly"):
        assert queue().lines[2].split()[:3] == ["here", "measures", "nightly"]
        path = held_file(device)
        path.write_text(path.read_text("utf-8").replace(f'"pid": {os.getpid()}', '"pid": 999999999'), encoding="utf-8")
        assert queue().lines[2].startswith("here    has ended ")
    # and a device that is idle has no row
    assert queue().lines[2].startswith("gone ")
    assert queue().lines[-1] == "(2 rows)"


def test_a_mistake_is_one_sentence(command: Command) -> None:
    assert command("devices", "queue", "--inventory", "no.yaml") == (
        2,
        "",
        "etfarm: no.yaml: no such inventory; pass one with --inventory\n",
    )
