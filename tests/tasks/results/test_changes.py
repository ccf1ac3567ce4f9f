"""What is stated of a comparison: each answer in words with its numbers, and one sentence whose parts add up."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.judge.comparison import Comparison
from tasks.results.changes import (
    SeriesChange,
    SideFacts,
    answer_text,
    is_changed,
    memory_change,
    pair,
    read_pair,
    size_change,
)
from tasks.results.compare import headline, measured_figures

FOUND = Comparison(8, 8, 10.0, 11.2, 1.123, 1.101, 1.148, "different", None, 1.0)
SLOWER = SeriesChange(
    model="voice",
    device="pixel-8",
    precision="fp16",
    variant="sme2_on",
    threads=1,
    a=SideFacts(sessions=8, time_ms=10.0),
    b=SideFacts(sessions=8, time_ms=11.2),
    **measured_figures(FOUND, "slower"),
)
WORDS = (
    "slower", "faster", "device slower", "device faster", "same", "unknown", "inaccurate", "emulated", "simulated",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "word", "answer"),
    [
        ({}, "slower", "slower 12.3 % (10.1 to 14.8 %)"),
        ({}, "device slower", "device slower 12.3 % (10.1 to 14.8 %)"),
        ({"ratio": 0.9, "low": 0.88, "high": 0.93}, "faster", "faster 10.0 % (7.0 to 12.0 %)"),
        ({"answer": "same", "low": 0.994, "high": 1.008}, "same", "not slower: at most 0.8 %"),
        ({"answer": "same", "low": 0.991, "high": 0.999}, "same", "not slower: at most 0.0 %"),
        ({"answer": "unknown", "more_sessions": 14}, "unknown", "cannot tell: 14 more sessions of each side"),
        ({"answer": "unknown", "more_sessions": 1}, "unknown", "cannot tell: 1 more session of each side"),
        ({"answer": "unknown"}, "unknown", "cannot tell: over 1000 more sessions of each side"),
        ({"answer": "unknown", "ratio": None}, "unknown", "cannot tell: a time of 0"),
    ],
)
def test_each_answer_has_its_numbers(changes: dict[str, object], word: str, answer: str) -> None:
    found = replace(FOUND, **changes)  # type: ignore[arg-type]
    assert measured_figures(found, word)["in_words"] == answer


def test_inaccurate_outputs_are_the_answer_whatever_the_times_are() -> None:
    for found in (FOUND, None):
        figures = measured_figures(found, "inaccurate", "A and B")
        assert (figures["answer"], figures["in_words"]) == ("inaccurate", "inaccurate: A and B")


def test_without_times_no_number_is_stated() -> None:
    emulated = replace(SLOWER, **measured_figures(None, "emulated"))
    assert answer_text(emulated) == "emulated: no times"
    assert (pair(emulated)["answer"], pair(emulated)["in_words"]) == (None, None)


def test_programs_read_the_record_that_was_written() -> None:
    of_device = replace(SLOWER, **measured_figures(FOUND, "device slower"))
    assert [read_pair(pair(each)) for each in (SLOWER, of_device)] == [SLOWER, of_device]


@pytest.mark.parametrize(("peak_b", "memory"), [(104.9e6, ""), (105.1e6, "100.00 -> 105.10 MB (+5.1 %)")])
def test_peak_memory_is_stated_where_it_moved_by_more_than_5_percent(peak_b: float, memory: str) -> None:
    change = replace(SLOWER, a=SideFacts(peak_memory_bytes=100e6), b=SideFacts(peak_memory_bytes=peak_b))
    assert memory_change(change) == memory


def test_a_smaller_file_is_a_change_even_where_the_time_is_the_same() -> None:
    same = replace(SLOWER, word="same", a=SideFacts(pte_bytes=1_000_000), b=SideFacts(pte_bytes=1_000_000))
    assert not is_changed(same)
    smaller = replace(same, b=SideFacts(pte_bytes=900_000))
    assert (is_changed(smaller), size_change(smaller)) == (True, "1.00 -> 0.90 MB (-10.0 %)")


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30))
def test_the_counts_of_the_first_sentence_add_up_to_the_number_of_series(words: list[str]) -> None:
    answer = headline([replace(SLOWER, word=word) for word in words], 0.01)
    counted = answer.partition("; sessions:")[0]
    slower = re.match(r"(No|\d+) (?:of \d+ )?series", counted)
    assert slower
    others = sum(int(count) for count in re.findall(r": (\d+)(?=;|$|, at best)", counted))
    assert (0 if slower[1] == "No" else int(slower[1])) + others == len(words)
    assert f" of {len(words)}" in answer
