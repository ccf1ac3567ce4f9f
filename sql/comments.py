"""Comments of tables, views and macros, and of columns: the lines of comment above each in its file.

A column that a view takes unchanged needs none: it has the comment of the first table or view in the line `-- Reads:`
that has such a column. A column that a migration adds has the comment above its ALTER TABLE. A column of a table
without one, such as a key, has that of a table above it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_OBJECT = re.compile(
    r"^(?:-- Reads: (?P<reads>[\w, ]+)\n)?(?P<comment>(?:--[^\n]*\n)*)"
    r"CREATE (?:OR REPLACE )?(?P<kind>TABLE|VIEW|MACRO) (?P<name>\w+)(?P<body>(?:[^\n]*\n)*?(?!\s*--)[^\n]*;)$",
    re.MULTILINE,
)
_ADDED = re.compile(r"^(?P<comment>(?:--[^\n]*\n)+)ALTER TABLE (?P<name>\w+) ADD COLUMN (?P<column>\w+)", re.MULTILINE)
_NOT_CODE = re.compile(r"'(?:[^']|'')*'|--.*")
_FIRST_COLUMN = {"TABLE": re.compile(r"\(\n"), "VIEW": re.compile(r"^SELECT.*\n", re.MULTILINE)}
_NAME = {"TABLE": re.compile(r"^(\w+)"), "VIEW": re.compile(r"(\w+)$")}
_TAKEN = re.compile(r"(\w+\.)?\w+")


@dataclass(frozen=True)
class Definition:
    """A table, view or macro of a file: its comment, those in its column list, and the names of computed columns."""

    name: str
    kind: str
    comment: str
    reads: tuple[str, ...]
    columns: Mapping[str, str]
    computed: frozenset[str]


def read_definitions(text: str) -> Iterator[Definition]:
    for match in _OBJECT.finditer(text):
        kind, columns = match["kind"], list(_columns(match["kind"], match["body"]))
        yield Definition(
            match["name"],
            kind,
            _join_comment(match["comment"].splitlines()),
            tuple(re.findall(r"\w+", match["reads"] or "")),
            {name: comment for name, comment, _ in columns if comment},
            frozenset(name for name, _, is_computed in columns if is_computed),
        )
    for added in _ADDED.finditer(text):
        column = {added["column"]: _join_comment(added["comment"].splitlines())}
        yield Definition(added["name"], "TABLE", "", (), column, frozenset())


def column_comments(
    definitions: Sequence[Definition], columns: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], str]:
    """Return the comment of each (relation, column), from definitions in order and the columns of each relation."""
    comments: dict[tuple[str, str], str] = {}
    tables: list[str] = []
    for each in definitions:
        for column in columns[each.name]:
            sources = () if column in each.computed else each.reads or tables
            inherited = (comments[source, column] for source in sources if (source, column) in comments)
            if comment := each.columns.get(column) or next(inherited, None):
                comments[each.name, column] = comment
        if each.kind == "TABLE":
            tables.append(each.name)
    return comments


def _columns(kind: str, body: str) -> Iterator[tuple[str, str, bool]]:
    """Yield name and comment of each column, and whether it computes a value."""
    start = _FIRST_COLUMN[kind].search(body) if kind in _FIRST_COLUMN else None
    comment, code, depth = list[str](), "", 0
    for line in body[start.end() :].splitlines() if start else ():
        if not line.startswith(" "):
            line = ","
        elif not code and line.lstrip().startswith("--"):
            comment.append(line)
            continue
        code += f" {_NOT_CODE.sub('', line).strip()}"
        depth = sum(code.count(each) for each in "([{") - sum(code.count(each) for each in ")]}")
        if depth == 0 and code.endswith(","):
            code = code.strip(" ,")
            if name := _NAME[kind].search(code):
                yield name[1], _join_comment(comment), kind == "VIEW" and not _TAKEN.fullmatch(code)
            comment, code = [], ""
        if line == ",":
            return


def _join_comment(lines: Sequence[str]) -> str:
    return " ".join(line.strip().removeprefix("--").strip() for line in lines)
