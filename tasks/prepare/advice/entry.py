"""One known cause why XNNPACK's partitioner leaves an operator to the portable kernels."""

import re
from dataclasses import dataclass

_WORD = re.compile(r"^(?:\w+(?:\.|::))?(\w+)")


@dataclass(frozen=True)
class Advice:
    """A cause and, where there is one, the rewrite of the model that delegates the operator.

    The entry is about an operator if its word is in `operators`, the partitioner's reason contains `reason`, and the
    model has portable operators of all words in `beside`.
    """

    name: str
    operators: frozenset[str]
    cause: str
    rewrite: str | None
    """One sentence in the imperative, without its full stop; None: nothing can be done in the exporter."""
    reason: str = ""
    beside: frozenset[str] = frozenset()

    def is_about(self, operator: str, reason: str, beside: frozenset[str]) -> bool:
        """Return whether this entry explains the operator (a word, see `word_of`) with this reason."""
        return operator in self.operators and self.reason in reason and self.beside <= beside

    @property
    def text(self) -> str:
        """The cause, then what to do, as two sentences."""
        cause = self.cause[:1].upper() + self.cause[1:]
        return f"{cause}. {f'Next: {self.rewrite}' if self.rewrite else 'Nothing can be done in the exporter'}."


def word_of(operator: str) -> str:
    """Return what the exporter's and the runtime's names share: `mean` of aten.mean.dim, aten::mean and mean."""
    found = _WORD.match(operator)
    return found[1] if found else operator
