"""How the exported graphs of two cells differ: operators added, removed, and moved into or out of delegates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.judge.pairs import MeasuredCell
from tasks.results.reader import Reader
from tasks.results.text import Fact, listed, numbered, with_code

_MAX_OPERATORS = 5
_MAX_MODULES = 3


@dataclass(frozen=True)
class GraphChange:
    """One operator of the exported graph, with how often A and B have it inside and outside delegates."""

    operator: str
    delegated_a: int
    delegated_b: int
    portable_a: int
    portable_b: int
    modules: Sequence[str]
    """The modules in which its number or place differs; empty if they are unknown."""

    @property
    def moved(self) -> int:
        """How many left the delegates; negative: how many the delegates took."""
        out, into = self.portable_b - self.portable_a, self.delegated_b - self.delegated_a
        return max(0, min(out, -into)) - max(0, min(-out, into))

    @property
    def added(self) -> tuple[int, int]:
        """How many B has more inside and outside delegates, those that moved left out; negative: how many fewer."""
        return (self.delegated_b - self.delegated_a + self.moved, self.portable_b - self.portable_a - self.moved)

    @property
    def parts(self) -> Iterator[str]:
        """Yield the change in words: `2 left the delegate`, `1 more, portable`."""
        if self.moved:
            yield f"{abs(self.moved)} {'left' if self.moved > 0 else 'moved into'} the delegate"
        for count, place in zip(self.added, ("delegated", "portable"), strict=True):
            if count:
                yield f"{abs(count)} {'more' if count > 0 else 'fewer'}, {place}"


def read_graph_changes(reader: Reader, pairs: Sequence[tuple[str, str]]) -> list[list[GraphChange]]:
    """Return for each pair of cells (A, B) the operators that differ, the largest number first."""
    changes: list[list[GraphChange]] = [[] for _ in pairs]
    if pairs:
        cells_a, cells_b = zip(*pairs, strict=True)
        for pair, *fields in reader.tuples("graph_difference", cells_a=list(cells_a), cells_b=list(cells_b)):
            changes[pair].append(GraphChange(*fields))
    return changes


def graph_in_words(changes: Sequence[GraphChange]) -> list[str]:
    """Return a line for each of the first operators: "`aten.mean.dim`: 1 left the delegate (in `head`)"."""
    lines: list[str] = []
    for change in changes[:_MAX_OPERATORS]:
        modules = [f"`{module}`" if module else "the model itself" for module in change.modules[:_MAX_MODULES]]
        if more := len(change.modules) - len(modules):
            modules.append(numbered(more, "other module"))
        where = f" (in {listed(modules)})" if modules else ""
        lines.append(f"`{change.operator}`: {' and '.join(change.parts)}{where}")
    if (more := len(changes) - len(lines)) > 0:
        lines.append(f"{numbered(more, 'more operator')} {'differs' if more == 1 else 'differ'}")
    return lines


def graph_facts(reader: Reader, cell_a: str | None, cell_b: str | None) -> list[Fact]:
    """Return how the exported graphs of two cells differ; empty without a difference, or without one of them."""
    changes = read_graph_changes(reader, [(cell_a, cell_b)])[0] if cell_a and cell_b else []
    return [Fact("Exported graph", [with_code(f"{line}.") for line in graph_in_words(changes)])] if changes else []


def graph_remarks(reader: Reader, pairs: Sequence[tuple[MeasuredCell, MeasuredCell]]) -> Iterator[str]:
    """Yield how the exported graphs of each model differ, once for all its devices, variants and threads."""
    exports = {
        (a.pte_sha256, b.pte_sha256): (a, b)
        for a, b in pairs
        if a.subject("runtime") == b.subject("runtime") and a.pte_sha256 != b.pte_sha256
    }
    changes = read_graph_changes(reader, [(a.cell, b.cell) for a, b in exports.values()])
    for (a, b), of_graph in zip(exports.values(), changes, strict=True):
        if of_graph:
            precision = a.precision if a.precision == b.precision else f"{a.precision} -> {b.precision}"
            yield f"exported graph of {a.subject('runtime')} {precision}: {'; '.join(graph_in_words(of_graph))}"
