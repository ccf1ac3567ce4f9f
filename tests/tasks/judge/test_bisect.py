"""The search of a bisection: which series, which nights, and the first bad one of them."""

from datetime import date
from typing import Any
from unittest.mock import Mock

import pytest

from devices.errors import InputError
from tasks.judge.bisect import MeasuredNight, SeriesOnDevice, find_bounds, find_series, first_bad


def night(day: int, pte: str, verdict: Any = "no change", baseline_to: int | None = None) -> MeasuredNight:
    to = date(2026, 11, baseline_to) if baseline_to else None
    return MeasuredNight(date(2026, 11, day), verdict, to, 20, 3, "key", pte, "r1")


NIGHTS = [night(1, "p1"), night(2, "p1"), night(3, "p2"), night(4, "p3")]
NIGHTS += [night(5, "p3", "suspected", 2), night(6, "p4", "regression", 2)]


def test_the_newest_step_gives_the_nights_unless_the_user_names_them() -> None:
    good, contents = find_bounds(NIGHTS, None, None)
    assert good.night == date(2026, 11, 2)
    # each content once, by its first night
    assert [(each.night.day, each.pte_sha256) for each in contents] == [(3, "p2"), (4, "p3"), (6, "p4")]
    good, contents = find_bounds(NIGHTS, date(2026, 11, 1), date(2026, 11, 4))
    assert (good.night.day, [each.night.day for each in contents]) == (1, [3, 4])


def test_of_a_bad_night_alone_the_good_one_is_that_of_the_newest_step_up_to_it() -> None:
    # given a later step, whose last good night is after the bad night
    nights = [*NIGHTS, night(7, "p4"), night(8, "p4"), night(9, "p5", "regression", 8)]
    good, contents = find_bounds(nights, None, date(2026, 11, 6))
    assert (good.night.day, contents[-1].night.day) == (2, 6)
    with pytest.raises(InputError, match="no night of this series up to 2026-11-04 is suspected or a regression; name"):
        find_bounds(nights, None, date(2026, 11, 4))


@pytest.mark.parametrize(
    ("nights", "good", "bad", "sentence"),
    [
        (NIGHTS[:2], None, None, "no night of this series is suspected or a regression; name two with --good and"),
        (NIGHTS, 2, 9, "2026-11-09 is not a measured night of this series; measured: 2026-11-01, 2026-11-02, 2026"),
        (NIGHTS, 4, 3, "the good night 2026-11-04 is not before the bad night 2026-11-03; exchange them"),
        (NIGHTS, 1, 2, "model and runner of 2026-11-02 are those of 2026-11-01: the device changed, not they"),
    ],
)
def test_nights_that_cannot_be_bisected_are_refused(
    nights: list[MeasuredNight], good: int | None, bad: int | None, sentence: str
) -> None:
    named = [date(2026, 11, day) if day else None for day in (good, bad)]
    with pytest.raises(InputError, match=sentence):
        find_bounds(nights, *named)


@pytest.mark.parametrize("count", range(1, 18))
def test_the_first_bad_content_is_found_with_few_comparisons(count: int) -> None:
    for truth in range(count):
        is_bad = Mock(side_effect=lambda index, truth=truth: index >= truth)
        assert first_bad(count, is_bad) == truth
        assert is_bad.call_count <= count.bit_length()


SERIES = [
    SeriesOnDevice("aaaa11112222", "pixel-1", "vit", "fp32", "sme2_on", 1),
    SeriesOnDevice("bbbb11112222", "pixel-1", "vit", "fp16", "sme2_on", 1),
    SeriesOnDevice("cccc11112222", "pixel-1", "conv", "fp32", "sme2_on", 1),
    SeriesOnDevice("cccc11112222", "pixel-2", "conv", "fp32", "sme2_on", 1),
]


def test_a_series_is_named_by_its_model_or_its_id_and_a_name_of_several_lists_them() -> None:
    anywhere = {"device": None, "precision": None}
    assert find_series("bbbb11", anywhere, SERIES) == SERIES[1]
    assert find_series("conv", {"device": "pixel-2"}, SERIES) == SERIES[3]
    assert find_series("vit", {"device": "pixel-1", "precision": "fp16"}, SERIES) == SERIES[1]
    with pytest.raises(InputError, match=r"`vit` is 2 series; .*\n  aaaa11112222  vit fp32 SME2 on t1 on pixel-1"):
        find_series("vit", anywhere, SERIES)
    with pytest.raises(InputError, match="`cnv` is not a model or a series id; did you mean `conv`"):
        find_series("cnv", anywhere, SERIES)


@pytest.mark.parametrize(
    ("only", "values"),
    [({"device": "phone"}, "pixel-1, pixel-2"), ({"device": "pixel-2", "precision": "fp61"}, "fp32")],
)
def test_a_device_or_precision_without_such_a_series_is_named_and_not_the_model(
    only: dict[str, str | None], values: str
) -> None:
    *_, option = only
    with pytest.raises(InputError, match=f"^--{option}: `conv` .*{values}"):
        find_series("conv", only, SERIES)
