"""Text that others wrote is shown as it is, except what could act on a terminal, a log or a page."""

import pytest

from devices.foreign_text import one_line, plain, plain_line

HARMLESS = {
    "accents": "Zürich, naïve, e\u0301",
    "chinese": "模型\u3000延迟",
    "arabic with a joiner": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "emoji of several parts": "👩\u200d🔧 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ❤️",
    "newer than python's tables": "\U0001faff\U0001fae9",
    "no-break space": "5\u00a0ms",
    "signs": "a|b <c> `d` \\x1b \\u202e ~^",
}
ACTING = {
    "escape": "\x1b",
    "eight-bit escape": "\x9b",
    "bell": "\x07",
    "carriage return": "\r",
    "backspace": "\b",
    "delete": "\x7f",
    "null": "\0",
    "right-to-left override": "\u202e",
    "isolate": "\u2066",
    "end of isolate": "\u2069",
    "left-to-right mark": "\u200e",
    "arabic letter mark": "\u061c",
    "line separator": "\u2028",
    "byte of a file's name": "\udcff",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
def test_legitimate_text_stays_as_it_is(text: str) -> None:
    assert (plain(text), plain_line(text), plain(f"{text}\n\t{text}")) == (text, text, f"{text}\n\t{text}")


@pytest.mark.parametrize("character", ACTING.values(), ids=ACTING.keys())
def test_a_character_that_acts_becomes_a_mark_or_a_blank(character: str) -> None:
    assert plain(f"a{character}b") == "a\ufffdb"
    assert plain_line(f"a{character}b") in ("a\ufffdb", "a b")
    assert one_line(f"a{character}b") in ("a\ufffdb", "a b")


def test_all_kinds_of_line_ends_and_tabs_become_one_blank_each_on_a_line() -> None:
    assert plain_line("a\nb\rc\td\x0be\x0cf\x85g\u2028h\u2029i") == "a b c d e f g h i"


@pytest.mark.parametrize(("letters", "shown"), [(9, "x" * 9), (10, "x" * 10), (11, "x" * 10 + "...")])
def test_a_part_of_a_sentence_is_cut_after_its_limit(letters: int, shown: str) -> None:
    assert one_line("x" * letters, 10) == shown
