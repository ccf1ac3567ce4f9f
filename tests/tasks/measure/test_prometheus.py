"""Figures for Prometheus: many processes add to one file, which no process and no error takes back."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tasks.measure import prometheus
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import ENOUGH_S

COUNTS = """
from tasks.measure import prometheus
for _ in range(50):
    prometheus.record("etfarm_sessions", device="pixel", end="failed", reason="device_lost")
    prometheus.flush()
prometheus.record("etfarm_sessions_left", 3, device="pixel")
prometheus.record("etfarm_newest_bundle_timestamp_seconds", %d)
prometheus.flush()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "collector/etfarm.prom"
    monkeypatch.setenv("ETFARM_METRICS", str(path))
    monkeypatch.setattr(prometheus, "_pending", {})
    monkeypatch.setattr(prometheus, "_warned", set())
    return path


def values(file: Path) -> dict[str, float]:
    """The samples of a file, as Prometheus names them, with the values of their labels in the order of their names."""
    families = text_string_to_metric_families(file.read_text(encoding="utf-8"))
    return {" ".join([each.name, *each.labels.values()]): each.value for family in families for each in family.samples}


def test_processes_that_count_at_the_same_time_lose_nothing(file: Path) -> None:
    # given two processes that count at the same time, and end
    programs = [COUNTS % newest for newest in (200, 100)]
    started = [subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) for program in programs]
    assert [process.wait(ENOUGH_S) for process in started] == [0, 0]
    # when a third one counts
    prometheus.record("etfarm_sessions", device="pixel", end="failed", reason="device_lost")
    prometheus.flush()
    # then the file has the sum, the last gauge and the newest moment
    assert values(file) == {
        "etfarm_sessions_total pixel failed device_lost": 101,
        "etfarm_sessions_left pixel": 3,
        "etfarm_newest_bundle_timestamp_seconds": 200,
    }
    # and only one file that the collector reads, which every user may read
    assert [path.name for path in file.parent.glob("*.prom")] == ["etfarm.prom"]
    assert file.stat().st_mode & 0o444 == 0o444


@pytest.mark.parametrize("content", ["# TYPE other counter\nother_total 1\n", ""])
def test_a_file_of_another_program_is_not_touched(file: Path, content: str, caplog: pytest.LogCaptureFixture) -> None:
    # given a file that etfarm did not write
    file.parent.mkdir()
    file.write_text(content, encoding="utf-8")
    # when something is counted twice
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            prometheus.record("etfarm_sweeps_started")
            prometheus.flush()
    # then the file is as it was, and one warning tells what to do
    assert file.read_text(encoding="utf-8") == content
    (line,) = caplog.messages
    assert line.startswith(f"ETFARM_METRICS {file}: ")
    # and what was counted is written as soon as that is possible
    file.unlink()
    prometheus.flush()
    assert values(file) == {"etfarm_sweeps_started_total": 2}
