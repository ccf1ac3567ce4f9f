"""Sessions with OpenVINO on another host: a real sshd, from sweep file to warehouse."""

import importlib.util
from collections.abc import Callable

import pytest

from devices.inventory import DeviceSpec
from tests.fixtures.farm import Farm, sweep_of
from tests.fixtures.paths import alone

pytestmark = [pytest.mark.torch, pytest.mark.lab, pytest.mark.timeout(900)]

FEW = {"precisions": ["fp32"], "delegates": ["xnnpack", "openvino"], "threads": [1, 2]}


def test_sessions_on_an_ssh_host_without_openvino_succeed_and_their_memory_adds_up(
    farm: Farm, make_spec: Callable[..., DeviceSpec]
) -> None:
    if importlib.util.find_spec("openvino") is None:
        pytest.skip("openvino is not installed (extra `openvino`)")
    # given this machine behind a real sshd
    spec = make_spec("ssh", name="remote", root=str(farm.folder / "device"))
    farm.write_inventory(spec.model_dump(mode="json", exclude_unset=True))
    with alone("runner"):
        done = farm.sweep(sweep_of("conv", **FEW))
    assert done.returncode == 0, done.stdout + done.stderr
    # then each session has the threads that its cell states, and the plain runner executes XNNPACK
    rows = farm.ask("""
        SELECT
            model, session.threads, list(DISTINCT session.threads_used) AS used, list(DISTINCT runner_sha256) AS runners
        FROM session_overview JOIN session USING (session_id)
        WHERE session_overview.status = 'succeeded' GROUP BY ALL ORDER BY model, session.threads
    """)
    plain, more = rows[0]["runners"], rows[2]["runners"]
    assert [(row["model"], row["threads"], row["used"], row["runners"]) for row in rows] == [
        (model, threads, [threads], runners)
        for model, runners in (("conv", plain), ("conv@delegate=openvino", more))
        for threads in (1, 2)
    ]
    assert len({*plain, *more}) == 2
    # and no part of the memory is negative, and they add up to what the system reported
    parts = farm.ask("""
        SELECT DISTINCT
            model, threads, moment, sum(bytes) OVER each - total_bytes AS rest, min(bytes) OVER each AS least
        FROM memory_use WINDOW each AS (PARTITION BY model, threads, moment)
    """)
    assert len(parts) == 4 * 4
    assert all(part["rest"] == 0 and part["least"] >= 0 for part in parts)
