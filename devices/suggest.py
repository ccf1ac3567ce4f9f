"""The nearest known word to a misspelled one."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return the end of an error message, "; did you mean `x`?", with the one nearest to `word`.

    Empty if none is near, or if `word` is one of `words`. Case is ignored.
    """
    near = nearest(word, words)
    return f"; did you mean `{near}`?" if near and near != word else ""


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the one of `words` nearest to a misspelled one, None if none is near; case is ignored."""
    spelled = {each.lower(): each for each in words}
    near = difflib.get_close_matches(word.lower(), spelled, n=1)
    return spelled[near[0]] if near else None
