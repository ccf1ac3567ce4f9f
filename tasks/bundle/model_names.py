"""Short names of models, titles of their cases, and what a word names: `voice` is `./voice.py:make` if no other is."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from devices.errors import InputError
from devices.suggest import did_you_mean
from tasks.bundle.delegates import delegate_title
from tasks.bundle.runtime import parse_runtime, without_delegate

SeriesT = TypeVar("SeriesT")
_FILE_NAME = re.compile(r"(?:.*/)?(?P<stem>[^/:]+)\.(?:py:(?P<factory>\w+)|pte)(?P<case>@.*)?", re.DOTALL)
_UNDESCRIPTIVE = ("model", "models")
"""Names of files that do not describe the model in them: `./model.py:voice` is shown as `model:voice`."""


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Return the name to show for each model: a file's stem, with its factory or in full where others are equal."""
    models = set(models)
    names = {model: _short_name(model) for model in models}
    counts = Counter(names.values())
    names = {
        model: name if counts[name] == 1 else _short_name(model, with_factory=True) for model, name in names.items()
    }
    counts = Counter(names.values())
    return {model: name if counts[name] == 1 else model for model, name in names.items()}


def find_model(word: str, names: Mapping[str, str]) -> str | None:
    """Return the model that a user means, by its name or by that of `short_names`; None if there is no such model."""
    return word if word in names else next((model for model, name in names.items() if name == word), None)


def case_title(name: str) -> str:
    """Return the name of a case for readers, its delegate in words: `net@load=mmap (OpenVINO)`.

    Addresses, commands, SQL and JSON have the name itself.
    """
    delegate = parse_runtime(name).delegate
    return f"{without_delegate(name)} ({delegate_title(delegate)})" if delegate else name


def unknown_series(word: str, models: Iterable[str]) -> InputError:
    """Return the error of a word that names no series, with the nearest model."""
    near = did_you_mean(word, models) or "; `etfarm site` lists all"
    return InputError(f"`{word}` is not a model or a series id{near}")


def limit_series(series: Iterable[SeriesT], word: str, option: str, value: str | None) -> list[SeriesT]:
    """Return the series that an option selects (None: all); InputError with the values to use if there is none."""
    every = list(series)
    values = {str(getattr(each, option)) for each in every}
    if value is not None and value not in values:
        hint = did_you_mean(value, values) or f"; use one of {', '.join(sorted(values))}"
        raise InputError(f"--{option}: `{word}` has no series with {option} `{value}`{hint}")
    return [each for each in every if value in (None, getattr(each, option))]


def _short_name(model: str, *, with_factory: bool = False) -> str:
    """Return the stem of a model's file and its case, with the factory between them if the stem does not suffice.

    A model that is not named by its file, or needs a factory and has none, keeps its full name.
    """
    match = _FILE_NAME.fullmatch(model)
    if not match:
        return model
    if not (with_factory or match["stem"] in _UNDESCRIPTIVE):
        return f"{match['stem']}{match['case'] or ''}"
    return f"{match['stem']}:{match['factory']}{match['case'] or ''}" if match["factory"] else model
