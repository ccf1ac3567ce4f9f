"""The report on latency: what a cell took, what its runner needed, and what of it cannot be trusted."""

from typing import Any

import pytest

from tests.fixtures.report import MS, report_of
from tests.fixtures.warehouse import CONVOLUTION, MEAN, BundleMaker

STEADY = [1_000_000, 1_003_000, 998_000, 1_001_000, 1_005_000, 997_000, 1_002_000, 999_000, 1_004_000, 996_000] * 5
DRIFTING = [run + 2_000 * index for index, run in enumerate(STEADY)]
TWO_MODES = [run + 300_000 * (index % 2) for index, run in enumerate(STEADY)]
SLOW_START_AND_OUTLIER = [run + 200_000 * (index in (0, 1, 2, 20)) for index, run in enumerate(STEADY)]


def test_the_time_is_that_of_the_session_in_the_middle_and_the_sessions_are_counted(maker: BundleMaker) -> None:
    maker.session([10 * MS, 10 * MS, 11 * MS], repetition=0)
    maker.session([20 * MS] * 3, repetition=1)
    maker.session([12 * MS] * 3, repetition=2)
    report = report_of(maker)
    latency = report["latency"]
    assert latency.column("Time") == ["12.000"]
    assert latency.column("Between") == ["2.000"]
    assert latency.column("Sessions") == ["3"]
    assert latency.column("Runs") == ["9"]
    # and scatter of a sixth is highlighted
    assert "**2.000**" in report.markdown
    assert report.contains("Scatter above 5 % of the time is highlighted, in one cell.", "latency")


def test_what_the_runner_reports_is_shown(maker: BundleMaker) -> None:
    # given a runner that tells the memory of the model and has both clocks, and an older one
    older = {"load_ns": 5 * MS, "peak_memory_bytes": 9 << 20}
    clocks = {"execution_ns": [16 * MS, 1_016_000, 1_016_000], "untraced_execution_ns": [16 * MS, MS]}
    maker.session([MS, MS], model__name="a", stats=older | clocks | {"model_peak_memory_bytes": 3 << 20})
    maker.session([MS, MS], model__name="b", stats=older)
    # and an ETDump that is costly to record
    costly = {"execution_ns": [16 * MS, 1_730_000, 1_730_000]}
    maker.session([1_700_000] * 2, model__name="c", stats=older | clocks | costly)
    # then the memory of the process stands for that of the model, and a cost that is not known is none
    report = report_of(maker)
    latency = report["latency"]
    assert (latency.column("Load"), latency.column("Peak")) == (["5.0"] * 3, ["3.0", "9.0", "9.0"])
    assert latency.column("ETDump") == ["1.6", "–", "73.0"]  # noqa: RUF001
    assert report.contains("Recording the ETDump took more than 5 % of a run in one cell", "latency")
    # and one session is no ground for what the times are without it
    assert report.contains(
        "It was measured in one session of each cell; its scatter and the times without recording are unknown.",
        "latency",
    )


def test_a_cost_of_recording_from_several_sessions_has_their_number(maker: BundleMaker) -> None:
    for index in range(2):
        stats = {"execution_ns": [16 * MS, 1_730_000, 1_730_000], "untraced_execution_ns": [16 * MS, MS]}
        maker.session([1_700_000] * 2, repetition=index, stats=stats)
    report = report_of(maker)
    assert report.contains("It was measured in two sessions of each cell. Compare these cells only", "latency")
    assert not report.contains("its scatter and", "latency")


@pytest.mark.parametrize(
    ("times_ms", "sentence"),
    [
        (
            (10, 20, 12),
            "The interval of a ratio needs at least 5 sessions: differences of one cell of these are not tested.",
        ),
        ((10, 20, 12, 15, 30), None),
    ],
)
def test_nothing_is_claimed_of_differences_that_have_no_test(
    maker: BundleMaker, times_ms: tuple[int, ...], sentence: str | None
) -> None:
    for index, ms in enumerate(times_ms):
        maker.session([ms * MS] * 3, repetition=index)
    report = report_of(maker)
    assert report.contains("Scatter above 5 % of the time is highlighted", "latency")
    assert report.contains(sentence or "Below 5 sessions", "latency") == (sentence is not None)
    assert "significant" not in report["latency"].text


@pytest.mark.parametrize(
    ("times_ms", "evidence"),
    [
        ((10,), "one session"),
        ((10, 12), "two sessions, 10.0 to 12.0 ms"),
        ((10, 12, 11, 13, 10), "five sessions, 10.0 to 13.0 ms"),
        ((10, 12, 11, 13, 10, 12, 14, 11), "eight sessions, 95 % interval 10.5 to 13.0 ms"),
    ],
)
def test_the_time_at_the_head_of_the_report_has_its_sessions_and_their_spread(
    maker: BundleMaker, times_ms: tuple[int, ...], evidence: str
) -> None:
    for index, ms in enumerate(times_ms):
        maker.session([ms * MS] * 3, repetition=index)
    head = report_of(maker)
    assert head.contains(f" ms ({evidence}) for toy.")


@pytest.mark.parametrize(
    ("transport", "mark", "sentence"),
    [
        ("simulated", "simulated", "nothing was measured, and no time is shown or ranked"),
        ("adb", "emulated", "device-1 is emulated"),
    ],
)
def test_a_device_whose_times_mean_nothing_is_marked_and_they_are_not_shown(
    maker: BundleMaker, transport: str, mark: str, sentence: str
) -> None:
    # given both variants on it
    stats = {"load_ns": 7_654_321, "peak_memory_bytes": 1 << 20}
    run = (3_456_789, {CONVOLUTION: 2_345_678, MEAN: 123_456})
    for variant in ("sme2_on", "sme2_off"):
        maker.session(
            [run],
            variant=variant,
            stats=stats,
            device__name="device-1",
            device__transport=transport,
            device__emulated=True,
        )
    report = report_of(maker)
    # then its rows are marked, and a sentence states what it is
    assert report["latency"].column("Time") == ["–", "–"]  # noqa: RUF001
    assert report["latency"].column("Device") == [f"device-1 {mark}"] * 2
    assert report.contains(sentence, "latency")
    assert report.contains("there are no times to base advice on", "advice")
    assert f"on one device (one of them {mark})" in report.markdown
    # and no time is anywhere: of the run, of the convolution, of loading; nor the convolution's share
    for time in ("3.4", "2.3", "7.6", "67.8"):
        assert time not in report.html.split("<main ")[1]
        assert time not in report.markdown


def test_one_session_of_a_fast_model_has_a_fourth_decimal_and_no_distance_to_others(maker: BundleMaker) -> None:
    maker.session([12_300])
    latency = report_of(maker)["latency"]
    assert (latency.column("Time"), latency.column("Between")) == (["0.0123"], ["–"])  # noqa: RUF001


def test_the_flags_of_a_session_are_in_its_row_and_unusual_sessions_are_counted(maker: BundleMaker) -> None:
    # given a session of each kind, and one with too few runs to tell
    for index, runs in enumerate((STEADY, DRIFTING, TWO_MODES, SLOW_START_AND_OUTLIER, STEADY[:5])):
        maker.session(runs, repetition=index, started_at=f"2026-11-20T01:0{index}:00+00:00")
    report = report_of(maker)
    # then
    assert report["provenance"].column("Flags", table=-1) == [
        "–",  # noqa: RUF001
        "drift +7 %",
        "two modes",
        "slow start (3 runs), 4 outliers",
        "–",  # noqa: RUF001
    ]
    assert report.contains("Unusual sessions: 1 with drift above 5 % and 1 with two modes.", "latency")


def phases(maker: BundleMaker) -> list[list[str]]:
    """The rows of language models, one for each."""
    tables = report_of(maker)["latency"].tables
    return [row for heads, *rows in tables for row in rows if any(head.startswith("Prefill run") for head in heads)]


def test_prefill_and_decoding_of_a_model_are_in_one_row(maker: BundleMaker) -> None:
    for case, tokens, kv_depth, ms in (("prefill128", 128, 0, 64), ("decode", 1, 128, 4)):
        maker.session([ms * MS] * 3, model__name=f"llm@{case}", model__tokens=tokens, model__kv_depth=kv_depth)
    assert phases(maker) == [
        ["llm", "host", "fp32", "off", "1", "pp128", "64.000", "2,000.0", "tg1 @ d128", "4.000", "250.0", "1", "1"]
    ]
    assert report_of(maker).contains("a text cannot end early", "latency")


def test_a_prompt_in_chunks_shows_the_time_of_its_last_chunk(maker: BundleMaker) -> None:
    # given the last 32 of 96 tokens, read in 8 ms
    chunk: dict[str, Any] = {"model__tokens": 32, "model__kv_depth": 64, "model__prompt_tokens": 96}
    maker.session([8 * MS] * 3, model__name="llm@pp32_d64", **chunk)
    none = ["–"] * 3  # noqa: RUF001
    assert phases(maker) == [["llm", "host", "fp32", "off", "1", "pp32 @ d64", "8.000", "4,000.0", *none, "1", none[0]]]


def test_without_a_language_model_nothing_is_said_of_prefill(maker: BundleMaker) -> None:
    maker.session([MS] * 3)
    assert phases(maker) == []
    assert not report_of(maker).contains("Prefill", "latency")


def test_steady_sessions_and_emulated_devices_have_no_flags(maker: BundleMaker) -> None:
    maker.session(STEADY)
    maker.session(DRIFTING, device__name="emulator", device__emulated=True)
    report = report_of(maker)
    assert "Unusual sessions" not in report.html
    assert "drift" not in report["provenance"].text
