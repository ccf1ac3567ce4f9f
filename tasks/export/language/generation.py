"""A language model of an entry in a sweep's `models`: its weights and its prompt.

The text of this file is part of every export key.
"""

from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.export.entry import ModelEntry
from tasks.export.exported import first_line
from tasks.export.from_transformers import load_model
from tasks.export.language.methods import language_methods

_WINDOW = 512


def generation(entry: ModelEntry) -> dict[str, Any]:
    """Return the methods of an entry with `generate`; raises FarmError."""
    import torch

    wanted = entry.generate
    assert wanted is not None
    model, count = load_model(entry), wanted.prompt_tokens
    if wanted.prompt:
        tokens = _tokens_of(wanted.prompt, entry)
        if len(tokens) < count:
            raise FarmError(f"{wanted.prompt}: has {len(tokens)} tokens; the longest prompt and one more are {count}")
    else:
        tokens = torch.randint(0, model.config.get_text_config().vocab_size, (count,))
    made = language_methods(model, tokens[:count], wanted)
    if wanted.text:
        text = _tokens_of(wanted.text, entry)
        made["methods"][f"pp{wanted.prefill[0]}"]["perplexity"] = lambda: perplexity(model, text)
    return made


def perplexity(model: Any, tokens: Any) -> float:
    """Return the perplexity of a causal language model on a text, a tensor (n,), in windows of up to 512 tokens."""
    import torch

    losses: list[Any] = []
    with torch.no_grad():
        for window in tokens.split(_WINDOW):
            if len(window) > 1:
                scores = model(window[None], use_cache=False).logits[0, :-1].float()
                losses.append(torch.nn.functional.cross_entropy(scores, window[1:], reduction="none"))
    return float(torch.cat(losses).mean().exp())


def _tokens_of(text: Path, entry: ModelEntry) -> Any:
    """Return the token ids (n,) of a text, by the tokenizer in the folder of an entry."""
    import torch
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(Path(entry.transformers or ""), local_files_only=True)
    except (OSError, ValueError) as error:
        raise FarmError(f"{text} needs a tokenizer in {entry.transformers} ({first_line(error)})") from None
    ids = tokenizer(text.read_text(encoding="utf-8"))["input_ids"]
    if len(ids) < 2:
        raise FarmError(f"{text}: has {len(ids)} tokens; write a longer text")
    return torch.tensor(ids)
