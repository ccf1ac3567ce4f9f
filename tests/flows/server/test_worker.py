"""`etfarm worker` without a server to ask; tests/deployments/test_team_server.py stops one with a sweep."""

import pytest

from devices.errors import InputError
from flows.server.worker import POOL, run_worker


def test_a_worker_without_a_server_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with pytest.raises(InputError, match=r"^PREFECT_API_URL is not set; set it to the server's address"):
        run_worker(POOL)
