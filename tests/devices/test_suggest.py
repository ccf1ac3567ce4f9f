"""The suggestion at the end of an error message about a misspelled word."""

import pytest

from devices.platform import PLATFORMS
from devices.suggest import did_you_mean


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("linux-x86-64", "linux-x86_64"),
        ("Linux-AArch64", "linux-aarch64"),
        ("macos-arm", "macos-arm64"),
        ("andriod-arm64", "android-arm64"),
    ],
)
def test_a_misspelled_word_is_answered_with_the_nearest_known_one(word: str, nearest: str) -> None:
    assert did_you_mean(word, PLATFORMS) == f"; did you mean `{nearest}`?"


@pytest.mark.parametrize("word", ["amiga", "", "linux-aarch64"])
def test_nothing_is_suggested_for_a_word_that_is_far_from_all_or_is_known(word: str) -> None:
    assert did_you_mean(word, PLATFORMS) == ""


def test_nothing_is_suggested_if_nothing_is_known() -> None:
    assert did_you_mean("linux-x86_64", []) == ""
