"""How series, variants and thread counts are named. Needs nothing but Python, as does `changes.py`."""

from typing import Protocol

from tasks.results.text import counted

_VARIANT_WORDS = {"sme2_on": "on", "sme1": "SME1", "sme2_off": "off"}
_DIFFER = " -> "
"""Between two values in a field of a change whose sides differ in it."""


class Series(Protocol):
    """The fields that name a series on a device, or a change of it."""

    @property
    def model(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def precision(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def threads(self) -> int | str | None: ...


def variant_word(variant: str) -> str:
    """Return `on`, `SME1`, `off`, or `unknown` for a run that the farm did not measure."""
    return _DIFFER.join(_VARIANT_WORDS.get(each, "unknown") for each in variant.split(_DIFFER))


def variant_condition(variant: str) -> str:
    """Return `SME2 on`, `SME2 off`, `SME2 unknown` or `SME1`."""
    return _DIFFER.join(word if word == "SME1" else f"SME2 {word}" for word in variant_word(variant).split(_DIFFER))


def series_conditions(series: Series) -> list[str]:
    """Return the conditions besides model, device and precision, without unknown ones: `SME2 off`, `one thread`."""
    threads = series.threads
    named = [] if variant_word(series.variant) == "unknown" else [variant_condition(series.variant)]
    if isinstance(threads, str):
        return [*named, f"{threads} threads"]
    return named if threads is None else [*named, counted(threads, "thread")]


def series_title(series: Series) -> str:
    """Return the name of a series on a device: `voice fp16 on pixel-9, SME2 off, one thread`."""
    return ", ".join([f"{series.model} {series.precision} on {series.device}", *series_conditions(series)])
