"""How nearly a language model would have written other tokens, so that a near-tie is not taken for a wrong text.

Everything here runs in the export process. The text of this file is part of every export key.
"""

from collections.abc import Callable
from typing import Any

_MOST = 4


def choices_of(scores_of: Callable[[Any, Any], Any], inputs: tuple[Any, Any], text: Any) -> list[Any]:
    """Return the likeliest tokens (n, 4) at each place of a text of n tokens, and how far each is behind the first.

    The distance is that of the scores over their root mean square. `scores_of` reads tokens (1, 1) at a position (1,)
    into the cache and returns the scores (1, words) of the next; `inputs` are the token before the text, and its place.
    """
    import torch

    token, position = inputs
    likeliest, behind = [], []
    for step, written in enumerate(text):
        scores = scores_of(token, position + step)[0].float()
        best = scores.topk(min(_MOST, len(scores)))
        likeliest.append(best.indices)
        behind.append((best.values[0] - best.values) / scores.square().mean().sqrt())
        token = written.reshape(1, 1)
    return [torch.stack(likeliest), torch.stack(behind)]
