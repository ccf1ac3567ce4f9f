"""The report's section on run-time options: what each set of them saves and costs."""

from collections.abc import Iterator, Sequence

from tasks.pages.page import Paragraph, Section
from tasks.results.options import OptionRow, read_options
from tasks.results.reader import Answers
from tasks.results.table import build_table
from tasks.results.text import Text, counted

_TITLE = "Run-time options"
_METHOD = (
    "Each set of options is compared with the default of the same program, runner and device, measured in turns. It "
    "saves or costs what is beyond the limits of a figure, with the whole 95 % interval on one side. Mapped files "
    "count in the peak memory and not in the anonymous memory. With a cache on disk, each session starts the model "
    "twice: the first start writes the cache, and the second one is measured. Nothing shows that a set with "
    "unchecked=true had an effect."
)


def options(answers: Answers) -> Section:
    rows = read_options(answers)
    if not rows:
        return Section("options", _TITLE, [Paragraph("No run-time options were measured beside their default.")])
    return Section("options", _TITLE, [Paragraph(_METHOD), build_table(rows)], list(_summary(rows)))


def _summary(rows: Sequence[OptionRow]) -> Iterator[Text]:
    """Yield how many sets of options save something."""
    saving = sum(bool(row.saves) for row in rows)
    yield f"Run-time options: {saving} of {counted(len(rows), 'comparison')} with the default save time or memory."
