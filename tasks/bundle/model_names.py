"""How pages name models, and what a word names: `./voice.py:make` shows as `voice` if no other model shows as that."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

_OF_FILE = re.compile(r"(?:.*/)?(?P<stem>[^/:]+)\.(?:py:(?P<factory>\w+)|pte)(?P<case>@.*)?", re.DOTALL)


def shown_names(models: Iterable[str]) -> dict[str, str]:
    """Return the name to show for each model; no two are equal."""
    models = set(models)
    shown = {model: _shortest(model) for model in models}
    taken = Counter(shown.values())
    shown = {model: name if taken[name] == 1 else _with_factory(model) for model, name in shown.items()}
    taken = Counter(shown.values())
    return {model: name if taken[name] == 1 else model for model, name in shown.items()}


def model_named(word: str, shown: Mapping[str, str]) -> str | None:
    """Return the model that a user means, by its own name or by the one of `shown_names`; None if neither is known."""
    return word if word in shown else next((model for model, name in shown.items() if name == word), None)


def _shortest(model: str) -> str:
    found = _OF_FILE.fullmatch(model)
    return f"{found['stem']}{found['case'] or ''}" if found else model


def _with_factory(model: str) -> str:
    found = _OF_FILE.fullmatch(model)
    if not found or not found["factory"]:
        return model
    return f"{found['stem']}:{found['factory']}{found['case'] or ''}"
