"""The sections on latency: what a cell took, what its runner needed, and which of it is uncertain."""

from collections.abc import Callable

import pytest

from tests.fixtures.report import MS
from tests.fixtures.warehouse import CONVOLUTION, MEAN
from tests.tasks.pages.conftest import Sweep, with_sessions

DASH = "\u2013"


def three_sessions(sweep: Sweep) -> None:
    for times_ms in ((10, 10, 11), (20, 20, 20), (12, 12, 12)):
        sweep.session([time_ms * MS for time_ms in times_ms])


@with_sessions(three_sessions)
def test_the_time_is_that_of_the_session_in_the_middle_and_wide_scatter_is_highlighted(sweep: Sweep) -> None:
    latency = sweep["latency"]
    assert latency.tables[0][1][5:7] + latency.column("Between") == [
        "12",
        "0.000",
        "2.000",
    ]  # without the decimals that its interval leaves open
    assert (latency.column("Sessions"), latency.column("Runs")) == (["3"], ["9"])
    assert latency.flagged == ["2.000"]
    assert "Scatter above 5 % of the time is highlighted, in one cell." in latency.words


def sessions_of(*times_ms: int) -> Callable[[Sweep], None]:
    def write(sweep: Sweep) -> None:
        for number, time_ms in enumerate(times_ms):
            sweep.session([time_ms * MS] * 3, repetition=number)

    return write


@pytest.mark.parametrize(
    ("sweep", "evidence", "is_untested"),
    [
        (sessions_of(10), "one session", False),
        (sessions_of(10, 20), "two sessions, 10.0 to 20.0 ms", True),
        (sessions_of(10, 20, 12, 15), "four sessions, 10.0 to 20.0 ms", True),
        (sessions_of(10, 20, 12, 15, 30), "five sessions, 10.0 to 30.0 ms", False),
        (sessions_of(10, 12, 11, 13, 10, 12, 14, 11), "eight sessions, 95 % interval 10.5 to 13.0 ms", False),
    ],
    indirect=["sweep"],
)
def test_a_time_has_its_evidence_and_too_few_sessions_are_not_tested(
    sweep: Sweep, evidence: str, is_untested: bool
) -> None:
    latency = sweep["latency"]
    assert f" ms ({evidence}) for toy." in latency.summary
    sentence = "The interval of a ratio needs at least 5 sessions: differences of one cell of these are not tested."
    assert (sentence in latency.words) is is_untested


def device_without_times(transport: str) -> Callable[[Sweep], None]:
    def write(sweep: Sweep) -> None:
        device = {"device__name": "device-1", "device__transport": transport, "device__emulated": True}
        stats = {"load_ns": 7_654_321, "peak_resident_bytes": 1 << 20}
        run = (3_456_789, {CONVOLUTION: 2_345_678, MEAN: 123_456})
        for variant in ("sme2_on", "sme2_off"):
            sweep.session([run], variant=variant, stats=stats, **device)

    return write


@pytest.mark.parametrize(
    ("sweep", "mark", "sentence"),
    [
        (device_without_times("simulated"), "simulated", "nothing was measured, and no time is shown or ranked"),
        (device_without_times("adb"), "emulated", "device-1 is emulated"),
    ],
    indirect=["sweep"],
)
def test_a_device_whose_times_mean_nothing_is_marked_and_they_are_in_no_section(
    sweep: Sweep, mark: str, sentence: str
) -> None:
    latency = sweep["latency"]
    assert latency.column("Time") == [DASH, DASH]
    assert latency.column("Device") == [f"device-1 {mark}"] * 2
    assert sentence in latency.words
    assert f"on one device (one of them {mark})" in sweep.head
    assert "there are no times to base advice on" in sweep["advice"].words
    for anchor in ("latency", "time", "operators", "sme2", "portable", "provenance"):
        text = f"{sweep[anchor].words} {sweep[anchor].tables}"
        assert not any(time in text for time in ("3.4", "2.3", "7.6", "67.8"))


def several_threads(sweep: Sweep) -> None:
    facts = {"device__facts": {"os": "macos", "cores": 14, "sme_units": 2, "sme": True, "sme2": True}}
    for variant, times in ("sme2_on", {1: 33, 2: 18, 6: 24}), ("sme2_off", {2: 25, 8: 10}):
        for threads, ms in times.items():
            for number in range(8):
                sweep.session([ms * MS + number * 10_000], variant=variant, threads=threads, repetition=number, **facts)


@with_sessions(several_threads)
def test_the_best_number_of_threads_is_a_sentence_for_each_variant_and_a_row_for_the_model(sweep: Sweep) -> None:
    section = sweep["threads"]
    assert section.column("Recommended") == ["8"]
    assert "toy fp32 on host, SME2 on: two threads, 18.0 ms (eight sessions, 95 % interval" in section.words
    assert "SME2 gains up to two threads, loses from 6; 6 threads share two SME units." in section.words
    assert "toy fp32 on host, SME2 off: eight threads, 10.0 ms (eight sessions" in section.words
    assert section.flagged == ["10.035", "18.035"]
