"""Small faults in SQL text: a changed threshold, a lost condition, a coarser group, another aggregate."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from tests.fixtures.paths import ROOT
from tests.mutants.campaign import Fault

_MASKED = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_NUMBER = re.compile(r"(?<![\w.$\[])\d+(?:\.\d+)?(?:e\d+)?(?![\w.])")
_SWAPS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<= )<(?= )", "<="),
        (r"(?<= )<=(?= )", "<"),
        (r"(?<= )>(?= )", ">="),
        (r"(?<= )>=(?= )", ">"),
        (r"(?<= )=(?= )", "<>"),
        (r"(?<= )(?:<>|!=)(?= )", "="),
        (r"\bAND\b(?! \d+ PRECEDING|[^\n]* FOLLOWING|[^\n]* PRECEDING)", "OR"),
        (r"\bOR\b(?! REPLACE)", "AND"),
        (r"\bmedian\(", "avg("),
        (r"(?<!_)\bmin\(", "max("),
        (r"(?<!_)\bmax\(", "min("),
        (r"\bsum\(", "max("),
        (r"\bbool_or\(", "bool_and("),
        (r"\bbool_and\(", "bool_or("),
        (r"\bmax_by\(", "min_by("),
        (r"\barg_max\(", "arg_min("),
        (r"\bDESC\b", "ASC"),
        (r"\bLEFT JOIN\b", "JOIN"),
        (r"\bFULL JOIN\b", "JOIN"),
        (r"\bIS NULL\b", "IS NOT NULL"),
        (r"\bIS NOT NULL\b", "IS NULL"),
        (r"\bIS DISTINCT FROM\b", "IS NOT DISTINCT FROM"),
        (r"\bIS NOT DISTINCT FROM\b", "="),
        (r"\bNOT (?=[a-z_(])", ""),
        (r"\bDISTINCT (?=[a-z])", ""),
        (r"(?<=[\w)\]]) / (?=[\w(])", " * "),
        (r"(?<=[\w)\]]) - (?=[\w(])", " + "),
    )
)
_LISTS = re.compile(r"\b(?:PARTITION BY|GROUP BY|USING \()\s*([\w.]+(?:,\s+[\w.]+)+)")
_CONJUNCT = re.compile(r"\n\s+AND (?:[^\n(]|\([^\n]*\))+(?=\n|$)")
_FIRST_CONJUNCT = re.compile(r"\bWHERE ((?:(?! AND )[^\n(]|\([^\n]*\))+?)\s+AND ")


def faults_of(path: Path) -> Iterator[Fault]:
    """Yield each fault that can be put into the query of a file; comments and texts in quotes stay as they are."""
    text = path.read_text(encoding="utf-8")
    query = _MASKED.sub(lambda match: "\x00" * len(match[0]), text)
    for start, end, after in sorted(set(_changes(query))):
        line = text[:start].count("\n") + 1
        faulty = text[:start] + after + text[end:]
        yield Fault(str(path.relative_to(ROOT)), line, text[start:end], after, functools.partial(str, faulty))


def _changes(query: str) -> Iterator[tuple[int, int, str]]:
    for pattern, replacement in _SWAPS:
        for match in pattern.finditer(query):
            yield match.start(), match.end(), replacement
    for match in _NUMBER.finditer(query):
        if not query[: match.start()].endswith(("ORDER BY ", "GROUP BY ")):
            yield match.start(), match.end(), _other_number(match[0])
    for match in _LISTS.finditer(query):
        for column in re.finditer(r"[\w.]+,\s+|,\s+[\w.]+$", match[1]):
            yield match.start(1) + column.start(), match.start(1) + column.end(), ""
    for match in _CONJUNCT.finditer(query):
        yield match.start(), match.end(), ""
    for match in _FIRST_CONJUNCT.finditer(query):
        yield match.start() + len("WHERE "), match.end(), ""
    for match in re.finditer(r" FILTER \(", query):
        yield match.start(), _closing(query, match.end()), ""


def _other_number(number: str) -> str:
    """Return a number that is a little larger, or twice as large if it is a unit or a fraction."""
    if number.isdigit():
        return str(int(number) + 1)
    return f"2 * {number}" if "e" in number else f"{float(number) * 1.2:g}"


def _closing(query: str, start: int) -> int:
    """Return the position after the parenthesis that closes the one before `start`."""
    depth = 1
    for position in range(start, len(query)):
        depth += {"(": 1, ")": -1}.get(query[position], 0)
        if depth == 0:
            return position + 1
    return len(query)
