"""What is stated of a comparison: each answer in words with its numbers, and one sentence whose parts add up."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.judge.comparison import Answer, SideComparison
from tasks.results.changes import SeriesChange, SideFacts, answer_text, is_changed, size_change, time_text
from tasks.results.compare import comparison_headline, measured_fields
from tasks.results.pair_json import read_pair, write_pair
from tasks.results.sentences import describe_changes, describe_differences, describe_flags

FOUND = SideComparison(8, 8, 10.0, 11.2, 1.123, 1.101, 1.148, "different", None, 1.0)
SLOWER = SeriesChange(
    model="voice",
    device="pixel-8",
    precision="fp16",
    variant="sme2_on",
    threads=1,
    a=SideFacts(sessions=8, time_ms=10.0),
    b=SideFacts(sessions=8, time_ms=11.2),
    **measured_fields(FOUND, 0.01),
)
WORDS = (
    "slower", "faster", "device slower", "device faster", "same", "unknown", "inaccurate", "emulated", "simulated",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, "slower 12.3 % (10.1 to 14.8 %)"),
        ({"ratio": 0.9, "low": 0.88, "high": 0.93}, "faster 10.0 % (7.0 to 12.0 %)"),
        ({"answer": "same", "low": 0.994, "high": 1.008}, "not slower: at most 0.8 %"),
        ({"answer": "same", "low": 0.991, "high": 0.999}, "not slower: at most 0.0 %"),
        ({"answer": "unknown", "more_sessions": 14}, "inconclusive: 14 more sessions of each side"),
        ({"answer": "unknown"}, "inconclusive: over 1000 more sessions of each side"),
        ({"answer": "unknown", "ratio": None}, "inconclusive: a time of 0"),
    ],
)
def test_each_answer_has_its_numbers(changes: dict[str, object], answer: str) -> None:
    found = replace(FOUND, **changes)  # type: ignore[arg-type]
    assert measured_fields(found, 0.01)["in_words"] == answer


@pytest.mark.parametrize(
    ("ratio", "low", "answer", "is_of_device", "word", "is_regression"),
    [
        (1.011, 1.005, "different", False, "slower", True),
        (1.009, 1.005, "different", False, "slower", False),
        (1.1, 1.05, "different", True, "device slower", False),
        (0.9, 0.88, "different", False, "faster", False),
        (0.9, 0.88, "different", True, "device faster", False),
        (1.1, 0.99, "unknown", False, "unknown", False),
    ],
)
def test_a_regression_is_slower_by_more_than_the_margin_and_not_because_of_the_device(
    ratio: float, low: float, answer: Answer, is_of_device: bool, word: str, is_regression: bool
) -> None:
    found = replace(FOUND, ratio=ratio, low=low, high=ratio + 0.01, answer=answer)
    fields = measured_fields(found, 0.01, is_of_device=is_of_device)
    assert (fields["word"], fields["is_regression"]) == (word, is_regression)


def test_without_times_no_number_is_stated() -> None:
    emulated = replace(SLOWER, **measured_fields(None, 0.01, without_times="emulated"))
    assert answer_text(emulated) == "emulated: no times"
    assert (write_pair(emulated)["answer"], write_pair(emulated)["in_words"]) == (None, "emulated: no times")


def test_programs_read_the_record_that_was_written() -> None:
    of_device = replace(SLOWER, **measured_fields(FOUND, 0.01, is_of_device=True))
    kinds = ("emulated", "simulated")
    untimed = [replace(SLOWER, ratio=None, **measured_fields(None, 0.01, without_times=kind)) for kind in kinds]
    only_in_b = replace(SLOWER, word="only in B", answer="only in B", in_words=None)
    changes = [SLOWER, of_device, *untimed, only_in_b]
    assert [read_pair(write_pair(each)) for each in changes] == changes
    assert [each.is_compared for each in changes] == [True, True, True, True, False]


def test_a_smaller_file_is_a_change_even_where_the_time_is_the_same() -> None:
    same = replace(SLOWER, word="same", a=SideFacts(pte_bytes=1_000_000), b=SideFacts(pte_bytes=1_000_000))
    assert not is_changed(same)
    smaller = replace(same, b=SideFacts(pte_bytes=900_000))
    assert (is_changed(smaller), size_change(smaller)) == (True, "1 MB -> 900 kB (-10.0 %)")


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30))
def test_the_counts_of_the_first_sentence_add_up_to_the_number_of_series(words: list[str]) -> None:
    answer = comparison_headline([replace(SLOWER, word=word) for word in words], 0.01)
    counted = answer.partition("; sessions:")[0]
    slower = re.match(r"(No|\d+) (?:of \d+ )?series", counted)
    assert slower
    others = sum(int(count) for count in re.findall(r": (\d+)(?=;|$|, at best)", counted))
    assert (0 if slower[1] == "No" else int(slower[1])) + others == len(words)
    assert f" of {len(words)}" in answer


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


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ((0, None, False, 0), None),
        ((3, None, False, 1), "slow start (3 runs), 1 outlier"),
        ((0, 0.96, True, 2), "drift -4 %, two modes, 2 outliers"),
    ],
)
def test_unusual_runs_of_a_session_are_named_and_usual_ones_are_not(
    flags: tuple[object, ...], text: str | None
) -> None:
    names = ("settled_after_runs", "drift", "is_bimodal", "outlier_runs")
    assert describe_flags(dict(zip(names, flags, strict=True))) == text


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [(0.0812, "81.2 µs"), (0.9994, "999 µs"), (0.99999999, "1 ms"), (12.34, "12.3 ms"), (999.7, "1,000 ms")],
)
def test_a_time_has_three_digits_and_never_an_exponent(time_ms: float, text: str) -> None:
    assert time_text(time_ms) == text
