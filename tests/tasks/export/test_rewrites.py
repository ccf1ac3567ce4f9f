"""Attention and recurrent layers as operators that XNNPACK executes: the same values, and little is portable."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.exports import export_model

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")

MODELS = """
import torch
import torch.nn.functional as F

class Attention(torch.nn.Module):
    def forward(self, query, key, value, mask):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

def attention():
    inputs = *(torch.rand(1, 2, 6, 4) for _ in range(3)), torch.ones(6, 6).tril().bool()
    return Attention(), inputs

def recurrent():
    return torch.nn.GRU(4, 8), (torch.rand(3, 1, 4),)
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
    # when it is rewritten
    attention_as_products(program)
    # then none is left, and the values are the same
    assert not any("scaled_dot" in str(node.target) for node in program.graph.nodes)
    for actual, expected in zip(program.module()(*inputs), Attention()(*inputs), strict=True):
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6 if dtype is torch.float32 else 4e-3)


def test_attention_that_cannot_be_rewritten_stays_as_it_is() -> None:
    from tasks.export.lowering.rewrites import attention_as_products

    class Dynamic(torch.nn.Module):  # type: ignore[misc]
        def forward(self, query: Any, key: Any) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(query, key, key)

    sizes = ({2: torch.export.Dim.AUTO}, {2: torch.export.Dim.AUTO})
    program = torch.export.export(Dynamic(), (torch.rand(1, 2, 3, 4), torch.rand(1, 2, 5, 4)), dynamic_shapes=sizes)
    attention_as_products(program)
    assert any("scaled_dot" in str(node.target) for node in program.graph.nodes)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "portable"),
    [
        ("attention", {"dim_order_ops._to_dim_order_copy.default"}),  # the mask of booleans
        # The first state, and the outputs of all steps put together: XNNPACK concatenates five tensors at most.
        ("recurrent", {"aten.full.default", "aten.cat.default"}),
    ],
)
def test_attention_and_recurrent_layers_are_delegated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, portable: set[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODELS)
    export = export_model(f"model:{model}", "fp32", tmp_path / "exports")
    assert export.trial == "succeeded"
    assert {entry["operator"] for entry in export.portable} <= portable
