"""What a farm and a lab tell each other arrives as it was said."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from devices.errors import InputError
from devices.inventory import load_inventory
from flows.device.job import DeviceTally
from flows.labs.messages import Order, Report, order_text, parse_order, parse_report
from tasks.measure.finish_by import would_not_end
from tasks.prepare.export.entry import ModelEntry
from tests.fixtures.plans import NIGHT, a_spec

INVENTORY = """devices:
  - {name: here, transport: local}
  - {name: pixel, transport: adb, serial: 8A1X, limits: {min_battery_percent: 50}}
  - {name: mac, transport: ssh, address: mac.lab, identity_file: /keys/farm}
  - {name: far, transport: adb, serial: 9B2Y, via: lab@bench-7:2222}
  - {name: simulated, transport: simulated, count: 2, seconds: 0.5}
"""


def test_an_order_arrives_with_devices_of_every_transport_and_models_of_another_machine(tmp_path: Path) -> None:
    # given an order with a model in a file that the lab does not have
    (tmp_path / "inventory.yaml").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "model.py").touch()
    ours = ModelEntry.model_validate({"factory": "./model.py:make"}, context={"folder": tmp_path})
    spec = a_spec().model_copy(update={"models": [ours]})
    devices = load_inventory(tmp_path / "inventory.yaml").devices
    finish_by = datetime(2026, 1, 3, 7, tzinfo=timezone(timedelta(hours=1)))
    order = Order(site="berlin", spec=spec, sweep=NIGHT, devices=devices, finish_by=finish_by)
    # when it is sent to another machine
    text = order_text(order)
    (tmp_path / "model.py").unlink()
    arrived = parse_order(text)
    # then it names the same devices and the same models, and the same moment in the words of the sweep file
    assert arrived.devices == devices
    assert arrived.finish_by == finish_by
    assert would_not_end(finish_by) == would_not_end(arrived.finish_by) == "would not have ended by 07:00"
    assert [(model.name, recipe) for model, recipe in arrived.spec.pairs] == [
        (model.name, recipe) for model, recipe in spec.pairs
    ]


def test_a_report_arrives_as_it_was_written() -> None:
    report = Report(beat=3, tallies={"far": DeviceTally("far", succeeded=3, replaced={"0123456789abcdef"})})
    assert parse_report(report.model_dump_json().encode()) == report


def test_a_message_of_another_version_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"^the report is of another version of etfarm \(.*\); update both sides$"):
        parse_report(b'{"version": 2}')
