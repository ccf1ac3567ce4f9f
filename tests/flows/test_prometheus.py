"""What a sweep adds to the figures for Prometheus."""

import pytest

from flows.warehouse.publish import load_store
from tasks.measure import prometheus
from tasks.store.workspace import Workspace
from tests.fixtures.stand_in_farm import StandInFarm
from tests.tasks.measure.test_prometheus import values


@pytest.mark.thorough
def test_a_sweep_counts_sessions_waits_and_its_end(stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    # given figures that are wanted
    file = stand_in_farm.folder / "etfarm.prom"
    monkeypatch.setenv("ETFARM_METRICS", str(file))
    monkeypatch.setattr(prometheus, "_pending", {})
    # when a sweep measures this machine, and a device that does not answer
    gone: dict[str, object] = {"name": "gone", "transport": "adb", "serial": "no-such", "platform": "linux-x86_64"}
    assert stand_in_farm.sweep(gone).is_failed()
    # then sessions are counted by how they ended, on each device
    found = values(file)
    assert {name: value for name, value in found.items() if name.startswith("etfarm_sessions")} == {
        "etfarm_sessions_total gone failed device_unusable": 3,
        "etfarm_sessions_total here discarded first_session": 1,
        "etfarm_sessions_total here succeeded ": 2,
        "etfarm_sessions_left here": 0,
    }
    assert found["etfarm_session_seconds_total here"] > 0
    assert found["etfarm_wait_seconds_total lease here"] > 0
    assert "etfarm_wait_seconds_total export here" in found
    # and the warehouse is not behind the bundles of this machine
    assert 0 < found["etfarm_newest_loaded_timestamp_seconds"] <= found["etfarm_newest_bundle_timestamp_seconds"]
    ends = {name: value for name, value in found.items() if name.startswith("etfarm_sweeps")}
    assert ends == {
        "etfarm_sweeps_started_total": 1,
        "etfarm_sweeps_total completed": 0,
        "etfarm_sweeps_total failed": 1,
        "etfarm_sweeps_total stopped": 0,
    }
    # when the sweep starts again and an error stops it
    stand_in_farm.sweep_file.write_text("name: [", encoding="utf-8")
    assert stand_in_farm.sweep().is_failed()
    # then that is added, and nothing was taken back
    again = values(file)
    assert (again["etfarm_sweeps_started_total"], again["etfarm_sweeps_total stopped"]) == (2, 1)
    assert again.keys() >= found.keys()
    assert again["etfarm_sessions_total here succeeded "] == 2
    # and a load alone changes no count
    load_store(Workspace(stand_in_farm.data_dir))
    assert values(file) == again
