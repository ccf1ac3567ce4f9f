"""The report's first section: did it get slower?"""

from pathlib import Path

import pytest

from tests.fixtures.nights import night_of
from tests.fixtures.report import report_of
from tests.fixtures.warehouse import BundleMaker


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    return BundleMaker(tmp_path)


def test_a_regression_is_the_first_thing_that_a_reader_meets(maker: BundleMaker) -> None:
    # given a steady week, then two nights on which one of two models is 10 % slower, from another .pte file
    for day in range(1, 10):
        night_of(maker, day, 1.1 if day > 7 else 1.0, model__pte_sha256="p2" if day > 7 else "p1")
        night_of(maker, day, model__name="steady")
    # when the report of the last night is written
    report = report_of(maker)
    # then its head and its first section name the model, the change, since when and what changed
    assert report.contains("Slower: toy fp32 on host with SME2 off and one thread (+10.0 %).")
    assert report.contains("regression")
    part = report["verdicts"]
    assert part.words.startswith("1 Did it get slower?")
    assert "Two series of this night compared with earlier ones: 1 regression, 1 no change." in part.words
    assert part.column("Model") == ["toy"]
    assert part.column("Verdict") == ["regression"]
    assert part.column("Change") == ["+10.0"]
    assert part.column("Since") == ["2026-11-08"]
    assert part.column("What changed") == [".pte file"]
    assert part.column("Model", table=1) == ["steady"]


def test_a_first_night_has_nothing_to_compare_with(maker: BundleMaker) -> None:
    night_of(maker, 1)
    report = report_of(maker)
    assert report.contains("Nothing to compare with: one series without an earlier night that counts.", "verdicts")
    assert report["verdicts"].tables == []
    # so the head counts no regressions, not even 0
    assert not report.contains("regression")


def test_emulated_devices_are_not_judged(maker: BundleMaker) -> None:
    night_of(maker, 1, device__emulated=True)
    assert "Nothing to judge: no series of a real device was measured." in report_of(maker)["verdicts"].words
