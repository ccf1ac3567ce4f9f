"""The models measured by default."""

from typing import Any

import pytest

from tasks.export import zoo

# PyTorch has no quick half-precision convolution for x86: these take 10 to 20 s each.
SLOW_IN_HALF = {"segformer_b0", "edgetam_encoder"}


@pytest.mark.torch
@pytest.mark.parametrize("name", ["toy_cnn", "bert_tiny"])
def test_a_seed_decides_a_models_weights_inputs_and_outputs(name: str) -> None:
    import torch

    first, again, other = (_run(name, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.parametrize("name", zoo.MODELS)
def test_outputs_are_of_a_size_that_can_be_compared_in_half_precision(name: str) -> None:
    full = _run(name, 0)
    assert 0.1 < full.std() < 10
    if name not in SLOW_IN_HALF:
        assert (_run(name, 0, half=True) - full).abs().max() < 0.02 * full.abs().max()


def test_a_model_is_made_from_its_subjects_file() -> None:
    assert [zoo.source_file(name).name for name in ("bert_tiny", "conv")] == ["networks.py", "operators.py"]


def _run(name: str, seed: int, *, half: bool = False) -> Any:
    """All values that the model returns, in fp32."""
    import torch

    torch.manual_seed(seed)
    made = zoo.MODELS[name]()
    if isinstance(made, dict):
        made = next((method["module"], method["inputs"]) for method in made["methods"].values())
    model, inputs = made
    if half:
        model, inputs = model.half(), tuple(each.half() if each.is_floating_point() else each for each in inputs)
    with torch.no_grad():
        outputs = model.eval()(*inputs)
    tensors = outputs if isinstance(outputs, tuple) else (outputs,)
    return torch.cat([tensor.flatten() for tensor in tensors]).float()
