"""Where the time of a model goes on its page: pictures of a few cells, what to do first, and all else in folds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tasks.judge.figures import percent_change
from tasks.pages.charts import Scatter, StackChart
from tasks.pages.page import Block, Fold, Paragraph, Points, Section
from tasks.pages.report import SectionOf, short_sections
from tasks.pages.sections.accuracy import accuracy
from tasks.pages.sections.delegates import section as delegate_section
from tasks.pages.sections.icicle import icicle_blocks
from tasks.pages.sections.memory import memory
from tasks.pages.sections.operators import portable, what_if
from tasks.pages.sections.roofline import roofline
from tasks.pages.sections.sme2 import sme2
from tasks.results.addresses import cell_page
from tasks.results.measurements.delegates import DelegateRow
from tasks.results.measurements.roofline import RooflineRow
from tasks.results.measurements.sweep_advice import other_advice, portable_advice
from tasks.results.measurements.time_tree import TimePartRow
from tasks.results.measurements.what_if import predictions_in_words, read_what_ifs
from tasks.results.provenance import CellFactsRow, limit_to_cells
from tasks.results.reader import Answers
from tasks.results.text import Link, Text, in_ms, joined, numbered, series_conditions, without_links

_MAX_STEPS = 4
_DASH = " \u2014 "
_SECTIONS = (memory, portable, accuracy, what_if)


@dataclass(frozen=True)
class Details:
    """What a page shows of a few cells, the worst first: answers about their sweep, and parts of their time.

    `before` are the parts of the last good cell of those that changed, by the cell.
    """

    cells: Sequence[CellFactsRow]
    pair: Sequence[CellFactsRow]
    """Cells with SME2 on and off."""
    answers: Answers
    parts: Mapping[str, Sequence[TimePartRow]]
    before: Mapping[str, Sequence[TimePartRow]]
    delegates: Sequence[DelegateRow]
    """Those that the sweep states of the model, on all devices."""


def details_sections(details: Details, others: Text) -> Iterator[Section]:
    """Yield the delegates, where the time of a few cells goes, further pictures of them, what to do first, the rest.

    `others` links to further cells; the rest is in folds.
    """
    if of_delegates := delegate_section(details.delegates, names_sweep=True):
        yield of_delegates
    blocks: list[Block] = []
    for cell in details.cells:
        if parts := details.parts.get(cell.cell):
            before = details.before.get(cell.cell)
            is_first = not blocks
            title = f"{_cell_name(cell)}{_DASH}{_time_text(parts, before)}"
            more = Paragraph((Link("All of this cell", cell_page(cell.cell)),), only_with_link=True)
            inner = [*icicle_blocks(parts, before, is_brief=not is_first), more]
            blocks.append(Fold(title, inner, is_open=is_first))
    if blocks:
        last = [Paragraph(others, "quiet", only_with_link=True)] if others else []
        yield Section("tree", "Where the time goes", [*blocks, *last])
    worst = limit_to_cells(details.answers, details.cells[:1])
    first = [_roof(worst, details.cells[0])] if worst.rows(RooflineRow) else []
    first += short_sections(limit_to_cells(details.answers, [*details.pair, *details.cells]), [sme2])
    yield from pictures_and_rest(limit_to_cells(details.answers, details.cells), first, _SECTIONS)


def pictures_and_rest(
    answers: Answers, first: Sequence[Section], others: Sequence[SectionOf] = (sme2, *_SECTIONS)
) -> Iterator[Section]:
    """Yield a section for each picture, what to do first, and all other sections in folds; `first` come first."""
    folded: list[Block] = []
    for section in (*first, *short_sections(answers, others)):
        pictures, rest = _split(section)
        if pictures:
            answer = () if isinstance(pictures[0], Paragraph) else section.summary[:1]
            yield Section(section.anchor, section.title, [*map(Paragraph, answer), *pictures])
        if rest:
            folded.append(_fold(replace(section, blocks=rest)))
    steps = [*portable_advice(answers), *other_advice(answers), *predictions_in_words(read_what_ifs(answers)[0][:1])]
    if steps:
        left = Fold(f"{numbered(len(steps) - _MAX_STEPS, 'more step')}", [Points(steps[_MAX_STEPS:])])
        more = [left] if len(steps) > _MAX_STEPS else []
        yield Section("first", "What to do first", [Points(steps[:_MAX_STEPS], ordered=True), *more])
    yield Section("details", "Everything else", sorted(folded, key=lambda block: isinstance(block, Paragraph)))


def _roof(answers: Answers, cell: CellFactsRow) -> Section:
    """Return the roofline of a cell, in a fold with its name."""
    [section] = short_sections(answers, [roofline])
    blocks = [
        replace(block, title=(_cell_name(cell), *block.title[-1:])) if isinstance(block, Fold) else block
        for block in section.blocks
    ]
    return replace(section, blocks=blocks)


def _split(section: Section) -> tuple[list[Block], list[Block]]:
    """Return the pictures of a section, also those of its open fold under its title, and all other blocks."""
    pictures: list[Block] = []
    rest: list[Block] = []
    for block in section.blocks:
        if isinstance(block, StackChart | Scatter):
            pictures.append(block)
        elif isinstance(block, Fold) and block.is_open:
            inner, others = _split(Section("", "", block.blocks))
            pictures += [Paragraph(block.title), *inner] if inner else []
            rest.append(replace(block, blocks=others, is_open=False))
        else:
            rest.append(block)
    return pictures, rest


def _fold(section: Section) -> Block:
    """Return a section as a fold, with its result in the title: its first sentence, or that of its first cell.

    One that only states what is missing is a paragraph.
    """
    first = section.blocks[0]
    if len(section.blocks) == 1 and isinstance(first, Paragraph):
        return Paragraph(joined(section.title, ": ", first.text), "quiet")
    inner = [block.title[-1:] for block in section.blocks if isinstance(block, Fold)]
    results = [joined(_DASH, text) for text in section.summary] + [text for text in inner if text[0].startswith(_DASH)]
    return Fold(without_links(joined(section.title, *results[:1])), section.blocks)


def _cell_name(cell: CellFactsRow) -> str:
    return ", ".join([f"{cell.precision} on {cell.device}", *series_conditions(cell)])


def _time_text(parts: Sequence[TimePartRow], before: Sequence[TimePartRow] | None) -> str:
    """Return the time of a cell and its change from another one: `3.26 ms, +22.1 % since the last good night`."""
    time_ms = sum(part.time_ms for part in parts)
    if not before:
        return in_ms(time_ms)
    change = percent_change(time_ms / sum(part.time_ms for part in before))
    return f"{in_ms(time_ms)}, {change} since the last good night"
