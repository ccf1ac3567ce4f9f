"""Tables on a terminal: as wide as it is, with the columns that matter most; the others are named below.

A column that is equal in all rows is in a line above. Without a width, such as in a pipe, each row is one line with all
columns and whole values, which programs read.
"""

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from devices.untrusted import sanitize_line
from tasks.results.table import Cell, Column, Common, Table
from tasks.results.text import Text, Tone, Toned, split_text

_GAP = "  "
_WORDS_CHARS = 24
"""A column of words that are longer may be this narrow: then its cells break into several lines."""
_FILLER = "\0"
"""Follows each character that takes two columns, so that a text is as long as it is wide; no sanitized text has it."""
_WRAPPED_ALONE = re.compile(f"[^{_FILLER}]{_FILLER}|(?:[^{_FILLER}](?!{_FILLER}))+")
_PADDED_CHARS = 60
"""A longer cell of a row on one line sticks out of its column: a log would make every row as long as itself."""


@dataclass(frozen=True)
class FittedTable:
    """The lines of a table, so that a caller can leave rows out."""

    head: Sequence[Text]
    """What all rows share, the titles, and a rule."""
    rows: Sequence[Sequence[Text]]
    tail: Sequence[Text]
    """The columns that are not shown, or not whole."""

    def lines(self) -> Iterator[Text]:
        yield from self.head
        for row in self.rows:
            yield from row
        yield from self.tail


@dataclass(frozen=True)
class Grid:
    """Columns side by side. A cell that is wider than its column breaks into lines, or sticks out if not `wraps`.

    One that breaks into more than `max_lines` is cut, and ends in an ellipsis.
    """

    widths: Sequence[int]
    numeric: Sequence[bool]
    wraps: bool = True
    max_lines: int | None = None

    @classmethod
    def natural(cls, table: Table) -> "Grid":
        """Return columns as wide as their titles and cells, for rows of one line each."""
        widths = map(_natural_width, table.columns, _by_column(table))
        numeric = [column.numeric for column in table.columns]
        return cls([min(each, _PADDED_CHARS) for each in widths], numeric, wraps=False)

    def lines(self, texts: Sequence[str], tones: Sequence[Tone] = ()) -> Iterator[Text]:
        """Yield the lines of a row."""
        cells = [self._wrapped(_filled(text), width) for text, width in zip(texts, self.widths, strict=True)]
        for pieces in zip_longest(*cells, fillvalue=""):
            yield self._line(pieces, tones)

    def titles(self, columns: Sequence[Column]) -> Iterator[Text]:
        """Yield the titles, which end on the line above the rule, and the rule."""
        cells = [self._wrapped(_title(column), width) for column, width in zip(columns, self.widths, strict=True)]
        height = max(map(len, cells), default=1)
        for pieces in zip(*([""] * (height - len(lines)) + lines for lines in cells), strict=True):
            yield self._line(pieces)
        yield _GAP.join("-" * width for width in self.widths)

    def cuts(self, text: str, width: int) -> bool:
        """Return whether a text is not shown whole in a column of this width."""
        return self.max_lines is not None and len(_broken(text, width)) > self.max_lines

    def _wrapped(self, text: str, width: int) -> list[str]:
        if len(text) <= width or not self.wraps:
            return [text]
        if self.cuts(text, width):
            return _Wrapper(width, break_on_hyphens=False, max_lines=self.max_lines, placeholder="…").wrap(text)
        return _broken(text, width)

    def _line(self, pieces: Sequence[str], tones: Sequence[Tone] = ()) -> Text:
        aligned = [
            _plain(piece.rjust(width) if is_numeric else piece.ljust(width))
            for piece, width, is_numeric in zip(pieces, self.widths, self.numeric, strict=True)
        ]
        if not any(tones):
            return _GAP.join(aligned).rstrip()
        aligned[-1] = aligned[-1].rstrip()
        parts = [Toned(text, tone) if tone else text for text, tone in zip(aligned, tones, strict=True)]
        return tuple(part for each in parts for part in (_GAP, each))[1:]


def fit(table: Table, width: int | None, max_lines: int | None = None) -> FittedTable:
    """Return a table that fits a width; None: with all columns, each row on one line.

    A cell that needs more than `max_lines` is cut, unless it is the only row's.
    """
    if width is None:
        return _laid_out(table, Grid.natural(table))
    natural = sum(map(_natural_width, table.columns, _by_column(table))) + len(_GAP) * (len(table.columns) - 1)
    if len(table.rows) == 1 and natural > width:
        return fit(_upright(table), width)
    narrow, common = table.condensed() if table.rows else (table, [])
    positions, widths = _fitting_columns(narrow, width)
    columns = [narrow.columns[at] for at in positions]
    grid = Grid(widths, [column.numeric for column in columns], max_lines=max_lines)
    fitted = _laid_out(Table(columns, [[row[at] for at in positions] for row in narrow.rows]), grid)
    hidden = [column for at, column in enumerate(narrow.columns) if at not in positions]
    texts = _by_column(narrow)
    cut = [narrow.columns[at] for at, each in zip(positions, widths, strict=True) if _any_cut(grid, texts[at], each)]
    if max_lines is not None:
        max_chars = max_lines * width
        cut += [each.column for each in common if len(_text(each.cell)) > max_chars]
        common = [replace(each, cell=Cell(_plain(_shortened(_text(each.cell), max_chars)))) for each in common]
    empty = [each for each in table.columns if each not in narrow.columns and all(each != one.column for one in common)]
    head = [*_wrapped_line(_caption(table, common, empty), width), *fitted.head]
    return FittedTable(head, fitted.rows, [*_notes({"not shown": hidden, "cut": cut}, width)])


def _notes(columns_of: Mapping[str, Sequence[Column]], width: int) -> Iterator[Text]:
    """Yield a line for each kind of columns that a table does not show in full."""
    for what, columns in columns_of.items():
        names = f"{what} (--wide shows all): {', '.join(map(_title, columns))}" if columns else ""
        yield from ((Toned(line, "quiet"),) for line in _wrapped_line(names, width))


def _any_cut(grid: Grid, texts: Iterable[str], width: int) -> bool:
    return any(grid.cuts(text, width) for text in texts)


def _shortened(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


class _Wrapper(textwrap.TextWrapper):
    """Also breaks beside each wide character: most of their scripts have no spaces."""

    def _split(self, text: str) -> list[str]:
        chunks: list[str] = super()._split(text)
        return [piece for chunk in chunks for piece in _WRAPPED_ALONE.findall(chunk)]


def _broken(text: str, width: int) -> list[str]:
    return _Wrapper(width, break_on_hyphens=False).wrap(text)


def _wrapped_line(text: str, width: int) -> list[str]:
    lines = _Wrapper(width, subsequent_indent="  ", break_on_hyphens=False).wrap(text)
    return [*map(_plain, lines)]


def _caption(table: Table, common: Iterable[Common], empty: Iterable[Column]) -> str:
    """Return what all rows share, and which columns are empty."""
    parts = [f"{each.column.title} {_text(each.cell)} {each.column.unit}".strip() for each in common]
    parts += [f"no {each.title}" for each in empty]
    return f"all {len(table.rows):,} rows: {'; '.join(parts)}" if parts else ""


def _upright(table: Table) -> Table:
    """Return a table of one row as a table with a row for each of its columns."""
    rows = [[Cell(_plain(_title(column))), cell] for column, cell in zip(table.columns, table.rows[0], strict=True)]
    return Table([Column("column"), Column("value")], rows)


def _fitting_columns(table: Table, width: int) -> tuple[list[int], list[int]]:
    """Return the positions of the columns that fit, those of the highest priority, and their widths."""
    texts = _by_column(table)
    natural, min_widths = [*map(_natural_width, table.columns, texts)], [*map(_min_width, table.columns, texts)]
    by_priority = sorted(range(len(natural)), key=lambda at: (-table.columns[at].priority, at))
    widths: dict[int, int] = {}
    free = width + len(_GAP)
    for at in by_priority:
        needed = min(min_widths[at], width) + len(_GAP)
        if needed <= free:
            widths[at] = min(min_widths[at], width)
            free -= needed
    for at in sorted(widths, key=lambda at: natural[at]):  # a long text gets what the others leave
        added = min(natural[at] - widths[at], free)
        widths[at] += added
        free -= added
    positions = sorted(widths)
    return positions, [widths[at] for at in positions]


def _laid_out(table: Table, grid: Grid) -> FittedTable:
    rows = [[*grid.lines([*map(_line_of, row)], [cell.tone for cell in row])] for row in table.rows]
    return FittedTable([*grid.titles(table.columns)], rows, [])


def _natural_width(column: Column, texts: Iterable[str]) -> int:
    """Return the width of a column whose title and cells have one line each."""
    return max(len(_title(column)), *map(len, texts), 0)


def _min_width(column: Column, texts: Iterable[str]) -> int:
    """Return the width of a column whose title has several lines, and if it has words, its cells, too."""
    title, cells = max(map(len, _title(column).split()), default=0), max(map(len, texts), default=0)
    return max(title, cells if column.numeric else min(cells, _WORDS_CHARS))


def _by_column(table: Table) -> list[list[str]]:
    return [[_text(row[at]) for row in table.rows] for at in range(len(table.columns))]


def _title(column: Column) -> str:
    return _filled(sanitize_line(f"{column.title} {column.unit}".rstrip()))


def _text(cell: Cell) -> str:
    return _filled(_line_of(cell))


def _line_of(cell: Cell) -> str:
    return sanitize_line("".join(split_text(cell.text)))


def _plain(text: str) -> str:
    return text.replace(_FILLER, "")


def _filled(text: str) -> str:
    if text.isascii():
        return text
    return "".join(each + _FILLER * (unicodedata.east_asian_width(each) in "WF") for each in text)
