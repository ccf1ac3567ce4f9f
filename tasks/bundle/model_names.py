"""Short names of models, and what a word names: `./voice.py:make` is shown as `voice` if no other model is."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from devices.errors import InputError
from devices.suggest import did_you_mean

_OF_FILE = re.compile(r"(?:.*/)?(?P<stem>[^/:]+)\.(?:py:(?P<factory>\w+)|pte)(?P<case>@.*)?", re.DOTALL)
_SAYS_NOTHING = ("model", "models")
"""Names of files that do not describe the model in them: `./model.py:voice` is shown as `model:voice`."""


def shown_names(models: Iterable[str]) -> dict[str, str]:
    """Return the name to show for each model: a file's stem, with its factory or in full where others are equal."""
    models = set(models)
    shown = {model: _short_name(model) for model in models}
    counts = Counter(shown.values())
    shown = {
        model: name if counts[name] == 1 else _short_name(model, with_factory=True) for model, name in shown.items()
    }
    counts = Counter(shown.values())
    return {model: name if counts[name] == 1 else model for model, name in shown.items()}


def model_named(word: str, shown: Mapping[str, str]) -> str | None:
    """Return the model that a user means, by its name or by that of `shown_names`; None if there is no such model."""
    return word if word in shown else next((model for model, name in shown.items() if name == word), None)


def unknown_series(word: str, models: Iterable[str]) -> InputError:
    """Return the error of a word that names no series, with the nearest model."""
    near = did_you_mean(word, models) or "; `etfarm site` lists all"
    return InputError(f"`{word}` is not a model or a series id{near}")


def _short_name(model: str, *, with_factory: bool = False) -> str:
    match = _OF_FILE.fullmatch(model)
    if not match:
        return model
    if not (with_factory or match["stem"] in _SAYS_NOTHING):
        return f"{match['stem']}{match['case'] or ''}"
    return f"{match['stem']}:{match['factory']}{match['case'] or ''}" if match["factory"] else model
