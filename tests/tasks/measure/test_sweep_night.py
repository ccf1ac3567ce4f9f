"""A night has one sweep of a name unless the user measures again; a night can be named, but not one in the future."""

from datetime import date

import pytest

from devices.errors import InputError
from tasks.measure.sweep_night import night_or_today, parse_night, sweep_night

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
def test_the_newest_sweep_of_a_night_resumes_without_again(there: list[str], again: bool, wanted: str) -> None:
    # given the sweeps that have bundles already, then the sweep that is started now is
    assert sweep_night("smoke", NIGHT, there, again=again).sweep_id == wanted


@pytest.mark.parametrize(("night", "wanted"), [(None, NIGHT), (NIGHT, NIGHT), (date(2025, 12, 31), date(2025, 12, 31))])
def test_a_sweep_belongs_to_the_night_that_is_named_or_to_today(night: date | None, wanted: date) -> None:
    assert night_or_today(night, today=NIGHT) == wanted


def test_a_night_in_the_future_is_refused() -> None:
    with pytest.raises(InputError, match=r"^the night 2026-01-03 is in the future \(today is 2026-01-02\); name today"):
        night_or_today(date(2026, 1, 3), today=NIGHT)


def test_a_night_before_executorch_is_refused_also_where_the_clock_of_the_machine_states_it() -> None:
    sentence = r"^the night 2023-09-30 is before 2023-10-01, the first release of ExecuTorch; name a later night"
    with pytest.raises(InputError, match=sentence):
        night_or_today(date(2023, 9, 30), today=NIGHT)
    with pytest.raises(InputError, match=sentence):
        sweep_night("smoke", date(2023, 9, 30), (), again=False)


@pytest.mark.parametrize("text", ["yesterday", "2026-02-30", "20260102", "2026-W01-5", ""])
def test_a_night_is_written_as_a_date_and_no_other_way(text: str) -> None:
    assert parse_night("2026-01-02") == NIGHT
    with pytest.raises(InputError, match="not a night; write a date such as 2026-11-01"):
        parse_night(text)
