"""Which advice a portable operator gets, and what a user reads."""

from tasks.judge.advice.advice import TABLE, advice_for, advice_text

NO_RULE = "XNNPACK's partitioner has no rule for this operator"


def test_the_partitioners_reason_decides_between_causes_of_one_operator() -> None:
    found = [
        advice_for("aten.mean.dim", reason)
        for reason in (
            "mean.dim only supports keepdim=True",
            "mean.dim only supports averaging 4D tensors, got tensor of rank 3",
            "mean.dim only supports averaging 4D tensors across the innermost dimensions",
        )
    ]
    assert [entry and entry.name for entry in found] == ["mean_keepdim", "mean_rank", "mean_channels"]


def test_operators_beside_it_tell_a_roll_from_a_sum() -> None:
    alone = advice_for("aten.add.Tensor", NO_RULE, ["aten.add.Tensor"])
    beside = advice_for("aten.add.Tensor", NO_RULE, ["aten.fmod.Scalar", "aten.index_select.default"])
    assert (alone and alone.name, beside and beside.name) == ("rms_norm", "roll")


def test_where_nothing_can_be_done_or_nothing_is_known_the_text_states_it() -> None:
    assert advice_text("aten.embedding.default", NO_RULE) == (
        "XNNPACK has no table look-up. Nothing can be done in the exporter."
    )
    assert advice_text("aten.frobnicate.default", NO_RULE) == (
        f"{NO_RULE}. No rewrite is known: replace the operator in the model, or accept its time."
    )


def test_each_entry_has_its_name_alone() -> None:
    assert len({entry.name for entry in TABLE}) == len(TABLE)
