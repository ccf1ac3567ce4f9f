"""`etfarm server`: a Prefect server for the sweeps of one machine, and its clock."""

import os
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import httpx
import pytest
from prefect.settings import PREFECT_SERVER_API_PORT, temporary_settings

from devices.errors import InputError
from flows.server import connection, shared_server
from tests.fixtures.prefect_server import asked
from tests.fixtures.waiting import ENOUGH_S, wait_for


def test_the_server_has_the_user_interface_and_the_farms_settings_and_work_pools(prefect_api: str) -> None:
    address = prefect_api.removesuffix("/api")
    assert "<html" in httpx.get(address, timeout=ENOUGH_S, follow_redirects=True).text
    assert asked(f"{address}/ui-settings")["api_url"] == prefect_api
    settings = asked(f"{prefect_api}/admin/settings")["server"]
    assert settings["concurrency"]["lease_storage"].endswith(".filesystem")
    assert settings["services"]["task_run_recorder"]["batch_size"] == 100
    # runs are deleted 90 days after their end
    vacuum = settings["services"]["db_vacuum"]
    assert ("flow_runs" in vacuum["enabled"], vacuum["retention_period"]) == (True, "P90D")

    # and the work pools are there without a worker
    def pools() -> set[str]:
        return {pool["name"] for pool in asked(f"{prefect_api}/work_pools/filter", {})}

    wait_for(lambda: pools() >= {"etfarm", "etfarm-labs"}, lambda: str(pools()))


def test_an_address_in_use_is_one_sentence_and_no_server_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_server, "show", pytest.fail)  # it states the address of a server that is started
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        in_use = f"^the address 127.0.0.1:{port} is in use; set PREFECT_SERVER_API_HOST or "
        with temporary_settings({PREFECT_SERVER_API_PORT: port}), pytest.raises(InputError, match=in_use):
            shared_server.run_shared_server()


@pytest.mark.parametrize("moved_s", [3600.0, -3600.0])
def test_the_clock_difference_is_measured_by_the_answer_of_the_server(
    monkeypatch: pytest.MonkeyPatch, server: str, moved_s: float
) -> None:
    # given a real server, and a machine whose clock is set an hour ahead or behind
    monkeypatch.setenv("PREFECT_API_URL", server)
    monkeypatch.setattr(connection, "time", SimpleNamespace(time=lambda: time.time() + moved_s))
    # then the difference is known to a few seconds
    assert connection.clock_difference_s() == pytest.approx(moved_s, abs=ENOUGH_S)
    # and without a server of several sweeps no clock is compared
    monkeypatch.delenv("PREFECT_API_URL")
    assert connection.clock_difference_s() is None


def test_the_runs_of_a_worker_get_its_settings_in_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {"ETFARM_BUNDLES": "s3://farm/bundles"})
    Path("etfarm.yaml").write_text("data_dir: results\ninventory: farm.yaml\n", encoding="utf-8")
    for name in ("wait_for_server", "create_pool", "signal.signal", "subprocess.Popen"):
        monkeypatch.setattr(f"flows.server.shared_server.{name}", MagicMock())
    shared_server.run_worker("etfarm")
    passed = {name: value for name, value in os.environ.items() if name.startswith("ETFARM_")}
    paths = {"ETFARM_DATA_DIR": f"{tmp_path}/results", "ETFARM_INVENTORY": f"{tmp_path}/farm.yaml"}
    assert passed == paths | {"ETFARM_BUNDLES": "s3://farm/bundles"}
