"""`etfarm server`: a Prefect server for the sweeps of one machine."""

import os
import socket
from pathlib import Path

import httpx

from tests.fixtures.command import run_etfarm
from tests.fixtures.waiting import ENOUGH_S


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
        environment = os.environ | {"PREFECT_SERVER_API_PORT": str(port), "ETFARM_VAR": str(tmp_path)}
        ended = run_etfarm("server", env=environment)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"etfarm: the address 127.0.0.1:{port} is in use; set PREFECT_SERVER_API_HOST or ")
