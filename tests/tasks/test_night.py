"""A night has one sweep of a name until somebody asks to measure again."""

from datetime import date

import pytest

from tasks.night import sweep_night

NIGHT = date(2026, 1, 2)


@pytest.mark.parametrize(
    ("there", "again", "wanted"),
    [
        ([], False, "smoke-2026-01-02"),
        ([], True, "smoke-2026-01-02"),
        (["smoke-2026-01-02"], False, "smoke-2026-01-02"),
        (["smoke-2026-01-02"], True, "smoke-2026-01-02.2"),
        (["smoke-2026-01-02", "smoke-2026-01-02.2"], False, "smoke-2026-01-02.2"),
        (["smoke-2026-01-02", "smoke-2026-01-02.10"], True, "smoke-2026-01-02.11"),
        (["smoke-2026-01-01", "smoke2-2026-01-02"], False, "smoke-2026-01-02"),
    ],
)
def test_the_newest_sweep_of_the_night_goes_on_unless_again_is_asked(
    there: list[str], again: bool, wanted: str
) -> None:
    # given the sweeps that have bundles already, then the sweep that is started now is
    assert sweep_night("smoke", NIGHT, there, again=again).sweep_id == wanted
