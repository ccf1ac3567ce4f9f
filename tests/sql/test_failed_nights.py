"""A night in which a model has no result because it could not be exported, and what a repair the same night changes."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.nights import WHY, failed_night_of, fields_of, night_of, week_of
from tests.fixtures.warehouse import BundleMaker

VERDICTS = "SELECT model, precision, day(night), verdict, reason, sessions FROM verdict ORDER BY ALL"
FAILED = f"8 of 8 sessions failed (export_failed): {WHY}"


@pytest.mark.parametrize("nights", [0, 3])
def test_a_night_without_an_export_failed_with_its_reason_also_as_the_first_night(
    maker: BundleMaker, nights: int
) -> None:
    # given a model that could be exported in one precision only
    week_of(maker, nights)
    failed_night_of(maker, 4)
    night_of(maker, 4, model__precision="fp16")
    maker.load()
    # then it failed in the other one alone
    fp16, *_, fp32 = maker.ask(VERDICTS)
    assert fp16[1:4] == ("fp16", 4, "insufficient data")
    assert fp32 == ("toy", "fp32", 4, "failed", FAILED, 0)


def test_a_night_after_one_that_failed_is_compared_with_those_before_it(maker: BundleMaker) -> None:
    week_of(maker, 3)
    failed_night_of(maker, 4)
    night_of(maker, 5)
    maker.load()
    assert [row[3] for row in maker.ask(VERDICTS)][-2:] == ["failed", "no change"]
    assert maker.ask("SELECT baseline_nights FROM verdict WHERE night = '2026-11-05'") == [(3,)]


@pytest.mark.parametrize("cases", [("toy",), ("toy@prefill128", "toy@decode")], ids=["one case", "two cases"])
def test_a_model_that_was_repaired_the_same_night_has_its_measured_result(
    maker: BundleMaker, tmp_path: Path, cases: tuple[str, ...]
) -> None:
    # given a model that failed in a night
    failed_night_of(maker, 4)
    maker.load()
    assert [row[3] for row in maker.ask(VERDICTS)] == ["failed"]
    # when the sweep is started again and measures it, in fewer sessions than were planned
    for case in cases:
        night_of(maker, 4, sessions=5, model__name=case)
    maker.load()
    # then the night has that result only, and what failed before is listed as superseded
    measured = [(case, 4, "insufficient data", 5) for case in sorted(cases)]
    assert maker.ask("SELECT model, day(night), verdict, sessions FROM verdict ORDER BY ALL") == measured
    assert maker.ask("SELECT reason, superseded, count(*) FROM failed_session GROUP BY ALL") == [(WHY, True, 8)]
    # and a warehouse that is made again has the same rows
    again = BundleMaker(tmp_path / "again")
    again.load(maker.bundles)
    assert again.ask(VERDICTS) == maker.ask(VERDICTS)


def test_a_result_in_another_mode_or_sweep_or_on_another_device_does_not_supersede_a_failure(
    maker: BundleMaker,
) -> None:
    failed_night_of(maker, 4)
    fields = fields_of(4)
    maker.session([100], **fields, mode="profile")
    maker.session([100], **fields, model__name="toys")
    maker.session([100], **fields, device__name="other")
    maker.session([100], **(fields | {"sweep": fields["sweep"] | {"sweep_id": "nightly-2026-11-04-2"}}))
    maker.load()
    assert maker.ask("SELECT DISTINCT superseded FROM failed_session") == [(False,)]


def test_a_device_that_answered_later_the_same_night_has_no_failed_series(maker: BundleMaker) -> None:
    # given a device whose facts were unknown while it could not be used
    for number in range(8):
        ended: dict[str, Any] = {"status": "failed", "reason_code": "device_unusable", "reason": "host: no answer"}
        maker.session(repetition=number, **fields_of(4), **ended, device__facts={})
    maker.load()
    assert maker.ask("SELECT verdict FROM verdict") == [("failed",)]
    # when it is measured
    night_of(maker, 4)
    maker.load()
    assert maker.ask("SELECT verdict, sessions FROM verdict") == [("insufficient data", 8)]
