"""Texts of results: names of series, names as code, links to pages, numbers in sentences. Needs nothing but Python."""

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from devices.untrusted import sanitize_line
from tasks.bundle.variant_word import variant_word

Tone = Literal["", "flag", "quiet", "bad", "good"]
"""flag: needs attention; quiet: minor, or not measured; bad: something went wrong; good: it got better."""
_WORDS_BY_TONE: dict[Tone, tuple[str, ...]] = {
    "bad": ("regression", "slower", "inaccurate", "failed", "not safe", "fix", "unreachable", "unusable"),
    "flag": ("suspected", "device slower", "device worse", "invalid", "invalid environment"),
    "good": ("improvement", "faster", "device faster", "device better", "safe", "ok"),
    "quiet": ("suspected improvement", "unclear", "inconclusive", "unknown"),
}
_TONES = {word: tone for tone, words in _WORDS_BY_TONE.items() for word in words}


def word_tone(word: str) -> Tone:
    """Return the tone of a verdict, the answer of a comparison, or the state of a check; of other words none."""
    return _TONES.get(word, "")


class Toned(str):
    """Text in a tone: a colour on a terminal."""

    tone: Tone

    def __new__(cls, text: str, tone: Tone) -> "Toned":
        toned = super().__new__(cls, text)
        toned.tone = tone
        return toned


class Code(str):
    """Text shown as code: names, ids and paths."""


class Link(str):
    """Text that links to a page of the site; plain text where there is no site."""

    to: str
    """The address of the page, relative to the home page, a URL, or a section of the same page, such as `#matrix`."""

    def __new__(cls, text: str, to: str) -> "Link":
        link = super().__new__(cls, text)
        link.to = to
        return link


class CodeLink(Link, Code):
    """Text shown as code that links to a page of the site."""


class Tag(str):
    """A word that marks the text before it, such as `emulated`."""


Text = str | tuple[str, ...]
"""One line of text, or its parts, of which `Code`, `Link` and `Tag` are formatted."""


@dataclass(frozen=True)
class Fact:
    title: str
    sentences: Sequence[Text]


def split_text(text: Text) -> tuple[str, ...]:
    """Return the parts of a text; a plain text is one part."""
    return (text,) if isinstance(text, str) else text


DASH = "\u2013"
TIMES = "\u00d7"
_NUMBER_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def ms_digits(times: Iterable[float | None]) -> int:
    """Return the decimals for a column of milliseconds: four if one of them is below 0.1 ms, else three."""
    return 4 if any(0 < time < 0.1 for time in times if time is not None) else 3


def interval_digits(half_width_ms: float, max_digits: int) -> int:
    """Return the decimals of a time with a 95 % interval, in ms: the half width has one digit, up to 3.5 two."""
    return max_digits if half_width_ms <= 0 else min(max(math.ceil(-math.log10(half_width_ms / 3.5)), 0), max_digits)


def in_percent(share: float) -> str:
    """Return a share for a sentence: `12.3 %`."""
    return f"{100 * share:.1f} %"


def rounded_percent(share: float) -> str:
    """Return a bound for a sentence: `5 %`."""
    return f"{100 * share:.0f} %"


def in_ms(milliseconds: float) -> str:
    """Return a time for a sentence, with three significant digits: `12.3 ms`, `0.0812 ms`, `1,230 ms`."""
    return f"{milliseconds:,.{sentence_digits(milliseconds)}f} ms"


def again_text(before_ms: float | None, after_ms: float | None, sessions_a: int | None, sessions_b: int | None) -> str:
    """Return what an interleaved comparison measured; empty without one.

    `measured again beside the old one: 0.221 ms -> 0.582 ms, 8 and 8 sessions`
    """
    if before_ms is None or after_ms is None or sessions_a is None:
        return ""
    times = f"{in_ms(before_ms)} -> {in_ms(after_ms)}"
    return f"measured again beside the old one: {times}, {sessions_a} and {sessions_b} sessions"


def sentence_digits(milliseconds: float) -> int:
    """Return the decimals with which a time has three significant digits."""
    for least, digits in ((100, 0), (10, 1), (1, 2), (0.1, 3)):
        if milliseconds >= least:
            return digits
    return 4


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return `one session`, `12 sessions` or `no session`."""
    noun = singular if count in (0, 1) else plural or f"{singular}s"
    return f"{_NUMBER_WORDS[count] if count < len(_NUMBER_WORDS) else f'{count:,}'} {noun}"


def numbered(count: int, singular: str, plural: str | None = None) -> str:
    """Return `1 session`, `1,200 sessions` or `0 sessions`: `counted` for figures."""
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def duration(seconds: float) -> str:
    """Return a duration for a sentence: `48 s`, `12 min`, `3.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def listed(names: Iterable[str]) -> str:
    """Return `a`, `a and b` or `a, b and c`; empty without names."""
    items = list(names)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def joined(*parts: Text) -> Text:
    """Return texts as one, nothing between them; names and links stay formatted."""
    return tuple(piece for part in parts for piece in split_text(part))


def separated(parts: Sequence[Text], separator: str = ", ", *, most: int | None = None) -> Text:
    """Return texts as one with a separator between them; those after the first `most` are counted."""
    named = parts[:most]
    text = joined(*(piece for part in named for piece in (separator, part)))[1:]  # no separator before the first
    return (*text, f" and {len(parts) - len(named)} more") if len(parts) > len(named) else text


def codes(names: Iterable[str], *, most: int = 6) -> Text:
    """Return names as code, separated by commas; those after the first `most` are counted."""
    return separated([(Code(name),) for name in names], most=most)


def without_links(text: Text) -> Text:
    """Return a text whose names stay code and lead nowhere: what opens a fold must not contain a link."""
    return tuple(Code(part) if isinstance(part, Code) else str(part) for part in split_text(text))


def with_code(text: str) -> Text:
    """Return a text in which what is between backticks is code."""
    pieces = text.split("`")
    return tuple(Code(piece) if position % 2 else piece for position, piece in enumerate(pieces) if piece)


def sentence(text: str) -> str:
    """Return a text as a sentence, with a capital and one full stop; empty for a blank text."""
    stripped = text.strip()
    return stripped[:1].upper() + stripped[1:].rstrip(".") + "." if stripped else ""


def wrap_text(text: str, width: int) -> list[str]:
    """Return text in lines of at most `width`, broken at spaces and indented after the first; none for an empty text.

    What is between backticks stays on one line, and so does a word, such as a path: both are there to be copied.
    """
    pieces = text.split("`")
    if len(pieces) % 2:  # each backtick has its other
        pieces[1::2] = [piece.replace(" ", "\0") for piece in pieces[1::2]]
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    wrapper = textwrap.TextWrapper(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in wrapper.wrap("`".join(pieces))]


def plain_text(text: Text) -> str:
    """Return a text on one line, sanitized, its names between backticks."""
    return sanitize_line("".join(f"`{part}`" if isinstance(part, Code) else part for part in split_text(text)))


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


def series_conditions(series: Series) -> list[str]:
    """Return the conditions besides model, device and precision, without unknown ones: `SME2 off`, `one thread`."""
    threads = series.threads
    named = [word] if (word := variant_word(series.variant)) != "SME2 unknown" else []
    if isinstance(threads, str):
        return [*named, f"{threads} threads"]
    return named if threads is None else [*named, counted(threads, "thread")]


def series_title(series: Series) -> str:
    """Return the name of a series on a device: `voice fp16 on pixel-9, SME2 off, one thread`."""
    return ", ".join([f"{series.model} {series.precision} on {series.device}", *series_conditions(series)])
