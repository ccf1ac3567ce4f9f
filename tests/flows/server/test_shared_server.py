"""`etfarm server`: a Prefect server for the sweeps of one machine."""

import os
import socket
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.fixtures.command import run_etfarm
from tests.fixtures.prefect_server import asked, running_prefect
from tests.fixtures.waiting import ENOUGH_S, wait_for


def test_the_server_has_the_user_interface_and_the_farms_settings(prefect_api: str) -> None:
    address = prefect_api.removesuffix("/api")
    page = httpx.get(address, timeout=ENOUGH_S, follow_redirects=True)
    settings = httpx.get(f"{prefect_api}/admin/settings", timeout=ENOUGH_S).json()["server"]
    assert "<html" in page.text
    assert httpx.get(f"{address}/ui-settings", timeout=ENOUGH_S).json()["api_url"] == prefect_api
    assert settings["concurrency"]["lease_storage"].endswith(".filesystem")
    assert settings["services"]["task_run_recorder"]["batch_size"] == 100


def test_an_address_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        environment = os.environ | {"PREFECT_SERVER_API_PORT": str(port), "ETFARM_DATA_DIR": str(tmp_path)}
        ended = run_etfarm("server", env=environment)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"etfarm: the address 127.0.0.1:{port} is in use; set PREFECT_SERVER_API_HOST or ")


@pytest.mark.thorough
def test_runs_that_ended_90_days_ago_are_deleted_and_younger_ones_kept(tmp_path: Path) -> None:
    # given a server with runs that ended 89 and 91 days ago
    with running_prefect(lambda: tmp_path) as (api, _):
        flow = asked(f"{api}/flows/", {"name": "sweep"})["id"]
        for name in ("89", "91"):
            asked(f"{api}/flow_runs/", {"flow_id": flow, "name": name, "state": {"type": "COMPLETED"}})
    with closing(sqlite3.connect(tmp_path / "prefect.db")) as database, database:
        for name in ("89", "91"):
            ended = datetime.now(UTC) - timedelta(days=int(name))
            database.execute("UPDATE flow_run SET end_time = ? WHERE name = ?", [f"{ended:%Y-%m-%d %H:%M:%S.%f}", name])
    # when it is started again
    with running_prefect(lambda: tmp_path) as (api, _):
        # then it deletes the older one
        wait_for(lambda: len(asked(f"{api}/flow_runs/filter", {})) < 2, "a run to be deleted")
        assert [run["name"] for run in asked(f"{api}/flow_runs/filter", {})] == ["89"]


def test_the_server_has_its_work_pools_without_a_worker(prefect_api: str) -> None:
    def pools() -> set[str]:
        return {pool["name"] for pool in asked(f"{prefect_api}/work_pools/filter", {})}

    wait_for(lambda: pools() >= {"etfarm", "etfarm-labs"}, lambda: str(pools()))
