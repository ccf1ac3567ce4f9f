"""The times at the end of a sweep: each with its sessions and how far they lie apart."""

from pathlib import Path
from typing import Any

import pytest

from flows.cli.sweep_output import end_pieces
from flows.sweep_result import SweepEnd
from flows.terminal import show_pieces
from tasks.store.workspace import Workspace
from tests.fixtures.warehouse import BundleMaker

MS = 1_000_000
EMULATED: dict[str, Any] = {"device__name": "qemu", "device__emulated": True}


def test_each_time_is_printed_with_its_sessions_and_their_interval_or_range(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maker = BundleMaker(tmp_path / "made")
    # given cells of one, of three and of six sessions, and one of an emulated device
    times = {"a-one": (10,), "b-three": (10.4665, 12.6, 10.51241), "c-six": (10, 11, 12, 13, 14, 15)}
    for model, times_ms in times.items():
        for index, ms in enumerate(times_ms):
            maker.session([round(ms * MS)] * 3, model__name=model, repetition=index)
    maker.session([10 * MS] * 3, **EMULATED)
    maker.load()
    # when the times are printed
    end = SweepEnd(sweep_id="smoke-2026-11-20", message="")
    show_pieces(end_pieces(end, Workspace(maker.warehouse.parent, maker.warehouse)))
    # then
    head, _rule, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[5:] == ["sessions", "runs", "time", "ms", "MAD", "ms", "95", "%", "interval", "or", "range"]
    one, three, six, emulated = (row.split()[5:] for row in rows[:4])
    assert one == ["1", "3", "10", "0"]
    # and a time lies within its range, since both have the same digits
    assert three == ["3", "9", "10.5124", "0", "10.4665", "to", "12.6", "ms"]
    assert six == ["6", "18", "12.5", "0", "95", "%", "interval", "10", "to", "15", "ms"]
    assert emulated[-1] == "3"


def test_the_end_of_a_sweep_has_at_most_ten_lines(tmp_path: Path) -> None:
    # given a sweep of seven cells, which fit, and one of eight
    maker, cells = BundleMaker(tmp_path / "made"), {"smoke-2026-11-20": 7, "other-2026-11-20": 8}
    for sweep_id, count in cells.items():
        for number in range(count):
            maker.session(
                [10 * MS] * 3, model__name=f"model-{number}", sweep__sweep_id=sweep_id, sweep__name=sweep_id[:5]
            )
    maker.load()
    # when their ends are printed
    for sweep_id, rest in zip(cells, ([], ["2 more cells: etfarm site report"]), strict=True):
        end = SweepEnd(sweep_id=sweep_id, message="all succeeded")
        lines = "".join(end_pieces(end, Workspace(maker.warehouse.parent, maker.warehouse))).splitlines()
        # then
        assert (len(lines), lines[-1]) == (10, "all succeeded")
        assert [line for line in lines if " more " in line] == rest
