"""Every session of the sweep by device, with its result and the conditions before and after it."""

from collections.abc import Iterator, Mapping
from itertools import groupby

from tasks.pages.report.page import Block, Fold
from tasks.results.cells import tags_of
from tasks.results.reader import Answers
from tasks.results.sessions import SessionRow
from tasks.results.table import table_of
from tasks.results.text import counted


def sessions(answers: Answers, without_times: Mapping[str, str | None]) -> Iterator[Block]:
    """One fold per device with all its sessions (HTML only); `without_times` marks devices."""
    for device, group in groupby(answers.rows(SessionRow), key=lambda row: row.device):
        rows = list(group)
        title = (device, *tags_of(without_times.get(device)), f": {counted(len(rows), 'session')}")
        yield Fold(title, [table_of(rows)], in_markdown=False)
