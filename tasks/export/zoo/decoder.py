"""Text decoders with a KV cache: one program with methods for prefill and decoding.

The blocks of `decoder_tiny` and `decoder_small` are those of LLaMA, arXiv:2302.13971, in small sizes; `llama_2l` and
`qwen_2l` are models of transformers with two layers.
"""

from typing import Any

from tasks.export.generate_options import CacheOptions, GenerateOptions
from tasks.export.language_methods import language_methods

_PROMPT = 128


def decoder_tiny() -> dict[str, Any]:
    """Return a decoder: 2 layers, hidden size 64, vocabulary of 256, cache for 256 tokens."""
    return _decoder_methods(layers=2, width=64, heads=4, vocabulary=256, cache_length=256)


def decoder_small() -> dict[str, Any]:
    """Return a decoder: 6 layers, hidden size 384, vocabulary of 8192, cache for 512 tokens."""
    return _decoder_methods(layers=6, width=384, heads=6, vocabulary=8192, cache_length=512)


def llama_2l() -> dict[str, Any]:
    """Return Llama: 2 layers, hidden size 512, vocabulary of 4096; with the methods of `generate`, fixed here."""
    from transformers import LlamaConfig

    return _build_language_model(LlamaConfig(**_two_layer_sizes(), num_key_value_heads=4))


def qwen_2l() -> dict[str, Any]:
    """Return Qwen2 with the sizes of `llama_2l`; its output layer shares the weights of the embedding."""
    from transformers import Qwen2Config

    return _build_language_model(Qwen2Config(**_two_layer_sizes(), num_key_value_heads=2, tie_word_embeddings=True))


def _two_layer_sizes() -> dict[str, int]:
    return {
        "hidden_size": 512,
        "intermediate_size": 1536,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "vocab_size": 4096,
    }


def _build_language_model(config: Any) -> dict[str, Any]:
    """Return the methods of a causal language model of transformers, for a random prompt and a cache of 256 tokens."""
    import torch
    from transformers import AutoModelForCausalLM

    options = GenerateOptions(prefill=[128], depth=[0, 128], decode=64, cache=CacheOptions(length=256))
    tokens = torch.randint(0, config.vocab_size, (options.prompt_tokens,))
    return language_methods(AutoModelForCausalLM.from_config(config), tokens, options)


def _decoder_methods(*, layers: int, width: int, heads: int, vocabulary: int, cache_length: int) -> dict[str, Any]:
    """Return a factory's mapping of two methods with one module, so that they share its cache.

    `width` is the hidden size, `vocabulary` a number of words, `cache_length` one of tokens.
    The prefill reads a prompt into an empty cache. `decode` reads one more token after a prefill: every execution
    writes the same position, so all executions of a session do the same work, and the output can be compared with
    eager. The cache has a fixed size: attention reads all of it and masks empty slots.
    """
    import torch

    model = _decoder(layers, width, heads, vocabulary, cache_length)
    prompt = torch.randint(0, vocabulary, (_PROMPT,)), torch.arange(_PROMPT)
    token = torch.randint(0, vocabulary, (1,)), torch.tensor([_PROMPT])
    prefill = f"prefill{_PROMPT}"
    setup = {"method": prefill, "inputs": prompt}
    return {
        "methods": {
            prefill: {"module": model, "inputs": prompt, "tokens": _PROMPT, "kv_depth": 0},
            "decode": {"module": model, "inputs": token, "setup": setup, "tokens": 1, "kv_depth": _PROMPT},
        }
    }


def _decoder(layers: int, width: int, heads: int, vocabulary: int, cache_length: int) -> Any:
    """Return a module: token ids (n,) and their positions (n,) -> logits (1, vocabulary) of the next token."""
    import torch
    from torch import nn

    class Decoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList(_block(width, heads, cache_length) for _ in range(layers))
            self.norm, self.scores = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, vocabulary, bias=False)
            self.register_buffer("slots", torch.arange(cache_length))
            # Tables of rotary position embeddings, (cache_length, width of a head).
            angles = torch.arange(cache_length)[:, None] * 10000.0 ** (
                -torch.arange(0, width // heads, 2) / (width // heads)
            )
            self.register_buffer("cosine", angles.cos().repeat(1, 2))
            self.register_buffer("sine", angles.sin().repeat(1, 2))

        def forward(self, tokens: Any, positions: Any) -> Any:
            cosine, sine = self.cosine[positions], self.sine[positions]
            mask = torch.where(self.slots <= positions[:, None], 0.0, -1e4).to(cosine.dtype)
            hidden = self.embedding(tokens)
            for block in self.blocks:
                hidden = block(hidden, positions, mask, cosine, sine)
            return self.scores(self.norm(hidden[-1:]))

    return Decoder()


def _block(width: int, heads: int, cache_length: int) -> Any:
    """Return a module: hidden + attention, then + a gated MLP of four times the width."""
    import torch
    from torch import nn

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.attention = _attention(width, heads, cache_length)
            self.before_attention, self.before_mlp = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
            self.gate, self.up = nn.Linear(width, 4 * width, bias=False), nn.Linear(width, 4 * width, bias=False)
            self.down = nn.Linear(4 * width, width, bias=False)

        def forward(self, hidden: Any, *slots: Any) -> Any:
            hidden = hidden + self.attention(self.before_attention(hidden), *slots)
            normal = self.before_mlp(hidden)
            return hidden + self.down(nn.functional.silu(self.gate(normal)) * self.up(normal))

    return Block()


def _attention(width: int, heads: int, cache_length: int) -> Any:
    """Return a module that writes keys and values of its n tokens to the cache and attends to all of it.

    hidden (n, width), positions (n,), mask (n, cache_length), tables of the positions -> (n, width).
    """
    import torch
    from torch import nn

    half = width // heads // 2

    class Attention(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=False) for _ in range(4))
            for name in "key_cache", "value_cache":
                self.register_buffer(name, torch.zeros(heads, cache_length, 2 * half))

        def forward(self, hidden: Any, positions: Any, mask: Any, cosine: Any, sine: Any) -> Any:
            query, key, value = (
                layer(hidden).unflatten(-1, (heads, 2 * half)).transpose(0, 1)
                for layer in (self.query, self.key, self.value)
            )
            self.key_cache[:, positions] = _rotate(key, cosine, sine)
            self.value_cache[:, positions] = value
            match = torch.bmm(_rotate(query, cosine, sine), self.key_cache.transpose(1, 2)) * (2 * half) ** -0.5
            attended = torch.bmm(nn.functional.softmax(match + mask, -1), self.value_cache)
            return self.output(attended.transpose(0, 1).flatten(1))

    def _rotate(states: Any, cosine: Any, sine: Any) -> Any:
        """Apply rotary position embeddings to states (heads, n, width of a head)."""
        turned = torch.cat([-states[..., half:], states[..., :half]], -1)
        return states * cosine + turned * sine

    return Attention()
