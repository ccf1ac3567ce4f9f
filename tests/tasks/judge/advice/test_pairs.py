"""Each rewrite of the table really delegates its operator, and computes the same."""

from typing import Any

import pytest

from tasks.judge.advice.advice import TABLE, Advice, advice_for

pytestmark = pytest.mark.torch


@pytest.mark.thorough
@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.name)
def test_the_rewrite_delegates_the_operator(entry: Advice) -> None:
    from tests.fixtures.advice_pairs import PAIRS, lowered, output_of

    # given a small module in which the entry's operators are portable
    pair = PAIRS[entry.name]
    before = lowered(entry.name, pair.before)
    assert any(explains(entry, each, before.portable) for each in before.portable)
    if pair.after is None:
        assert entry.rewrite is None
        return
    # when the rewrite is exported
    after = lowered(entry.name, pair.after)
    # then nothing is portable, and the outputs are equal up to rounding
    assert after.portable == []
    expected, found = output_of(before), output_of(after)
    assert found.shape == expected.shape
    assert (found - expected).abs().max() < (5e-3 if pair.precision == "fp16" else 1e-5) * expected.abs().max()


def test_every_pair_belongs_to_an_entry() -> None:
    from tests.fixtures.advice_pairs import PAIRS

    assert PAIRS.keys() == {entry.name for entry in TABLE}


def explains(entry: Advice, operator: dict[str, Any], beside: list[dict[str, Any]]) -> bool:
    return advice_for(operator["operator"], operator["reason"], [each["operator"] for each in beside]) == entry
