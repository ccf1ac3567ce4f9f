"""What the zoo's factories share. The text of this file is part of every zoo model's export key."""

from collections.abc import Callable
from typing import Any

Made = tuple[Any, tuple[Any, ...]]
"""A module and its example inputs."""
Factory = Callable[[], Made | dict[str, Any]]
"""A dict describes several methods."""


def image_model(model: Any, pixels: int, field: str = "logits") -> Made:
    """Return a transformers model that takes one (1, 3, pixels, pixels) image, and such an image."""
    import torch

    images = torch.rand(1, 3, pixels, pixels)
    normalize_activations(model, images)
    return plain_output(model, field), (images,)


def plain_output(model: Any, field: str) -> Any:
    """Wrap a transformers model so that forward takes and returns one plain tensor."""
    import torch

    class PlainOutput(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, features: Any) -> Any:
            return getattr(self.model(features), field)

    return PlainOutput()


def normalize_activations(model: Any, images: Any) -> None:
    """Set the weight of each batch norm to 1, and its variance to the power of two nearest to its input's variance.

    As transformers initializes them, batch norms shrink activations layer by layer to 1e-22 and to denormal numbers,
    which cannot be compared and which a trained model does not produce. A power of two is equal on every machine,
    despite rounding differences in the sums.
    """
    import torch

    def rescale(norm: Any, inputs: tuple[Any, ...]) -> None:
        norm.weight.fill_(1.0)
        norm.running_var.fill_(2.0 ** float(inputs[0].square().mean().log2().round()))

    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    hooks = [norm.register_forward_pre_hook(rescale) for norm in norms]
    with torch.no_grad():
        model.eval()(images)
    for hook in hooks:
        hook.remove()
