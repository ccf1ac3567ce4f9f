"""The sections on latency: what a cell took, what its runner needed, and which of it is uncertain."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.fixtures.report import MS
from tests.fixtures.warehouse import CONVOLUTION, MEAN
from tests.tasks.pages.conftest import Sweep, with_sessions

STEADY = [1_000_000, 1_003_000, 998_000, 1_001_000, 1_005_000, 997_000, 1_002_000, 999_000, 1_004_000, 996_000] * 5
DRIFTING = [run + 2_000 * number for number, run in enumerate(STEADY)]
TWO_MODES = [run + 300_000 * (number % 2) for number, run in enumerate(STEADY)]
SLOW_START_AND_OUTLIER = [run + 200_000 * (number in (0, 1, 2, 20)) for number, run in enumerate(STEADY)]
DASH = "\u2013"


def three_sessions(sweep: Sweep) -> None:
    for times_ms in ((10, 10, 11), (20, 20, 20), (12, 12, 12)):
        sweep.session([time_ms * MS for time_ms in times_ms])


@with_sessions(three_sessions)
def test_the_time_is_that_of_the_session_in_the_middle_and_wide_scatter_is_highlighted(sweep: Sweep) -> None:
    latency = sweep["latency"]
    assert latency.tables[0][1][5:7] + latency.column("Between") == ["12.000", "0.000", "2.000"]
    assert (latency.column("Sessions"), latency.column("Runs")) == (["3"], ["9"])
    assert latency.flagged == ["2.000"]
    assert "Scatter above 5 % of the time is highlighted, in one cell." in latency.words


def runners_of_three_ages(sweep: Sweep) -> None:
    """A runner that reports the memory of the model and has both clocks, an older one, and a costly ETDump."""
    older = {"load_ns": 5 * MS, "peak_resident_bytes": 9 << 20}
    clocks = {"execution_ns": [16 * MS, 1_016_000, 1_016_000], "untraced_execution_ns": [16 * MS, MS]}
    costly = {"execution_ns": [16 * MS, 1_730_000, 1_730_000]}
    sweep.session([MS, MS], model__name="a", stats=older | clocks | {"model_peak_resident_bytes": 3 << 20})
    sweep.session([MS, MS], model__name="b", stats=older)
    sweep.session([1_700_000] * 2, model__name="c", stats=older | clocks | costly)


@with_sessions(runners_of_three_ages)
def test_memory_is_that_of_the_model_if_known_and_the_cost_of_recording_is_highlighted(sweep: Sweep) -> None:
    latency = sweep["latency"]
    assert (latency.column("Load"), latency.column("Peak")) == (["5.0"] * 3, ["3.0", "9.0", "9.0"])
    assert latency.column("ETDump") == ["1.6", DASH, "73.0"]
    assert latency.flagged == ["73.0"]
    assert "Recording the ETDump took more than 5 % of a run in one cell" in latency.words
    assert "measured in one session of each cell; its scatter and the times without recording are" in latency.words


def costly_twice(sweep: Sweep) -> None:
    stats = {"execution_ns": [16 * MS, 1_730_000, 1_730_000], "untraced_execution_ns": [16 * MS, MS]}
    for number in range(2):
        sweep.session([1_700_000] * 2, repetition=number, stats=stats)


@with_sessions(costly_twice)
def test_a_cost_of_recording_from_several_sessions_has_their_number(sweep: Sweep) -> None:
    assert "It was measured in two sessions of each cell. Compare" in sweep["latency"].words


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
    # and no time is anywhere: of the run, of the convolution, of loading; nor the convolution's share
    for anchor in ("latency", "time", "operators", "sme2", "portable", "provenance"):
        text = f"{sweep[anchor].words} {sweep[anchor].tables}"
        assert not any(time in text for time in ("3.4", "2.3", "7.6", "67.8"))


@with_sessions(lambda sweep: sweep.session([12_300]))
def test_one_session_of_a_fast_model_has_a_fourth_decimal_and_no_distance_to_others(sweep: Sweep) -> None:
    latency = sweep["latency"]
    assert (latency.column("Time"), latency.column("Between")) == (["0.0123"], [DASH])
    # and a model without tokens has no prefill
    assert "Prefill" not in latency.words


def unusual_sessions(sweep: Sweep) -> None:
    for number, runs in enumerate((STEADY, DRIFTING, TWO_MODES, SLOW_START_AND_OUTLIER, STEADY[:5])):
        sweep.session(runs, repetition=number, started_at=f"2026-11-20T01:0{number}:00+00:00")
    sweep.session(DRIFTING, device__name="emulator", device__emulated=True)


@with_sessions(unusual_sessions)
def test_unusual_sessions_of_real_devices_are_flagged_and_counted(sweep: Sweep) -> None:
    flags = [row[-1] for heads, *rows in sweep["provenance"].tables if heads[-1] == "Flags" for row in rows]
    assert flags == [DASH, DASH, "drift +7 %", "two modes", "slow start (3 runs), 4 outliers", DASH]
    assert "Unusual sessions: 1 with drift above 5 % and 1 with two modes." in sweep["latency"].words


def language_models(sweep: Sweep) -> None:
    """A prompt of 128 tokens and the token after it; the last 32 of 96 tokens, read in 8 ms."""
    for case, tokens, kv_depth, ms in (("prefill128", 128, 0, 64), ("decode", 1, 128, 4)):
        sweep.session([ms * MS] * 3, model__name=f"llm@{case}", model__tokens=tokens, model__kv_depth=kv_depth)
    chunk: dict[str, Any] = {"model__tokens": 32, "model__kv_depth": 64, "model__prompt_tokens": 96}
    sweep.session([8 * MS] * 3, model__name="chunked@pp32_d64", **chunk)


@with_sessions(language_models)
def test_prefill_and_decoding_of_a_model_are_in_one_row(sweep: Sweep) -> None:
    _, *rows = sweep["latency"].tables[-1]
    llm = ["pp128", "64.000", "2,000.0", "tg1 @ d128", "4.000", "250.0", "1", "1"]
    chunked = ["pp32 @ d64", "8.000", "4,000.0", DASH, DASH, DASH, "1", DASH]
    names = ["host", "fp32", "off", "1"]
    assert sorted(rows) == [["chunked", *names, *chunked], ["llm", *names, *llm]]


def threads_of_two_variants(sweep: Sweep) -> None:
    times_ms = {("sme2_off", 1): 20, ("sme2_off", 2): 12, ("sme2_on", 1): 8, ("sme2_on", 2): 9}
    for (variant, threads), time_ms in times_ms.items():
        sweep.session([time_ms * MS], variant=variant, threads=threads)


@with_sessions(threads_of_two_variants)
def test_the_fewest_threads_that_are_fast_are_recommended(sweep: Sweep) -> None:
    threads = sweep["threads"]
    assert (threads.column("SME2"), threads.column("Recommended"), threads.column("Time")) == (["on"], ["1"], ["8.000"])
    heads, *rows = threads.tables[1]
    assert heads[-3:] == ["SME2", "1 thread ms", "2 threads ms"]
    assert sorted(row[-3:] for row in rows) == [["off", "20.000", "12.000"], ["on", "8.000", "9.000"]]
