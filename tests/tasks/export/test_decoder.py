"""The decoders of the zoo: what their methods compute in eager PyTorch."""

from typing import Any

import pytest

from tasks.export.zoo import decoder

pytestmark = pytest.mark.torch


torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


@pytest.fixture
def methods() -> dict[str, Any]:
    torch.manual_seed(0)
    made: dict[str, Any] = decoder.decoder_tiny()["methods"]
    return made


def called(method: dict[str, Any], inputs: tuple[Any, ...] | None = None) -> Any:
    with torch.no_grad():
        return method["module"](*(inputs or method["inputs"]))


def test_decoding_after_a_prefill_scores_like_reading_everything_at_once(methods: dict[str, Any]) -> None:
    # given the scores of the prompt and one token more, read in one run
    prompt, token = (methods[name]["inputs"] for name in ("prefill128", "decode"))
    everything = tuple(torch.cat(pair) for pair in zip(prompt, token, strict=True))
    want = called(methods["decode"], everything)
    # when the prompt is read first, over a cache with other content, and the token after it
    torch.nn.init.normal_(methods["decode"]["module"].blocks[0].attention.key_cache)
    setup = methods["decode"]["setup"]
    called(methods[setup["method"]], setup["inputs"])
    got = called(methods["decode"])
    # then the scores are the same
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5)


def test_every_decoding_run_after_the_prefill_does_the_same_and_without_it_another(methods: dict[str, Any]) -> None:
    alone = called(methods["decode"])
    called(methods["prefill128"])
    first, second = called(methods["decode"]), called(methods["decode"])
    assert torch.equal(first, second)
    assert (first - alone).abs().max() > 1e-2


def test_depths_and_lengths_are_those_of_the_inputs(methods: dict[str, Any]) -> None:
    for method in methods.values():
        tokens, positions = method["inputs"]
        assert method["tokens"] == len(tokens) == len(positions)
        assert method["kv_depth"] == positions[0]
