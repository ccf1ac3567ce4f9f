"""A language model of an entry in a sweep's `models`: its weights and its prompt.

The text of this file is part of every export key.
"""

from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.prepare.export.entry import ModelEntry
from tasks.prepare.export.exported import first_line
from tasks.prepare.export.from_transformers import load_model
from tasks.prepare.export.language.methods import language_methods


def generation(entry: ModelEntry) -> dict[str, Any]:
    """Return the methods of an entry with `generate`; raises FarmError."""
    wanted = entry.generate
    assert wanted is not None
    model = load_model(entry)
    words = model.config.get_text_config().vocab_size
    return language_methods(model, _tokens(entry, wanted.prompt, words, wanted.prompt_tokens), wanted)


def _tokens(entry: ModelEntry, prompt: Path | None, words: int, count: int) -> Any:
    """Return `count` token ids: of the text in the entry's prompt file, otherwise seeded ones."""
    import torch

    if prompt is None:
        return torch.randint(0, words, (count,))
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(Path(entry.transformers or ""), local_files_only=True)
    except (OSError, ValueError) as error:
        raise FarmError(f"`prompt` needs a tokenizer in {entry.transformers} ({first_line(error)})") from None
    ids = tokenizer(prompt.read_text(encoding="utf-8"))["input_ids"]
    if len(ids) < count:
        raise FarmError(f"{prompt}: has {len(ids)} tokens; the longest prompt and one more are {count}")
    return torch.tensor(ids[:count])
