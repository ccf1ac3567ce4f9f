"""Simulated devices from the command line: the whole contract, replayed recordings, and no time anywhere."""

import json

import pytest

from tasks.bundle.record import SessionRecord
from tasks.store.folder import read_records
from tests.fixtures.farm import Farm, sweep_of

pytestmark = pytest.mark.torch
pytest.importorskip("executorch", reason="exports and the runner need the export extra")

SESSIONS = 3  # of each device: one is discarded


@pytest.fixture
def simulated(farm: Farm) -> Farm:
    """The farm with two simulated devices whose sessions last 50 ms."""
    entry = {"name": "simulated", "transport": "simulated", "count": 2, "seconds": 0.05, "root": str(farm.folder)}
    farm.inventory.write_text(json.dumps({"devices": [entry]}), encoding="utf-8")
    return farm


def records_of(farm: Farm) -> list[SessionRecord]:
    """The records of all sweeps."""
    return [
        record
        for sweep in farm.data_dir.glob("bundles/*-*")
        for record in read_records(farm.data_dir / "bundles", sweep.name)
    ]


@pytest.mark.thorough
def test_a_sweep_of_simulated_devices_passes_every_check_and_shows_no_time(simulated: Farm) -> None:
    # given a list that calls them simulated
    listed = simulated.run("devices", "--inventory", simulated.inventory)
    rows = [line.split()[:3] for line in listed.stdout.splitlines() if line.startswith("simulated-")]
    names = ["simulated-001", "simulated-002"]
    assert rows == [[name, "simulated", "idle"] for name in names]
    # when one model is swept on both
    done = simulated.sweep(sweep_of("linear"))
    assert done.returncode == 0, done.stderr
    # then the terminal lists them as simulated, with counts and without a median
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("simulated-")]
    assert lines == [[name, "(simulated)", "linear", "fp32", "sme2_off", "1", "2", "8"] for name in names]
    # and every record states it, has compared outputs, and was as long as the inventory asks
    records = records_of(simulated)
    assert len(records) == 2 * SESSIONS
    for record in records:
        assert (record.device.transport, record.device.emulated) == ("simulated", True)
        assert record.runner is not None
        assert record.runner.kind == "simulated"
        assert record.accuracy
        assert (record.wall_s or 0) >= 0.04  # the clock of jobs has steps of 10 ms
    # and all are loaded, each with an ETDump that bears its session's name
    assert simulated.ask("SELECT count(*) AS sessions FROM session_overview") == [{"sessions": 2 * SESSIONS}]
    for record in records:
        etdump = simulated.data_dir / "bundles" / record.sweep.sweep_id / record.session_id / "model.etdump"
        assert etdump.read_bytes()[-64:].strip() == f"simulated {record.session_id}".encode()
    # and the report shows no time of them
    html = (simulated.data_dir / "reports" / records[0].sweep.sweep_id / "report.html").read_text(encoding="utf-8")
    assert "nothing was measured, and no time is shown or ranked" in html
    assert simulated.ask("SELECT verdict FROM verdict") == []
