"""The nearest known word to a misspelled one, and the nights beside one that was not measured."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return "; did you mean `x`?" with the word nearest to `word`, in any case; empty if none is near or one equal."""
    near = nearest(word, words)
    return f"; did you mean `{near}`?" if near and near != word else ""


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the one of `words` nearest to a misspelled one, None if none is near; case is ignored."""
    spelled = {each.lower(): each for each in words}
    near = difflib.get_close_matches(word.lower(), spelled, n=1)
    return spelled[near[0]] if near else None


def nights_beside(night: str, nights: Iterable[str]) -> str:
    """Return the end of an error message with the nights before and after an unknown `night`, all YYYY-MM-DD."""
    ordered = sorted(nights)
    beside = [*[each for each in ordered if each < night][-1:], *[each for each in ordered if each > night][:1]]
    return f"; nearest: {' and '.join(beside)}" if beside else ""
