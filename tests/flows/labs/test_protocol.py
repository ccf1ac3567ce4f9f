"""What a farm and a lab exchange arrives as it was written."""

from datetime import datetime, timedelta, timezone
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import pytest

from devices.errors import InputError
from devices.inventory import load_inventory
from devices.ondevice.facts import Facts
from flows.device.job import DeviceTally
from flows.labs.protocol import Order, Result, Start, parse_message, read_shared, write_shared
from tasks.export.entry import ModelEntry
from tasks.measure.clock import drop_reason
from tasks.measure.health import Health
from tasks.measure.prepare import runner_uses
from tasks.runner.executorch_versions import ExecutorchVersions
from tasks.store.blob_store import BlobStore
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
    (tmp_path / "model.py").write_text("def make(): ...", encoding="utf-8")
    ours = ModelEntry.model_validate({"factory": "./model.py:make"}, context={"folder": tmp_path})
    spec = a_spec().model_copy(update={"models": [ours]})
    devices = load_inventory(tmp_path / "inventory.yaml").devices
    finish_by = datetime(2026, 1, 3, 7, tzinfo=timezone(timedelta(hours=1)))
    order = Order(run=uuid4(), spec=spec, sweep=NIGHT, devices=devices, finish_by=finish_by)
    # when it is sent to another machine
    text = order.model_dump_json().encode()
    (tmp_path / "model.py").unlink()
    arrived = parse_message(Order, text)
    # then it names the same devices and the same models, and the same moment in the words of the sweep file
    assert arrived.devices == devices
    assert arrived.finish_by == finish_by
    assert drop_reason(finish_by) == drop_reason(arrived.finish_by) == "would not have ended by 07:00"
    assert [(model.name, recipe) for model, recipe in arrived.spec.pairs] == [
        (model.name, recipe) for model, recipe in spec.pairs
    ]


def test_the_versions_of_exports_and_runners_arrive_in_the_names_of_models_and_in_uses() -> None:
    spec = a_spec().model_copy(update={"executorch": [ExecutorchVersions(export="1.4.1", runner="1.5.0")]})
    start = Start(facts=Facts(), uses=[(use, "runners/a") for use in runner_uses(spec)])
    pairs = [(model.name, recipe) for model, recipe in spec.pairs]
    order = Order(run=uuid4(), spec=spec, sweep=NIGHT, devices=[], starts={"far": start}, pairs=pairs)
    arrived = parse_message(Order, order.model_dump_json().encode())
    assert arrived.starts == {"far": start}
    assert {use.version for use, _ in start.uses} == {"1.5.0"}
    assert arrived.pairs == [(model.name, recipe) for model, recipe in arrived.spec.pairs] == pairs
    assert pairs[0][0].endswith("@export=1.4.1")


def test_the_end_of_a_device_arrives_as_it_was_written_and_with_a_key_twice_it_is_refused() -> None:
    tally = DeviceTally("far", succeeded=3, replaced={"0123456789abcdef"})
    ended = Result(tally=tally, health=Health("suspect", strikes=1))
    text = ended.model_dump_json().encode()
    assert parse_message(Result, text) == ended
    with pytest.raises(InputError, match="duplicate key `succeeded`, with 3 and 4"):
        parse_message(Result, text.replace(b'"succeeded":3', b'"succeeded":3,"succeeded":4'))


@pytest.mark.parametrize(
    ("written", "theirs"),
    [(b'{"version": 1, "beat": 0}', "of an older version"), (b'{"version": 6, "etfarm": "99.1"}', "99.1")],
)
def test_a_message_of_another_version_is_refused_and_both_are_named(written: bytes, theirs: str) -> None:
    with pytest.raises(
        InputError, match=f"the order was written by etfarm {theirs} and read by etfarm {version('etfarm')}"
    ):
        parse_message(Order, written)


def test_a_message_above_the_limit_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.store.blob_store._MAX_BYTES", 10)
    shared_files = BlobStore(str(tmp_path))
    write_shared(shared_files, "night/results/far", Result(health=Health()))
    with pytest.raises(InputError, match=r"results/far\.json: has more than 10 bytes, which is the limit"):
        read_shared(shared_files, "night/results/far", Result)
