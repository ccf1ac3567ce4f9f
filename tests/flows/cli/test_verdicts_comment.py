"""The comment of `etfarm verdicts` for a pull request explains its worst change in the words of `etfarm explain`."""

import re
from pathlib import Path

import pytest

from tests.fixtures.command import Command
from tests.fixtures.nights import night_of, week_of
from tests.fixtures.warehouse import BundleMaker

_POINT = re.compile(r"^- .*$", re.MULTILINE)


def known_of(comment: Path) -> list[str]:
    """Return the points about the worst change."""
    return _POINT.findall(comment.read_text(encoding="utf-8").partition("What is known about the worst change")[2])


@pytest.mark.thorough
def test_the_worst_change_of_a_night_is_explained_as_etfarm_explain_does(command: Command, tmp_path: Path) -> None:
    # given a night in which one of two models got slower
    maker = BundleMaker(tmp_path)
    for name, factor in (("voice", 1.3), ("steady", 1.0)):
        week_of(maker, nights=5, model__name=name)
        night_of(maker, 6, factor, model__name=name, model__pte_sha256=f"p{factor}")
    maker.load()
    explained = command("explain", "voice", "--format", "markdown", "--warehouse", maker.warehouse).out
    points = _POINT.findall(explained)
    assert points[0].startswith("- Evidence: Eight sessions, ")
    # then its comment has the same points, each in one line
    comment = tmp_path / "night.md"
    assert command("verdicts", "--output", comment, "--warehouse", maker.warehouse).code == 0
    assert known_of(comment) == points
    # and so it has when a newer night was measured
    night_of(maker, 7, 1.0, model__name="voice")
    maker.load()
    command("verdicts", "2026-11-06", "--output", comment, "--warehouse", maker.warehouse)
    assert known_of(comment) == points
