"""Matrix products of the sizes that the networks of the zoo have: one linear layer each, a method of one program."""

from typing import Any

# Rows, inputs and outputs: a 1x1 convolution of MobileNetV2 at 56x56 and one at 7x7, a layer of bert_mini, vit_tiny and
# whisper_tiny_encoder, and of decoder_small for one token.
_SIZES = (
    (3136, 24, 144),
    (49, 320, 1280),
    (128, 256, 1024),
    (197, 192, 768),
    (1500, 384, 1536),
    (1, 384, 1024),
)


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
