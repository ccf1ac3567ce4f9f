"""Models of one operator and the smallest network: for tests, and to measure one kernel alone."""

from typing import Any

Example = tuple[Any, tuple[Any, ...]]
"""A module and its example inputs."""


def toy_cnn() -> Example:
    """Return a small CNN on (1, 3, 32, 32) images; XNNPACK does not support its layer norm."""
    import torch
    from torch import nn

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.Conv2d(16, 32, 1),
        nn.ReLU(),
        nn.AvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.LayerNorm(64),
        nn.Linear(64, 10),
    )
    return model, (torch.rand(1, 3, 32, 32),)


def linear() -> Example:
    """Return one linear layer, (64, 256) -> (64, 256)."""
    import torch

    return torch.nn.Linear(256, 256), (torch.randn(64, 256),)


def conv() -> Example:
    """Return one 3x3 convolution, (1, 32, 32, 32) -> (1, 64, 32, 32)."""
    import torch

    return torch.nn.Conv2d(32, 64, 3, padding=1), (torch.randn(1, 32, 32, 32),)


def batch_matmul() -> Example:
    """Return one product of two inputs, (4, 64, 64) x (4, 64, 64)."""
    import torch

    class BatchMatmul(torch.nn.Module):  # type: ignore[misc]
        def forward(self, left: Any, right: Any) -> Any:
            return torch.bmm(left, right)

    return BatchMatmul(), (torch.randn(4, 64, 64), torch.randn(4, 64, 64))


def roof() -> Example:
    """Return one linear layer, (512, 512) -> (512, 512): large enough that computing is the limit."""
    import torch

    return torch.nn.Linear(512, 512), (torch.randn(512, 512),)


# Rows, inputs and outputs: a 1x1 convolution of MobileNetV2 at 56x56 and one at 7x7, a layer of bert_mini, vit_tiny and
# whisper_tiny_encoder, and of decoder_small for one token.
_SIZES = ((3136, 24, 144), (49, 320, 1280), (128, 256, 1024), (197, 192, 768), (1500, 384, 1536), (1, 384, 1024))


def gemm() -> dict[str, Any]:
    """Return a method `m<rows>_k<inputs>_n<outputs>` for each size: (rows, inputs) -> (rows, outputs)."""
    import torch

    return {
        "methods": {
            f"m{rows}_k{inputs}_n{outputs}": {
                "module": torch.nn.Linear(inputs, outputs),
                "inputs": (torch.randn(rows, inputs),),
            }
            for rows, inputs, outputs in _SIZES
        }
    }
