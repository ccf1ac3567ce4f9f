"""The result of one check of a certification."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "failed", "not tried"]


@dataclass(frozen=True)
class Finding:
    """How a check ended: `text` is one line, with figures first, or the reason; `figures` are for the page."""

    status: Status
    text: str
    figures: tuple[tuple[str, str], ...] = ()


def figures(**named: object) -> tuple[tuple[str, str], ...]:
    """Return figures by name, with blanks instead of underscores; None reads `unknown`."""
    return tuple((name.replace("_", " "), "unknown" if value is None else str(value)) for name, value in named.items())
