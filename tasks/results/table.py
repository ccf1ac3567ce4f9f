"""Tables from rows: a row class states which of its fields are columns, and how they are written.

Such a field is annotated with its column: `median_ms: Annotated[float | None, Milliseconds("Median")]`. The columns
have the order of the fields. Where a cell needs more than the value of its field, a method of the row class changes it:
`median_ms_cell(self, cell) -> Cell`.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar, get_type_hints

from tasks.results.text import DASH, Code, Link, Text, Tone, interval_digits, joined, numbered, split_text

_type_hints: dict[type["Row"], dict[str, Any]] = {}
"""Of the fields of a row, read once: that takes longer than a table of few rows."""
MB = 1e6
GIB = 1 << 30


@dataclass(frozen=True)
class Row:
    """One row of an answer. A subclass names its query and has one field per column, of the same name and type."""

    query: ClassVar[str]
    """`latency` for sql/queries/latency.sql."""
    naming: ClassVar[tuple[str, ...]] = ()
    """The fields that name what a row is about; their columns come first."""


def more_rows(count: int, where: Text) -> Text:
    """Return the line below a table that hides `count` rows, with the place to find them; empty if none is hidden."""
    return joined(f"{numbered(count, 'more row')}: ", where) if count > 0 else ""


RowT = TypeVar("RowT", bound=Row)
KeyT = TypeVar("KeyT", bound=Hashable)


def grouped(rows: Iterable[RowT], key: Callable[[RowT], KeyT]) -> dict[KeyT, list[RowT]]:
    """Return the rows of each key, in their order."""
    groups: dict[KeyT, list[RowT]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


@dataclass(slots=True)
class Cell:
    """A cell of a table: its text, the number that it sorts by, and what HTML alone draws in it.

    `share`, 0 to 1, is drawn behind the text; `line`, a value for each night, beside it. Do not change a cell. The
    class is not frozen only because that takes three times as long, and pages have hundreds of thousands of cells.
    """

    text: Text
    sort: float | None = None
    tone: Tone = ""
    share: float | None = None
    line: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Column:
    """The head of a column. It contains the unit of a numeric column, so that the cells are numbers only."""

    title: str
    unit: str = ""
    meaning: str = ""
    """What the column is, in half a sentence; listed below the table."""
    numeric: bool = field(default=False, kw_only=True)
    wraps: bool = field(default=False, kw_only=True)
    """Whether its cells may break into several lines."""
    to: str = field(default="", kw_only=True)
    """The address of a page that its head links to."""
    priority: int = field(default=0, kw_only=True)
    """A terminal that is too narrow shows the columns of the highest priority, of equal ones those on the left."""


@dataclass(frozen=True)
class Common:
    """A column that is equal in all rows of a table: `place` is its position among the columns that are not empty."""

    place: int
    column: Column
    cell: Cell


@dataclass(frozen=True)
class Table:
    """Rows under heads; a table without rows is left out."""

    kind: ClassVar[str] = "table"
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    hidden: Text = ""
    """How many rows are not shown, and where they are; empty if all are shown."""
    filters: Sequence[str] = ()
    """Titles of columns by whose values readers choose rows (HTML only)."""

    def condensed(self) -> "tuple[Table, list[Common]]":
        """Return this table without its empty columns and without those that are equal in all of two or more rows,
        which are returned as well. One column at least remains.
        """
        used = [at for at in range(len(self.columns)) if not all(is_empty(row[at]) for row in self.rows)] or [0]
        equal = {at for at in used if self._is_equal(at)}
        if len(equal) == len(used):
            equal.discard(used[0])
        common = [Common(place, self.columns[at], self.rows[0][at]) for place, at in enumerate(used) if at in equal]
        rest = [at for at in used if at not in equal]
        if len(rest) == len(self.columns):
            return self, []
        rows = [[row[at] for at in rest] for row in self.rows]
        return replace(self, columns=[self.columns[at] for at in rest], rows=rows), common

    def _is_equal(self, at: int) -> bool:
        """Return whether all rows have the same text, links and tone in a column."""
        if len(self.rows) < 2:
            return False
        first = self.rows[0][at]
        if first.line or first.share is not None or any(row[at].text != first.text for row in self.rows):
            return False
        return all(_look(row[at]) == _look(first) for row in self.rows)

    def with_columns(self, columns: Sequence[Column], cells: Sequence[Sequence[Cell]]) -> "Table":
        """Return this table with more columns on its right; `cells` are those of each row."""
        rows = [[*left, *right] for left, right in zip(self.rows, cells, strict=True)]
        return replace(self, columns=[*self.columns, *columns], rows=rows)

    def shortened(self, max_rows: int, where: Text) -> "Table":
        """Return this table with its first `max_rows` rows; the others are counted, and `where` is their place."""
        hidden = more_rows(len(self.rows) - max_rows, where)
        return replace(self, rows=self.rows[:max_rows], hidden=hidden) if hidden else self


NOTHING = Cell(DASH, tone="quiet")


def _look(cell: Cell) -> tuple[Tone, list[str]]:
    """Return the tone of a cell and where its links lead."""
    return cell.tone, [part.to for part in split_text(cell.text) if isinstance(part, Link)]


def is_empty(cell: Cell) -> bool:
    """Return whether a cell has no text but a dash, and draws nothing."""
    return cell.text in ("", DASH, ()) and not cell.line


def number(value: float, digits: int, *, tone: Tone = "") -> Cell:
    """Return a cell with a fixed number of decimals, so that decimal points align."""
    return Cell(f"{value:,.{digits}f}", sort=value, tone=tone)


def percent(share: float, *, tone: Tone = "", bar: bool = False) -> Cell:
    """Return a cell with a share in percent, one decimal; `bar` draws the share behind the number."""
    return Cell(f"{100 * share:.1f}", sort=share, tone=tone, share=min(max(share, 0.0), 1.0) if bar else None)


def at_most_percent(share: float) -> Cell:
    """Return the upper bound of a share that cannot be measured: `< 3.2`; a dash if it is 100 % or more."""
    if share >= 1:
        return NOTHING
    return Cell(f"< {100 * share:.1f}", sort=0.0, tone="quiet")


@dataclass(frozen=True, kw_only=True)
class Words(Column):
    """A field shown as words; `form` is a format specification, `tone` returns the tone of a value.

    Subclasses override `_write`, which returns the cell of a value other than None.
    """

    form: str = ""
    tone: Callable[[Any], Tone] = lambda _value: ""
    only_with: str = ""
    """Name of a field: the column is left out if all rows have None, 0 or an empty text in it."""
    link: Callable[[Any], str] | None = None
    """Returns the address that the cell of a row leads to."""

    def _write(self, value: Any) -> Cell:
        return Cell(format(value, self.form), tone=self.tone(value))

    def cell_in(self, row: Any, name: str) -> Cell:
        """Return the cell of a field of a row; a dash for None."""
        value = getattr(row, name)
        cell = NOTHING if value is None else self._write(value)
        return Cell((Link(str(cell.text), self.link(row)),), sort=cell.sort) if self.link else cell


@dataclass(frozen=True, kw_only=True)
class Name(Words):
    """A field shown as code; `first` limits its characters."""

    first: int | None = None

    def _write(self, value: Any) -> Cell:
        return Cell((Code(str(value)[: self.first]),))


@dataclass(frozen=True, kw_only=True)
class Number(Words):
    """A number times `scale`, with `digits` decimals."""

    numeric: bool = True
    digits: int = 0
    scale: float = 1

    def _write(self, value: Any) -> Cell:
        return number(value * self.scale, self.digits, tone=self.tone(value))


@dataclass(frozen=True, kw_only=True)
class Milliseconds(Number):
    """A time in ms; `build_table` sets the decimals of all such columns, and an interval takes some of them away."""

    unit: str = "ms"
    digits: int = 3
    half_width_ms: Callable[[Any], float | None] = lambda _row: None
    """Returns half of the interval of the time of a row; None without one."""

    def cell_in(self, row: Any, name: str) -> Cell:
        """Return the cell of a time, without the decimals that its interval leaves open."""
        cell, half_width_ms = super().cell_in(row, name), self.half_width_ms(row)
        if half_width_ms is None or cell.sort is None:
            return cell
        text = f"{cell.sort:,.{interval_digits(half_width_ms, self.digits)}f}"
        return replace(cell, text=(Link(text, self.link(row)),) if self.link else text)


@dataclass(frozen=True, kw_only=True)
class Calls(Number):
    """Calls per run; decimals only where the number is not an integer."""

    unit: str = "per run"
    digits: int = 1

    def _write(self, value: Any) -> Cell:
        return number(value, 0 if float(value).is_integer() else self.digits)


@dataclass(frozen=True, kw_only=True)
class Signed(Number):
    """A number with its sign; one that rounds to 0 has none."""

    def _write(self, value: Any) -> Cell:
        if round(value, self.digits) == 0:
            return number(0.0, self.digits)
        return Cell(f"{value:+,.{self.digits}f}", sort=value)


@dataclass(frozen=True, kw_only=True)
class Percent(Words):
    """A share, 0 to 1, as `percent` writes it."""

    unit: str = "%"
    numeric: bool = True
    bar: bool = False

    def _write(self, value: Any) -> Cell:
        return percent(value, tone=self.tone(value), bar=self.bar)


@dataclass(frozen=True, kw_only=True)
class Scientific(Words):
    """An error: two significant digits with an exponent, 0 as 0."""

    numeric: bool = True

    def _write(self, value: Any) -> Cell:
        return Cell("0" if value == 0 else f"{value:.1e}", sort=value)


def flag_above(bound: float) -> Callable[[float], Tone]:
    """Return a function that flags values above a bound."""
    return lambda value: "flag" if value > bound else ""


def bad_unless_zero(value: float) -> Tone:
    return "bad" if value else ""


def toned(cell: Cell, tone: Tone) -> Cell:
    """Return the cell in another tone; NOTHING keeps its own."""
    return cell if cell is NOTHING else replace(cell, tone=tone)


def list_columns(row_class: type[Row]) -> dict[str, Words]:
    """Return the columns by their fields: first those of `naming`, then the others in the order of the fields."""
    if row_class not in _type_hints:
        _type_hints[row_class] = get_type_hints(row_class, include_extras=True)
    hints = _type_hints[row_class]
    columns = {}
    for row_field in dataclasses.fields(row_class):
        for column in getattr(hints[row_field.name], "__metadata__", ()):
            columns[row_field.name] = column
    return {**{name: columns[name] for name in row_class.naming if name in columns}, **columns}


def build_table(
    rows: Sequence[Row], *, is_named: bool = True, without: Iterable[str] = (), digits: int = 3, caption: str = ""
) -> Table:
    """Return the table of rows of one class, without the columns of some fields; `digits` are those of milliseconds.

    `is_named=False` also leaves out the columns of `naming`, for a table whose title names the rows.
    """
    if not rows:
        return Table([], [])
    row_class = type(rows[0])
    hidden = {*without, *(() if is_named else row_class.naming)}
    columns = {
        name: replace(column, digits=digits) if isinstance(column, Milliseconds) else column
        for name, column in list_columns(row_class).items()
        if name not in hidden and (not column.only_with or any(getattr(row, column.only_with) for row in rows))
    }
    changes = {name: getattr(row_class, f"{name}_cell", _unchanged) for name in columns}
    cells = [[changes[name](row, column.cell_in(row, name)) for name, column in columns.items()] for row in rows]
    return Table(list(columns.values()), cells, caption)


def _unchanged(_row: Row, cell: Cell) -> Cell:
    return cell


def first_rows(
    rows: Sequence[Row], max_rows: int, where: Text, *, without: Iterable[str] = (), digits: int = 3
) -> Table:
    """Return the table of the first `max_rows` rows; only their cells are written, since a farm has 10,000 rows."""
    table = build_table(rows[:max_rows], without=without, digits=digits)
    return replace(table, hidden=more_rows(len(rows) - max_rows, where))
