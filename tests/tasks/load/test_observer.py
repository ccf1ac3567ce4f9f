"""Logs of ExecuTorch's own runner of language models give the same figures, marked as such."""

import json
from pathlib import Path

from tasks.load.load import load_paths
from tests.fixtures.warehouse import BundleMaker

STATED = {
    "prompt_tokens": 64, "generated_tokens": 100, "model_load_start_ms": 1000, "model_load_end_ms": 1500,
    "inference_start_ms": 2000, "prompt_eval_end_ms": 2160, "first_token_ms": 2170, "inference_end_ms": 4160,
    "aggregate_sampling_time_ms": 9, "SCALING_FACTOR_UNITS_PER_SECOND": 1000,
}  # fmt: skip


def log(path: Path, *lines: object) -> Path:
    path.write_text("I 00:00:00 executorch:runner.cpp\n" + "".join(f"PyTorchObserver {line}\n" for line in lines))
    return path


def test_a_log_has_the_speed_that_the_runner_reports(maker: BundleMaker, tmp_path: Path) -> None:
    # given a log of 64 tokens read in 160 ms, and 100 written in 2 s
    loaded = load_paths([log(tmp_path / "llama.log", json.dumps(STATED))], maker.warehouse)
    assert (loaded.loaded, loaded.refused) == (1, [])
    # then the view has the same figures as print_report, and says where they are from
    columns = (
        "model, prefill_test, prefill_ms, prefill_tokens_per_s, decode_test, decode_tokens_per_s, "
        "load_to_first_token_ms, source"
    )
    assert maker.ask(f"SELECT {columns} FROM generation_speed") == [
        ("llama", "pp64", 160.0, 400.0, "tg100 @ d64", 50.0, 670.0, "PyTorchObserver")
    ]
    # and it has no latency, which nobody measured, and is loaded only once
    assert maker.ask("SELECT * FROM session_latency") == []
    assert load_paths([tmp_path / "llama.log"], maker.warehouse).already == 1


def test_a_log_that_states_no_speed_is_refused_in_one_sentence(maker: BundleMaker, tmp_path: Path) -> None:
    for lines, sentence in (
        ([json.dumps(STATED)] * 2, "has 2 PyTorchObserver lines"),
        (['{"prompt_tokens":64'], "the PyTorchObserver line is incomplete"),
        ([json.dumps(STATED | {"generated_tokens": 0})], "states no tokens, or times that run backwards"),
    ):
        loaded = load_paths([log(tmp_path / "llama.log", *lines)], maker.warehouse)
        assert loaded.loaded == 0
        assert sentence in loaded.refused[0][1]
