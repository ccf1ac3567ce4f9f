"""Tokens beside those of the host and of eager: the first that differs decides, unless it was nearly as likely."""

from dataclasses import replace
from pathlib import Path

import pytest

from tasks.export.entry import AccuracyRequirement
from tasks.measure.session.accuracy import References, compare_outputs, max_margin
from tests.tasks.measure.session.test_accuracy import LIMITS, case, entry


def test_written_tokens_are_compared_one_by_one_and_fp32_writes_its_own_text(tmp_path: Path) -> None:
    # given a device whose third token of twelve differs from the same model in eager, and whose first from fp32
    eager, fp32, got = [5] * 12, [1] * 12, [5, 5, 6, *[5] * 9]
    references, collected = case(tmp_path, eager, got, "int64", fp32=fp32, fp32_dtype="int64")
    of_eager, of_fp32 = compare_outputs(replace(references, are_tokens=True), collected)
    # then it is inaccurate by that token alone; how much is equal to fp32 is shown and not judged, ...
    assert (of_eager.is_inaccurate, of_eager.first_difference, of_eager.snr_db) == (True, 2, None)
    assert (of_fp32.is_inaccurate, of_fp32.first_difference, of_fp32.top1_agreement) == (None, 0, 0.0)
    # ... nor is eager where it rounds activations in another way
    limits = replace(LIMITS, same_text=False)
    rounded, _ = compare_outputs(replace(references, are_tokens=True, limits=limits), collected)
    assert (rounded.is_inaccurate, rounded.first_difference) == (None, 2)


def test_scores_at_the_limit_may_each_be_off_by_its_part_of_their_size() -> None:
    assert max_margin(40) == pytest.approx(2 * 0.01)


def tokens_instead(folder: Path, written: int, behind: list[float]) -> tuple[References, Path]:
    """A text of eager and the host whose third token, 7, a device wrote as `written`; 8 to 10 are the next likely."""
    eager = [5, 5, 7, 5]
    references, collected = case(folder, eager, [5, 5, written, 9], "int64")
    choices = [
        entry(folder / "export", "choices-0.bin", [[token, 8, 9, 10] for token in eager], "int64"),
        entry(folder / "export", "choices-1.bin", [[0.0, 1.0, 2.0, 3.0]] * 2 + [behind] * 2, "float32"),
    ]
    by_text = {"eager": choices, "host": choices}
    return replace(references, are_tokens=True, host=references.eager, choices=by_text), collected


@pytest.mark.parametrize(
    ("times", "of_host", "of_eager"),
    [
        pytest.param(0.99, False, False, id="within the limit against the host"),
        pytest.param(1.01, True, False, id="beyond it, within the one against eager"),
        pytest.param(3.2, True, True, id="beyond both"),
    ],
)
def test_a_token_that_was_nearly_as_likely_is_another_text_and_no_error(
    tmp_path: Path, times: float, of_host: bool, of_eager: bool
) -> None:
    # given limits of 40 dB against the host and 30 dB against eager, whose margins are as 1 to 3.16
    margin = times * max_margin(LIMITS.host_db)
    host, eager = compare_outputs(*tokens_instead(tmp_path, 8, [0.0, margin, 2.0, 3.0]))
    # then the first token that differs and its margin are told, and the limit decides
    assert (host.reference, host.first_difference, eager.first_difference) == ("host", 2, 2)
    assert [host.margin, eager.margin] == pytest.approx([margin, margin])
    assert (host.is_inaccurate, eager.is_inaccurate) == (of_host, of_eager)


def test_the_margin_is_between_the_two_tokens_if_neither_is_eagers_likeliest(tmp_path: Path) -> None:
    # given a host that wrote the third likeliest token, and a device the second
    references, collected = tokens_instead(tmp_path, 8, [0.0, 0.5, 0.501, 3.0])
    references = replace(references, host=[entry(references.folder, "host.bin", [5, 5, 9, 5], "int64")])
    host, eager = compare_outputs(references, collected)
    assert [host.margin, eager.margin] == pytest.approx([0.001, 0.5], rel=1e-3)
    assert (host.is_inaccurate, eager.is_inaccurate) == (False, True)


@pytest.mark.parametrize("behind", [[0.0] * 4, [float("nan")] * 4], ids=["an unlikely token", "no scores"])
def test_a_differing_token_of_unknown_margin_is_inaccurate(tmp_path: Path, behind: list[float]) -> None:
    written = 3 if behind[0] == 0 else 8
    host, eager = compare_outputs(*tokens_instead(tmp_path, written, behind))
    assert (host.margin, host.is_inaccurate, eager.margin, eager.is_inaccurate) == (None, True, None, True)


def test_a_required_share_of_equal_tokens_applies_at_any_margin(tmp_path: Path) -> None:
    references, collected = tokens_instead(tmp_path, 8, [0.0] * 4)
    _, eager = compare_outputs(replace(references, required=AccuracyRequirement(top1=0.9)), collected)
    assert (eager.margin, eager.top1_agreement, eager.is_inaccurate) == (0.0, 0.5, True)
