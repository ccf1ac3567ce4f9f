"""Texts made from data of views."""

import pytest

from tasks.results.sentences import describe_changes, describe_differences


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ([("runner", "1a2b3c4d", "5e6f7a8b"), ("ExecuTorch", "1.5.1", "1.6.0")], "runner (ExecuTorch 1.5.1 -> 1.6.0)"),
        ([(".pte file", "1a", "2b"), ("runner", None, "5e"), ("OS", "14", "15")], ".pte file, runner, OS 14 -> 15"),
        ([("device", None, "s2"), ("executions", "20", "40")], "device unknown -> s2, executions 20 -> 40"),
        ([("ExecuTorch", "1", "2"), ("model source", "a", "b")], "ExecuTorch 1 -> 2, model source a -> b"),
    ],
)
def test_hashes_are_left_out_and_a_version_of_the_runner_follows_it(
    changes: list[tuple[str, str | None, str | None]], text: str
) -> None:
    rows = [{"fact": fact, "before": before, "after": after} for fact, before, after in changes]
    assert describe_changes(rows) == text


def test_an_unknown_fact_of_a_cell_is_named() -> None:
    assert describe_differences([{"fact": "pte", "value": None}, {"fact": "seed", "value": "7"}]) == (
        "pte unknown, seed 7"
    )
