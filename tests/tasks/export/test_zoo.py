"""The models measured by default: their seeds, the size of their outputs, and what the decoders compute."""

from typing import Any

import pytest

from tasks.export import zoo
from tasks.export.zoo import decoder

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")

# PyTorch has no quick half-precision convolution for x86: these take 10 to 20 s each.
SLOW_IN_HALF = {"segformer_b0", "edgetam_encoder"}


@pytest.mark.parametrize("name", ["toy_cnn", "bert_tiny"])
def test_a_seed_decides_a_models_weights_inputs_and_outputs(name: str) -> None:
    first, again, other = (_run(name, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.thorough
@pytest.mark.parametrize("name", zoo.MODELS)
def test_outputs_are_of_a_size_that_can_be_compared_in_half_precision(name: str) -> None:
    full = _run(name, 0)
    assert 0.1 < full.std() < 10
    if name not in SLOW_IN_HALF:
        assert (_run(name, 0, half=True) - full).abs().max() < 0.02 * full.abs().max()


def _run(name: str, seed: int, *, half: bool = False) -> Any:
    """All values that the model returns, in fp32."""
    torch.manual_seed(seed)
    content = zoo.MODELS[name]()
    if isinstance(content, dict):
        content = next((method["module"], method["inputs"]) for method in content["methods"].values())
    model, inputs = content
    if half:
        model, inputs = model.half(), tuple(each.half() if each.is_floating_point() else each for each in inputs)
    with torch.no_grad():
        outputs = model.eval()(*inputs)
    tensors = outputs if isinstance(outputs, tuple) else (outputs,)
    return torch.cat([tensor.flatten() for tensor in tensors]).float()


@pytest.fixture
def methods() -> dict[str, Any]:
    torch.manual_seed(0)
    methods: dict[str, Any] = decoder.decoder_tiny()["methods"]
    return methods


def called(method: dict[str, Any], inputs: tuple[Any, ...] | None = None) -> Any:
    with torch.no_grad():
        return method["module"](*(inputs or method["inputs"]))


def test_decoding_after_a_prefill_scores_like_reading_everything_at_once(methods: dict[str, Any]) -> None:
    # given the scores of the prompt and one token more, read in one run
    prompt, token = (methods[name]["inputs"] for name in ("prefill128", "decode"))
    everything = tuple(torch.cat(pair) for pair in zip(prompt, token, strict=True))
    expected = called(methods["decode"], everything)
    # when the prompt is read first, over a cache with other content, and the token after it
    torch.nn.init.normal_(methods["decode"]["module"].blocks[0].attention.key_cache)
    setup = methods["decode"]["setup"]
    called(methods[setup["method"]], setup["inputs"])
    actual = called(methods["decode"])
    # then the scores are the same
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)
