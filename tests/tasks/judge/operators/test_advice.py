"""Which advice a portable operator gets, what a user reads, and that each rewrite delegates its operator."""

from typing import Any

import pytest

from tasks.judge.operators.advice import TABLE, Advice, advice_for, advice_text

NO_RULE = "XNNPACK's partitioner has no rule for this operator"
# All pairs take two minutes to export: changes wait for a quarter of them.
ENTRIES = [pytest.param(entry, marks=[pytest.mark.long] if number % 8 else []) for number, entry in enumerate(TABLE)]


def test_the_partitioners_reason_decides_between_causes_of_one_operator() -> None:
    only = "mean.dim only supports"
    reasons = (
        "keepdim=True",
        "averaging 4D tensors, got tensor of rank 3",
        "averaging 4D tensors across the innermost dimensions",
    )
    found = [advice_for("aten.mean.dim", f"{only} {reason}") for reason in reasons]
    assert [entry and entry.name for entry in found] == ["mean_keepdim", "mean_rank", "mean_channels"]


def test_operators_beside_it_tell_a_roll_from_a_sum() -> None:
    alone = advice_for("aten.add.Tensor", NO_RULE, ["aten.add.Tensor"])
    beside = advice_for("aten.add.Tensor", NO_RULE, ["aten.fmod.Scalar", "aten.index_select.default"])
    assert (alone and alone.name, beside and beside.name) == ("rms_norm", "roll")


def test_where_nothing_can_be_done_or_nothing_is_known_the_text_states_it() -> None:
    keepdim = advice_for("aten.mean.dim", "mean.dim only supports keepdim=True")
    assert keepdim is not None
    assert advice_text("aten.mean.dim", "mean.dim only supports keepdim=True") == keepdim.text
    assert advice_text("aten.embedding.default", NO_RULE).endswith("Nothing can be done in the exporter.")
    assert advice_text("aten.frobnicate.default", NO_RULE).startswith(f"{NO_RULE}. No rewrite is known: ")


@pytest.mark.torch
@pytest.mark.thorough
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_rewrite_delegates_the_operator(entry: Advice) -> None:
    from tests.fixtures.advice_pairs import PAIRS, lowered, output_of

    pair = PAIRS[entry.name]
    before = lowered(entry.name, pair.before)
    assert any(explains(entry, each, before.portable) for each in before.portable)
    if pair.after is None:
        assert entry.rewrite is None
        return
    after = lowered(entry.name, pair.after)
    # then nothing is portable, and the outputs are equal up to rounding
    assert after.portable == []
    expected, found = output_of(before), output_of(after)
    assert found.shape == expected.shape
    assert (found - expected).abs().max() < (5e-3 if pair.precision == "fp16" else 1e-5) * expected.abs().max()


def explains(entry: Advice, operator: dict[str, Any], beside: list[dict[str, Any]]) -> bool:
    return advice_for(operator["operator"], operator["reason"], [each["operator"] for each in beside]) == entry
