"""Prefill and decoding of language models: sessions, a query, the expected rows."""

from typing import Any

import pytest

from tasks.bundle.robust_statistics import median_interval
from tests.fixtures.warehouse import BundleMaker

MS = 1_000_000
STATS = {"load_ns": 5 * MS, "setup_ns": 60 * MS}
EMULATED: dict[str, Any] = {"device__emulated": True, "stats": {"memory_read_bytes_per_s": 10**9}}
OTHERS: list[dict[str, Any]] = [
    {"threads": 2},
    {"model__pte_sha256": "p2"},
    {"model__precision": "fp16"},
    {"runner__runner_sha256": "r2"},
    {"variant": "sme2_on"},
    {"device__facts": {"model": "board", "build": "b2"}},
    {"sweep__sweep_id": "smoke-2026-11-21", "sweep__night": "2026-11-21"},
]
TIMES_MS = (4, 5, 6, 7, 8, 9)
MANY_MS = [4 + index % 3 for index in range(65)]


def phase(maker: BundleMaker, case: str, tokens: int, kv_depth: int | None, *times_ms: int, **changes: Any) -> None:
    """Write sessions of one phase, `model@phase`, each with a known time."""
    for time_ms in times_ms:
        runs = [time_ms * MS, (time_ms - 1) * MS, 9 * time_ms * MS]
        case_of: dict[str, Any] = {"model__name": case, "model__tokens": tokens, "model__kv_depth": kv_depth}
        maker.session(runs, **case_of, **changes)


def write_sessions(maker: BundleMaker) -> None:
    # sessions of 40, 50 and 80 ms for a prompt of 128 tokens, and of 4, 5 and 6 ms for one token after it
    phase(maker, "beside@prefill128", 128, 0, 40, 50, 80)
    phase(maker, "beside@decode", 1, 128, 4, 5, 6)
    # two prompts, decoding after the longer one and at a depth that no prompt leaves, two tokens a run
    phase(maker, "each@prefill16", 16, None, 10)
    phase(maker, "each@prefill64", 64, 0, 20)
    phase(maker, "each@decode64", 1, 64, 5)
    phase(maker, "each@decode99", 2, 99, 8)
    for number, other in enumerate(OTHERS):
        phase(maker, f"differs{number}@prefill16", 16, 0, 10)
        phase(maker, f"differs{number}@decode", 1, 16, 5, **other)
    # six sessions that write 64 tokens, behind none and behind 16, and as many prefills of other executions
    phase(maker, "six@pp16", 16, 0, *(10 * time_ms for time_ms in TIMES_MS))
    phase(maker, "six@tg64", 1, 0, *TIMES_MS, model__steps=64)
    phase(maker, "six@tg64_d16", 1, 16, *TIMES_MS, model__steps=64)
    phase(maker, "five@tg64", 1, 0, *MANY_MS[:5], model__steps=64)
    phase(maker, "many@tg64", 1, 0, *MANY_MS, model__steps=64)
    # a prompt of 48 read in chunks of 16, decoding behind it, and both chunks before the last one in 60 ms
    phase(maker, "chunks@pp16_d32", 16, 32, 40, model__prompt_tokens=48, stats=STATS)
    phase(maker, "chunks@tg4_d48", 1, 48, 4, model__steps=4, stats=STATS)
    # two tokens in 4 ms that read 8 MB, after which the memory reads 8, 1 and 4 GB a second, and its prefill
    phase(maker, "memory@pp16", 16, 0, 10, model__macs=16_000)
    for gb_per_s in (8, 1, 4):
        stats = {"memory_read_bytes_per_s": gb_per_s * 10**9}
        phase(maker, "memory@tg2", 2, 16, 4, model__macs=5_000, model__read_bytes=8_000_000, stats=stats)
    phase(maker, "emulated@prefill16", 16, 0, 10, **EMULATED)
    phase(maker, "emulated@decode", 1, 16, 5, model__read_bytes=8, **EMULATED)
    # a model without tokens, and another mode
    maker.session([MS] * 3, model__name="none")
    phase(maker, "none@prefill16", 16, 0, 10, mode="profile")
    phase(maker, "package@2.models:llm@decode", 1, 9, 1)
    # one program with and without an option
    for option, ms in (("", 10), (",load=mmap", 20)):
        phase(maker, f"option@prefill16{option}", 16, 0, ms)
        phase(maker, f"option@decode{option}", 1, 16, ms // 2)


SPEEDS = "prefill_tokens, prefill_ms, time_to_first_token_ms, prefill_tokens_per_s, prefill_sessions"
DECODING = "kv_depth, decode_tokens, decode_ms, decode_tokens_per_s, decode_sessions"
FIGURES = "prefill_macs_per_token, decode_macs_per_token, decode_bytes_per_token, decode_gb_per_s, memory_gb_per_s"
INTERVAL = "decode_low_per_s, decode_high_per_s"
ROWS: list[tuple[str, str, list[Any]]] = [
    # a prefill is beside the decoding at the depth that it leaves; speeds are the tokens over the time of the cell
    ("beside", f"threads, {SPEEDS}, {DECODING}", [(1, 128, 50.0, 50.0, 2560.0, 3, 128, 1, 5.0, 200.0, 3)]),
    # each length of prompt and depth has a row
    ("each", f"{SPEEDS}, {DECODING}", [
        (16, 10.0, 10.0, 1600.0, 1, None, None, None, None, None),
        (64, 20.0, 20.0, 3200.0, 1, 64, 1, 5.0, 200.0, 1),
        (None, None, None, None, None, 99, 2, 8.0, 250.0, 1),
    ]),
    *((f"differs{number}", "prefill_tokens, kv_depth", [(16, None), (None, 16)]) for number in range(len(OTHERS))),
    # a text is named as llama-bench does; the slowest session is the low end of the interval of tokens per second
    ("six", "prefill_test, decode_test, round(prefill_low_per_s), round(decode_low_per_s), round(decode_high_per_s)", [
        ("pp16", "tg64 @ d16", round(16_000 / 90), round(1000 / 9), round(1000 / 4)),
        (None, "tg64", None, round(1000 / 9), round(1000 / 4)),
    ]),
    # an interval needs six sessions and takes any number
    ("five", INTERVAL, [(None, None)]),
    ("many", INTERVAL, [tuple(pytest.approx(1000 / ms) for ms in reversed(median_interval(MANY_MS) or ()))]),
    # of a prompt in chunks the last one is measured, and the first token needs the load, both and the first run
    ("chunks", "prefill_test, prompt_tokens, prefill_ms, prefill_tokens_per_s, time_to_first_token_ms, "
        "load_to_first_token_ms, decode_test",
        [("pp16 @ d32", 48, 40.0, 400.0, None, 5.0 + 60.0 + 9 * 40.0, None), (*[None] * 6, "tg4 @ d48")]),
    # half of what the memory allows is read: 2 of 4 GB a second; how fast it was splits no cell
    ("memory", f"{FIGURES}, decode_memory_share, decode_sessions", [(1000, 2500, 4_000_000, 2.0, 4.0, 0.5, 3)]),
    # times of an emulated device give no speed
    ("emulated", "emulated, prefill_tokens_per_s, prefill_sessions, decode_tokens_per_s, decode_sessions, "
        "decode_bytes_per_token, decode_gb_per_s, memory_gb_per_s, decode_memory_share",
        [(True, None, 1, None, 1, 8, None, None, None)]),
    ("none", "*", []),
    # a name loses only the case
    ("package@2.models:llm", "kv_depth, prefill_cell", [(9, None)]),
    # options are never pooled: each row has the phases of one
    ("option", "prefill_ms, decode_ms", [(10.0, 5.0)]),
    ("option@load=mmap", "prefill_ms, decode_ms", [(20.0, 10.0)]),
]  # fmt: skip


@pytest.mark.parametrize(("model", "columns", "rows"), ROWS, ids=[model for model, *_ in ROWS])
def test_the_phases_of_a_model_have_their_speeds(
    farm: BundleMaker, model: str, columns: str, rows: list[tuple[Any, ...]]
) -> None:
    order = "ORDER BY prefill_tokens, kv_depth"
    assert farm.ask(f"SELECT {columns} FROM generation_speed WHERE model = '{model}' {order}") == rows
