"""The suggestion at the end of an error message about a misspelled word."""

import pytest

from devices.platform import PLATFORMS
from devices.suggest import did_you_mean


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
