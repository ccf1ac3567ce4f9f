"""Prefill and decoding of language models: sessions, a query, the expected rows."""

from typing import Any

import pytest

from tasks.bundle.robust_statistics import median_interval
from tests.fixtures.warehouse import BundleMaker

MS = 1_000_000
SPEEDS = "prefill_tokens, prefill_ms, time_to_first_token_ms, prefill_tokens_per_s, prefill_sessions"
DECODING = "kv_depth, decode_tokens, decode_ms, decode_tokens_per_s, decode_sessions"


def phase(maker: BundleMaker, case: str, tokens: int, kv_depth: int | None, *times_ms: int, **changes: Any) -> None:
    """Write sessions of one phase, each with a known time."""
    for time_ms in times_ms:
        runs = [time_ms * MS, (time_ms - 1) * MS, 9 * time_ms * MS]
        case_of: dict[str, Any] = {"model__name": f"llm@{case}", "model__tokens": tokens, "model__kv_depth": kv_depth}
        maker.session(runs, **case_of, **changes)


def rows_of(maker: BundleMaker, columns: str) -> list[tuple[Any, ...]]:
    maker.load()
    return maker.ask(f"SELECT {columns} FROM generation_speed ORDER BY prefill_tokens, kv_depth, threads, device")


def test_a_prefill_is_beside_the_decoding_at_the_depth_that_it_leaves(maker: BundleMaker) -> None:
    # given sessions of 40, 50 and 80 ms for a prompt of 128 tokens, and of 4, 5 and 6 ms for one token after it
    phase(maker, "prefill128", 128, 0, 40, 50, 80)
    phase(maker, "decode", 1, 128, 4, 5, 6)
    # then the speeds are the tokens over the time of the cell
    assert rows_of(maker, f"model, threads, {SPEEDS}, {DECODING}") == [
        ("llm", 1, 128, 50.0, 50.0, 2560.0, 3, 128, 1, 5.0, 200.0, 3)
    ]


def test_each_length_of_prompt_and_depth_has_a_row(maker: BundleMaker) -> None:
    # given two prompts, decoding after the longer one and at a depth that no prompt leaves, two tokens a run
    phase(maker, "prefill16", 16, None, 10)
    phase(maker, "prefill64", 64, 0, 20)
    phase(maker, "decode64", 1, 64, 5)
    phase(maker, "decode99", 2, 99, 8)
    assert rows_of(maker, f"{SPEEDS}, {DECODING}") == [
        (16, 10.0, 10.0, 1600.0, 1, None, None, None, None, None),
        (64, 20.0, 20.0, 3200.0, 1, 64, 1, 5.0, 200.0, 1),
        (None, None, None, None, None, 99, 2, 8.0, 250.0, 1),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"threads": 2},
        {"model__pte_sha256": "p2"},
        {"model__precision": "fp16"},
        {"runner__runner_sha256": "r2"},
        {"variant": "sme2_on"},
        {"device__facts": {"model": "board", "build": "b2"}},
        {"sweep__sweep_id": "smoke-2026-11-21", "sweep__night": "2026-11-21"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_phases_that_differ_in_anything_else_are_not_put_together(maker: BundleMaker, other: dict[str, Any]) -> None:
    phase(maker, "prefill16", 16, 0, 10)
    phase(maker, "decode", 1, 16, 5, **other)
    assert rows_of(maker, "prefill_tokens, kv_depth") == [(16, None), (None, 16)]


def test_a_text_is_named_as_llama_bench_does_and_its_interval_is_that_of_its_sessions(maker: BundleMaker) -> None:
    # given six sessions that write 64 tokens, behind none and behind 16, and as many prefills of other executions
    times_ms = (4, 5, 6, 7, 8, 9)
    phase(maker, "pp16", 16, 0, *(10 * time_ms for time_ms in times_ms))
    for case, depth in (("tg64", 0), ("tg64_d16", 16)):
        phase(maker, case, 1, depth, *times_ms, model__steps=64)
    # then each has its name, and the slowest session is the low end of the interval of tokens per second
    columns = "prefill_test, decode_test, round(prefill_low_per_s), round(decode_low_per_s), round(decode_high_per_s)"
    assert rows_of(maker, columns) == [
        ("pp16", "tg64 @ d16", round(16_000 / 90), round(1000 / 9), round(1000 / 4)),
        (None, "tg64", None, round(1000 / 9), round(1000 / 4)),
    ]


@pytest.mark.parametrize("sessions", [5, 65])
def test_an_interval_needs_six_sessions_and_takes_any_number(maker: BundleMaker, sessions: int) -> None:
    times_ms = [4 + index % 3 for index in range(sessions)]
    phase(maker, "tg64", 1, 0, *times_ms, model__steps=64)
    low, high = median_interval(times_ms) or (None, None)
    expected = (high and pytest.approx(1000 / high), low and pytest.approx(1000 / low))
    assert rows_of(maker, "decode_low_per_s, decode_high_per_s") == [expected]


def test_of_a_prompt_in_chunks_the_last_one_is_measured_and_the_first_token_comes_after_all(maker: BundleMaker) -> None:
    # given a prompt of 48 read in chunks of 16, decoding behind it, and both chunks before the last one in 60 ms
    stats = {"load_ns": 5 * MS, "setup_ns": 60 * MS}
    phase(maker, "pp16_d32", 16, 32, 40, model__prompt_tokens=48, stats=stats)
    phase(maker, "tg4_d48", 1, 48, 4, model__steps=4, stats=stats)
    # then the first token needs the load, both and the first run; decoding is not beside it
    columns = "prefill_test, prompt_tokens, prefill_ms, prefill_tokens_per_s"
    columns += ", time_to_first_token_ms, load_to_first_token_ms"
    assert rows_of(maker, f"{columns}, decode_test") == [
        ("pp16 @ d32", 48, 40.0, 400.0, None, 5.0 + 60.0 + 9 * 40.0, None),
        (None, None, None, None, None, None, "tg4 @ d48"),
    ]


def test_decoding_is_beside_the_speed_at_which_its_device_reads_memory(maker: BundleMaker) -> None:
    # given two tokens in 4 ms that read 8 MB, after which the memory reads 8, 1 and 4 GB a second, and its prefill
    phase(maker, "pp16", 16, 0, 10, model__macs=16_000)
    for gb_per_s in (8, 1, 4):
        stats = {"memory_read_bytes_per_s": gb_per_s * 10**9}
        phase(maker, "tg2", 2, 16, 4, model__macs=5_000, model__read_bytes=8_000_000, stats=stats)
    # then half of what the memory allows is read: 2 of 4 GB a second
    figures = "prefill_macs_per_token, decode_macs_per_token, decode_bytes_per_token, decode_gb_per_s, memory_gb_per_s"
    assert rows_of(maker, f"{figures}, decode_memory_share") == [(1000, 2500, 4_000_000, 2.0, 4.0, 0.5)]
    # and it is one cell: how fast memory was is no part of it
    assert rows_of(maker, "decode_sessions") == [(3,)]


def test_times_of_an_emulated_device_give_no_speed(maker: BundleMaker) -> None:
    emulated = {"device__name": "qemu", "device__emulated": True, "stats": {"memory_read_bytes_per_s": 10**9}}
    phase(maker, "prefill16", 16, 0, 10, **emulated)
    phase(maker, "decode", 1, 16, 5, model__read_bytes=8, **emulated)
    columns = "emulated, prefill_tokens_per_s, prefill_sessions, decode_tokens_per_s, decode_sessions"
    columns += ", decode_bytes_per_token, decode_gb_per_s, memory_gb_per_s, decode_memory_share"
    assert rows_of(maker, columns) == [(True, None, 1, None, 1, 8, None, None, None)]


def test_models_without_tokens_and_sessions_of_other_modes_are_left_out(maker: BundleMaker) -> None:
    maker.session([MS] * 3)
    phase(maker, "prefill16", 16, 0, 10, mode="profile")
    assert rows_of(maker, "*") == []


def test_a_name_loses_only_the_case(maker: BundleMaker) -> None:
    maker.session([MS] * 3, model__name="package@2.models:llm@decode", model__tokens=1, model__kv_depth=9)
    assert rows_of(maker, "model, kv_depth, prefill_cell") == [("package@2.models:llm", 9, None)]
