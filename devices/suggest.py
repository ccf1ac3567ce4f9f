"""The nearest known word to a misspelled one."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message, "; did you mean `x`?", with the known word nearest to `word`.

    Empty if none is near, or if `word` itself is known. Case is ignored.
    """
    near = nearest(word, known)
    return f"; did you mean `{near}`?" if near and near != word else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word nearest to a misspelled one, None if none is near; case is ignored."""
    spelled = {each.lower(): each for each in known}
    near = difflib.get_close_matches(word.lower(), spelled, n=1)
    return spelled[near[0]] if near else None
