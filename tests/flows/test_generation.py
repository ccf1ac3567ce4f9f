"""A language model through the farm: both phases measured apart."""

import pytest

from tests.fixtures.farm import Farm

pytestmark = [pytest.mark.torch, pytest.mark.thorough, pytest.mark.timeout(600)]

SWEEP = """
name: text
models: [decoder_tiny]
variants: [sme2_off]
executions: 6
warmup_executions: 2
sessions: 2
"""
PREFILL, DECODE = "decoder_tiny@prefill128", "decoder_tiny@decode"


def test_prefill_and_decoding_of_a_decoder_are_measured_apart(farm: Farm) -> None:
    done = farm.sweep(SWEEP)
    assert done.returncode == 0, done.stdout + done.stderr
    # both phases have an ETDump of every session, with all executions, ...
    runs = farm.ask("SELECT model, count(*) AS runs FROM run_latency GROUP BY model ORDER BY model")
    assert runs == [{"model": DECODE, "runs": 12}, {"model": PREFILL, "runs": 12}]
    # ... outputs are those of eager after the same set-up, ...
    errors = farm.ask("SELECT max(max_abs_error) AS error, count(*) AS outputs FROM session_accuracy")[0]
    assert errors["error"] < 1e-5
    assert errors["outputs"] >= 4
    # ... and they are in the figures of a language model
    (row,) = farm.ask("SELECT * FROM generation_speed")
    assert (row["model"], row["prefill_tokens"], row["kv_depth"]) == ("decoder_tiny", 128, 128)
    assert (row["prefill_sessions"], row["decode_sessions"]) == (2, 2)
    assert row["prefill_tokens_per_s"] == pytest.approx(128_000 / row["time_to_first_token_ms"])
