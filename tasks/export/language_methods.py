"""The methods of a language model of transformers: reading prompts (prefill) and writing tokens (decoding).

The KV cache is the static one of transformers' integration of ExecuTorch.
"""

from typing import Any

from devices.errors import FarmError
from tasks.export.factory import Inputs
from tasks.export.generate_options import GenerateOptions

_CHOICES = 4


def language_methods(model: Any, tokens: Any, options: GenerateOptions) -> dict[str, Any]:
    """Return the methods of a causal language model in the form that a factory returns; raises FarmError.

    `pp512` reads a prompt of 512 tokens into an empty cache and returns the scores of the next token. `pp512_d1024`
    does so behind 1024 tokens, as the last chunk of a prompt of 1536.
    `tg64` writes 64 tokens, one per execution, each the likeliest after those before it, and returns all of them;
    `tg64_d512` does so behind 512 tokens.
    `tokens` (n,) are the prompt: `options.prompt_tokens` of them.
    """
    model.requires_grad_(requires_grad=False)
    lm = _with_static_cache(model, options.cache_length)
    prefill, decode = _prefill_and_decode(lm, options.decode)

    def inputs(start: int, count: int) -> Inputs:
        import torch

        return tokens[None, start : start + count], torch.tensor([start])

    def fill_cache(depth: int, chunk: int) -> dict[str, Any]:  # a set-up that reads `depth` tokens in chunks
        return {"method": f"pp{chunk}", "inputs": [inputs(start, chunk) for start in range(0, depth, chunk)]}

    methods: dict[str, Any] = {}
    for count in options.prefill:
        methods[f"pp{count}"] = {"module": prefill, "inputs": inputs(0, count), "tokens": count, "kv_depth": 0}
    for prompt in options.chunks:
        chunk = options.chunk(prompt, is_prompt=True)
        depth = prompt - chunk
        methods[f"pp{chunk}_d{depth}"] = {
            **methods[f"pp{chunk}"],
            "inputs": inputs(depth, chunk),
            "kv_depth": depth,
            "prompt_tokens": prompt,
            "setup": fill_cache(depth, chunk),
            "executes": f"pp{chunk}",
        }
    first = f"tg{options.decode}"
    for depth in options.depth:
        name = f"{first}_d{depth}" if depth else first
        method = {"module": decode, "inputs": inputs(depth, 1), "tokens": 1, "kv_depth": depth, "steps": options.decode}
        if depth:
            method["setup"] = fill_cache(depth, options.chunk(depth))
        if any(each["module"] is decode for each in methods.values()):
            method["executes"] = next(each for each in methods if each.startswith(first))
        methods[name] = method
    return {"methods": methods}


def _with_static_cache(model: Any, length: int) -> Any:
    """Return the model with a cache of `length` tokens as buffers; raises FarmError if transformers cannot make it."""
    from transformers.integrations.executorch import TorchExportableModuleForDecoderOnlyLM

    kind = type(model).__name__
    if getattr(model, "generation_config", None) is None:
        raise FarmError(f"{kind} writes no tokens; `generate` needs a causal language model")
    model.generation_config.use_cache, model.generation_config.cache_implementation = True, "static"
    model.config.get_text_config().use_cache = True
    # Rotary frequencies become constants instead of buffers: in fp16, late positions would be wrong by radians.
    for module in model.modules():
        for name in [name for name, _ in module.named_buffers(recurse=False) if name.endswith("inv_freq")]:
            value = getattr(module, name)
            delattr(module, name)
            setattr(module, name, value.clone())
    try:
        return TorchExportableModuleForDecoderOnlyLM(model, batch_size=1, max_cache_len=length).model
    except Exception as error:
        raise FarmError(f"transformers has no static cache for {kind} ({error})") from None


def _prefill_and_decode(lm: Any, steps: int) -> tuple[Any, Any]:
    """Return the modules of prefill and decoding; both contain `lm`, so that they share its cache."""
    import torch

    cache = lm.static_cache if hasattr(lm, "static_cache") else lm.cache

    class LanguageModel(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.lm = lm

        def scores_of_next(self, tokens: Any, position: Any) -> Any:
            """Read tokens (1, n) into the cache from `position` (1,) on; return the logits (1, words) of the next."""
            for number, layer in enumerate(cache.layers):  # a change of the module's type replaces its buffers
                layer.keys, layer.values, layer.cumulative_length = (
                    getattr(self.lm, f"{name}_{number}") for name in ("key_cache", "value_cache", "cumulative_length")
                )
                layer.cumulative_length.copy_(position[0])
            output = self.lm.model(
                input_ids=tokens, attention_mask=None, past_key_values=cache, use_cache=True, logits_to_keep=1
            )
            return output.logits[:, -1]

    class Prefill(LanguageModel):
        def forward(self, tokens: Any, position: Any) -> Any:
            return self.scores_of_next(tokens, position)

    class Decode(LanguageModel):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("step", torch.zeros(1, dtype=torch.int64))
            self.register_buffer("written", torch.zeros(steps, dtype=torch.int64))

        def forward(self, token: Any, position: Any) -> Any:
            """Write one token and return all of them; after the last one, begin again behind `token` at `position`."""
            before = self.written.index_select(0, (self.step - 1).clamp(min=0))
            token = torch.where(self.step == 0, token[0], before)
            scores = self.scores_of_next(token[None], position + self.step)
            self.written.index_copy_(0, self.step, scores.argmax(-1))
            self.step.copy_((self.step + 1) % steps)
            return self.written.clone()

    return Prefill(), Decode()


def likeliest_tokens(module: Any, inputs: tuple[Any, Any], text: Any) -> list[Any]:
    """Return the ids of the 4 likeliest tokens at each position of a text of n tokens, and their distances: two (n, 4).

    They show near-ties, in which another text is not wrong. A distance is the difference of a token's score from the
    best one, divided by the root mean square of all scores. `module` is one of `_prefill_and_decode`; `inputs` are the
    token before the text, and its position.
    """
    import torch

    token, position = inputs
    likeliest, behind = [], []
    for step, written in enumerate(text):
        scores = module.scores_of_next(token, position + step)[0].float()
        best = scores.topk(min(_CHOICES, len(scores)))
        likeliest.append(best.indices)
        behind.append((best.values[0] - best.values) / scores.square().mean().sqrt())
        token = written.reshape(1, 1)
    return [torch.stack(likeliest), torch.stack(behind)]
