"""The slot of a device at a shared Prefect server is free as soon as nobody can use it any more."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings

from devices.errors import DeviceBusy
from flows.device import turns
from flows.device.slot import held_slot, release_slots
from flows.device.turns import Claim
from flows.server.run_notes import end_dead_runs
from tests.fixtures.paths import ROOT
from tests.fixtures.prefect_server import slots_in_use
from tests.fixtures.waiting import ENOUGH_S

HOLDER = """
import signal, sys
from flows.device.slot import held_slot
from flows.device.turns import Claim
with held_slot(Claim(sys.argv[1], "smoke-2026-01-02"), 60):
    print("held", flush=True)
    signal.pause()
"""


@pytest.fixture
def server(prefect_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    with temporary_settings({PREFECT_API_URL: prefect_api, PREFECT_HOME: tmp_path}):
        yield prefect_api


@pytest.mark.fault(
    stage="run",
    done="kill -9 of a farm that holds a device's slot at a shared server",
    holds="the next start on its host releases the slot at once; that of a living farm stays",
)
def test_the_slot_of_a_killed_farm_is_free_at_the_next_start(server: str) -> None:
    # given a farm that holds a slot, and another one that was killed
    holders = {
        name: subprocess.Popen([sys.executable, "-c", HOLDER, name], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for name in ("living", "killed")
    }
    try:
        for holder in holders.values():
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
        holders["killed"].kill()
        holders["killed"].wait()
        assert slots_in_use(server, "killed") == 1
        # when the next sweep starts on this host
        end_dead_runs()
        # then the slot of the killed one is free, and the other's is not
        assert slots_in_use(server, "killed") == 0
        assert slots_in_use(server, "living") == 1
    finally:
        for holder in holders.values():
            holder.kill()
            holder.communicate()


def test_a_farm_that_ends_early_releases_its_slots(server: str) -> None:
    with held_slot(Claim("early", "smoke-2026-01-02"), ENOUGH_S):
        assert slots_in_use(server, "early") == 1
        with get_client(sync_client=True) as client:
            release_slots(client)
        assert slots_in_use(server, "early") == 0
    assert slots_in_use(server, "early") == 0


@pytest.mark.fault(
    stage="lease",
    done="the Prefect server or its Redis is killed between taking a device's slot and creating its lease",
    holds="the next sweep that waits frees the slot, which nothing else would; a slot in use stays",
)
def test_a_slot_that_the_server_took_without_a_lease_is_freed_by_who_waits(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "LEAKED_S", 2.0)
    monkeypatch.setattr(turns, "BEAT_S", 0.5)
    # given a slot that is taken and has no lease
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name("device:leaked", 1)
        client.increment_concurrency_slots(["device:leaked"], 1, "concurrency")
    assert slots_in_use(server, "leaked") == 1
    # when a sweep waits for the device, then it gets it
    with held_slot(Claim("leaked", "smoke-2026-01-02"), ENOUGH_S):
        assert slots_in_use(server, "leaked") == 1
    assert slots_in_use(server, "leaked") == 0


def test_a_slot_of_a_sweep_that_measures_is_not_freed_by_who_waits(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "LEAKED_S", 0.0)
    monkeypatch.setattr(turns, "BEAT_S", 0.2)

    @flow(name="device", flow_run_name="device in-use")
    def measuring() -> None:
        # given a device on which a sweep measures
        with held_slot(Claim("in-use", "first-2026-01-02"), ENOUGH_S):
            # when another one waits for it, then it waits in vain
            with ThreadPoolExecutor(1) as pool, pytest.raises(DeviceBusy):  # outside of that flow run
                pool.submit(wait_for_slot).result(ENOUGH_S)
            assert slots_in_use(server, "in-use") == 1

    def wait_for_slot() -> None:
        with (
            temporary_settings({PREFECT_API_URL: server}),
            held_slot(Claim("in-use", "second-2026-01-02"), 3.0),
        ):
            pass

    measuring()
