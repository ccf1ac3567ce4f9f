"""Texts that the terminal, Prefect's UI and messages share, without Prefect, whose import takes seconds."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from devices.settings import settings
from tasks.results.text import numbered

_MAX_NAMED = 3


def join_first(sentences: Sequence[str]) -> str:
    """Join the first three sentences with semicolons, and add how many more there are."""
    more = f"; and {len(sentences) - _MAX_NAMED} more" if len(sentences) > _MAX_NAMED else ""
    return f"{'; '.join(sentences[:_MAX_NAMED])}{more}"


def append_first(sentences: Iterable[str]) -> str:
    """Return `join_first` after a semicolon, to append to a message; an empty text without sentences."""
    all_sentences = list(sentences)
    return f"; {join_first(all_sentences)}" if all_sentences else ""


def format_counts(counts: Mapping[str, int]) -> str:
    """Return counts as text, without zeros: `24 succeeded, 1 already done`; `nothing to do` if all are zero."""
    counted = [f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count]
    return ", ".join(counted) or "nothing to do"


def others_text(count: int) -> str:
    """Return how many sessions of a night do not count as measured, since their program or runner is not today's."""
    return f"{numbered(count, 'session')} of this night not counted: of another program or runner"


def report_link(html: Path) -> str:
    """Return the address of a report below ETFARM_REPORT_URL, which serves the folder of reports; its path if unset."""
    served = settings().report_url
    return f"{served}/{quote(html.parent.name)}/{quote(html.name)}" if served else str(html)


def page_link(page: str) -> str | None:
    """Return the address of a page below ETFARM_SITE_URL, which serves `etfarm site`; None if unset."""
    served = settings().site_url
    return f"{served}/{page}" if served else None
