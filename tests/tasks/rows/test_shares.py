"""What part of the time operators take: by the one time of runs and sessions, with the spread over the sessions."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import read_etdump
from tasks.rows.shares import SessionTimes, Share, cell_sessions, session_times, share
from tests.fixtures.warehouse import CONVOLUTION, MEAN, Execution, etdump_of

US = 1000


def times_of(folder: Path, measured: Sequence[Execution]) -> SessionTimes:
    path = folder / "model.etdump"
    path.write_bytes(etdump_of([(99 * US, {MEAN: 90 * US}), *measured]))
    return session_times(read_etdump(path), 1)


def portable_of(sessions: Sequence[SessionTimes]) -> Share:
    return share(sessions, lambda session: session.of_kind[EventKind.PORTABLE])


def test_one_run_that_a_portable_operator_dominates_changes_no_share(tmp_path: Path) -> None:
    # given nine runs with 10 % in a portable operator, and one of a hundred times the time that is all portable
    steady: Execution = (100 * US, {CONVOLUTION: 80 * US, MEAN: 10 * US})
    session = times_of(tmp_path, [steady] * 9 + [(10_000 * US, {MEAN: 9_900 * US})])
    assert session.execute_ns == 100 * US
    assert session.portable == {"mean": 10 * US}
    assert session.of_kind == {EventKind.DELEGATED: 80 * US, EventKind.PORTABLE: 10 * US}


def test_a_share_is_that_of_the_sessions_in_the_middle_with_the_range_of_all(tmp_path: Path) -> None:
    portable_us = (2, 1, 13, 910, 2)
    sessions = [
        times_of(tmp_path, [((90 + each) * US, {CONVOLUTION: 80 * US, MEAN: each * US})] * 4) for each in portable_us
    ]
    # then the parts of the middle three add up to their time, and the disturbed one shows in the range
    typical = cell_sessions(sessions)
    assert sorted(session.portable["mean"] for session in typical) == [2 * US, 2 * US, 13 * US]
    result = portable_of(sessions)
    assert result.value == pytest.approx(17 / (92 + 92 + 103))
    assert [result.low, result.high] == pytest.approx([1 / 91, 910 / 1000])


def test_executions_of_0_ns_have_no_share(tmp_path: Path) -> None:
    assert portable_of([times_of(tmp_path, [(0, {MEAN: 0})] * 3)]) == Share(0.0, 0.0, 0.0)
