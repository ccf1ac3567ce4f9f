"""How long a step is reported, as the README promises it: seven nights, then its nights are the baseline."""

import pytest

from tests.fixtures.series import WEEKS, series, verdicts


@pytest.mark.parametrize(("factor", "verdict"), [(1.3, "regression"), (0.7, "improvement")])
def test_a_step_is_reported_for_seven_nights_and_not_in_the_eighth(factor: float, verdict: str) -> None:
    stepped = [factor * level_ms for level_ms in WEEKS[:9]]
    found = verdicts(series(*WEEKS, *stepped))[len(WEEKS) :]
    # the first night is suspected until the second confirms it
    assert found == ["suspected", *[verdict] * 6, "no change", "no change"]
