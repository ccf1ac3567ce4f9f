"""Attention and recurrent layers as operators that XNNPACK executes: the same values, and little is portable."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.exports import export_model

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")

MODELS = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = torch.nn.GRU(4, 8)

    def forward(self, query, mask, steps):
        attention = torch.nn.functional.scaled_dot_product_attention(query, query, query, attn_mask=mask)
        return attention, self.recurrent(steps)[0]

def make():
    return Model(), (torch.rand(1, 2, 6, 4), torch.ones(6, 6).tril().bool(), torch.rand(6, 1, 4))
"""


class Attention(torch.nn.Module):  # type: ignore[misc]
    """Every form of a call."""

    def forward(self, query: Any, key: Any, of_pairs: Any, mask: Any) -> tuple[Any, ...]:
        attention = torch.nn.functional.scaled_dot_product_attention
        hidden = torch.where(mask, 0.0, float("-inf")).to(query.dtype)
        return (
            attention(query, key, key + 1),
            attention(query, key, key, attn_mask=mask, scale=0.3),
            attention(query, key, key, attn_mask=hidden[None, None]),
            attention(query, query, query, is_causal=True),
            attention(query, of_pairs, of_pairs, attn_mask=mask, enable_gqa=True),
            attention(query[0], key[0], key[0]),
            attention(query.transpose(1, 2).contiguous().transpose(1, 2), key, key),
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_attention_as_products_computes_what_eager_pytorch_does(dtype: Any) -> None:
    from tasks.export.lowering.rewrites import attention_as_products

    # given attention with and without masks, and with heads that share keys
    sizes = (2, 4, 8, 16), (2, 4, 24, 16), (2, 2, 24, 16)
    inputs = *(torch.randn(size).to(dtype) for size in sizes), torch.arange(24) <= torch.arange(8, 16)[:, None]
    program = torch.export.export(Attention(), inputs)
    attention_as_products(program)
    assert not any("scaled_dot" in str(node.target) for node in program.graph.nodes)
    for actual, expected in zip(program.module()(*inputs), Attention()(*inputs), strict=True):
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6 if dtype is torch.float32 else 4e-3)


@pytest.mark.thorough
def test_attention_and_recurrent_layers_are_delegated(exports: Path) -> None:
    export = export_model("model:make", "fp32", exports)
    assert export.trial == "succeeded"
    # XNNPACK has no first state, concatenates few steps only, and does not convert a mask of booleans
    portable = {"aten.full.default", "aten.cat.default", "dim_order_ops._to_dim_order_copy.default"}
    assert {entry["operator"] for entry in export.portable} <= portable
