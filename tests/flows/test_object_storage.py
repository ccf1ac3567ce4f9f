"""A farm that keeps its bundles in S3: every command works with --bundles, and nothing depends on the var folder."""

import json
from pathlib import Path

import pytest

from tests.fixtures.farm import Farm
from tests.fixtures.s3 import s3_client

SWEEP = "name: tiny\nmodels: [linear]\nvariants: [sme2_off]\nexecutions: 6\nwarmup_executions: 2\nsessions: 2\n"
SESSIONS = 3  # one of them is discarded


@pytest.mark.thorough
@pytest.mark.torch
def test_a_sweep_resumes_from_s3_and_is_loaded_and_traced_from_there(
    farm: Farm, bucket: str, s3_environment: dict[str, str], tmp_path: Path
) -> None:
    # given a farm with the address and the credentials of S3 in its environment
    farm.environment = farm.environment | s3_environment
    location = f"s3://{bucket}/farm"
    # when a sweep runs twice
    first = farm.sweep(SWEEP, "--bundles", location)
    again = farm.sweep(SWEEP, "--bundles", location)
    # then all its sessions are in S3, and the second time there is nothing to measure
    assert first.returncode == 0, first.stderr
    assert "sessions: 2 succeeded, 1 discarded" in first.stdout
    assert again.returncode == 0, again.stderr
    assert "sessions: 3 already done" in again.stdout
    assert not (farm.var / "bundles").exists()
    listed = s3_client().list_objects_v2(Bucket=bucket)["Contents"]
    records = [entry["Key"] for entry in listed if entry["Key"].endswith("/session.json")]
    assert len(records) == SESSIONS
    # and its latencies are in the warehouse
    latencies = "SELECT session_id, median_ms FROM session_latency ORDER BY session_id"
    rows = farm.ask(latencies)
    assert len(rows) == SESSIONS - 1
    # when another machine, led there by its environment, loads S3 twice
    farm.environment = farm.environment | {"ETFARM_BUNDLES": location}
    (tmp_path / "other").mkdir()
    other = Farm(tmp_path / "other", farm.environment)
    assert other.run("load").stdout == "3 loaded, 0 already in the warehouse, 0 refused\n"
    assert other.run("load").stdout == "0 loaded, 3 already in the warehouse, 0 refused\n"
    # then it has the same latencies, and it traces a session by its id
    assert other.ask(latencies) == rows
    traced = other.run("trace", rows[0]["session_id"], "-o", tmp_path / "run.json")
    assert traced.returncode == 0, traced.stderr
    about = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["otherData"]
    assert about["session_id"] == rows[0]["session_id"]
    # and no command printed the credentials
    for ended in (first, again, traced):
        assert s3_environment["AWS_SECRET_ACCESS_KEY"] not in ended.stdout + ended.stderr
