"""A sweep with `interval_percent` leaves out sessions behind a clear answer; what it tells stays right."""

import pytest

from tests.fixtures.farm import Farm

# Medians that are known to within a factor of two: so clear that only the least number of sessions is measured.
EARLY = """name: tiny
models: [linear]
variants: [sme2_off]
executions: 6
warmup_executions: 2
sessions: 12
interval_percent: 100
"""


@pytest.mark.torch
@pytest.mark.thorough
def test_a_sweep_ends_early_names_what_was_not_needed_and_measures_nothing_when_started_again(farm: Farm) -> None:
    pytest.importorskip("executorch", reason="exports and the runner need the export extra")
    # when a sweep with at most 12 sessions a cell is run
    done = farm.sweep(EARLY)
    # then it ends well after 8 sessions, and the others are neither failed nor missing
    assert done.returncode == 0, done.stderr
    assert "sessions: 8 succeeded, 1 discarded, 4 not needed" in done.stdout
    assert "linear fp32 t1: 4 sessions not needed: medians are known to 100 %" in done.stderr
    assert farm.ask("SELECT count(*) AS sessions FROM session_latency") == [{"sessions": 8}]
    assert "Every planned session has a result." in farm.written_report(done)
    # and another start measures nothing
    again = farm.sweep(EARLY)
    assert again.returncode == 0, again.stderr
    assert "sessions: 9 already done, 4 not needed" in again.stdout
