"""The suggestion at the end of an error message about a misspelled word."""

import pytest

from devices.platform import PLATFORMS
from devices.suggest import did_you_mean, nights_beside


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("Linux-AArch64", "; did you mean `linux-aarch64`?"),
        ("andriod-arm64", "; did you mean `android-arm64`?"),
        ("amiga", ""),
        ("linux-aarch64", ""),
    ],
)
def test_a_misspelled_word_is_answered_with_the_nearest_known_one_if_one_is_near(word: str, message: str) -> None:
    assert did_you_mean(word, PLATFORMS) == message
    assert did_you_mean(word, []) == ""


@pytest.mark.parametrize(
    ("night", "named"),
    [
        ("2027-01-01", "; nearest: 2026-11-30"),
        ("2026-11-22", "; nearest: 2026-11-21 and 2026-11-30"),
        ("2025-11-22", "; nearest: 2026-01-01"),
        ("yesterday", "; nearest: 2026-11-30"),
    ],
)
def test_a_night_that_was_not_measured_is_answered_with_those_beside_it(night: str, named: str) -> None:
    # 2026-01-01 is more alike to 2027-01-01 than the night before it
    assert nights_beside(night, ["2026-11-30", "2026-01-01", "2026-11-21"]) == named
    assert nights_beside(night, []) == ""
