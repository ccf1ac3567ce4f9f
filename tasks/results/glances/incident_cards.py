"""What the card of an incident shows: how large it is, since when, who and where, its history and the first step."""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from tasks.judge.commits import Commit
from tasks.judge.figures import LATENCY, METRICS
from tasks.results.addresses import series_page
from tasks.results.explanation import closer_command
from tasks.results.glances.histories import HistoryRow, read_histories
from tasks.results.incidents import IncidentRow, open_incidents, read_incidents
from tasks.results.reader import Reader
from tasks.results.series import NightRow, SeriesRow
from tasks.results.text import Link, Text, listed, numbered, with_code

_MAX_NAMED = 2
_FIRST_OPERATOR = re.compile(r"`[^`]*`[^,;]*")
"""The first operator of a cause, with what it adds."""


@dataclass(frozen=True)
class IncidentCard:
    incident: IncidentRow
    history: HistoryRow | None
    """Of the figure with the largest change; None without a night."""
    step: tuple[str, str]
    """What to do first, and the command for it."""

    @property
    def title(self) -> Text:
        """What is worse, linked to the series with the largest change."""
        row = self.incident
        return (Link(row.title, series_page(row.series_id, row.worst_device)),)

    @property
    def onset_at(self) -> int | None:
        """The place of the onset in the history; None if it is older."""
        nights, onset = self.history.nights if self.history else [], self.incident.onset
        is_older = bool(nights) and onset < nights[0]
        return None if is_older else next((at for at, night in enumerate(nights) if night >= onset), None)

    @property
    def change(self) -> tuple[str, str]:
        """The largest change and its interval: `+12.3 %`, `+10.1 to +14.8 %`; empty where there is none."""
        change, interval = self.incident.change_parts
        return change, f"{interval} {change.rpartition(' ')[2]}" if interval else ""

    @property
    def figures(self) -> str:
        """The figure before and after: `14.1 ms \u2192 19.6 ms`; empty if one is unknown."""
        row, text = self.incident, METRICS[self.incident.metric].text
        if row.baseline_value is None or row.value is None:
            return ""
        return f"{text(row.baseline_value)} \u2192 {text(row.value)}"

    @property
    def figures_of(self) -> str:
        """The series of the figures and of the change, as far as the title leaves it open: `fp16 on pixel-9`."""
        row = self.incident
        names = ((row.model, row.models), (row.worst_precision, row.precisions))
        return " ".join([*(name for name, every in names if len(every) > 1), "on", row.worst_device])

    @property
    def facts(self) -> list[tuple[str, Text]]:
        """Titles and texts: since when and on which series, who or what changed it, and where in the model."""
        row = self.incident
        ended = f", {row.state} on {row.closed_on}" if row.closed_on else ""
        facts: list[tuple[str, Text]] = [("Since", f"{row.onset}{ended}: {self._scope}")]
        if row.kind in ("accuracy", "failure"):
            facts.append(("Why", with_code(f"{self._share_of_reason}{row.reason}")))
        if row.kind == "device":
            facts.append(("Who", f"the device {row.worst_device}: neither models nor runner changed"))
        elif row.commits:
            facts.append(("Who", _commits(row.commits, row.models)))
        elif row.changed:
            facts.append(("Changed", with_code(row.changed)))
        first = _FIRST_OPERATOR.match(row.cause or "") if row.metric == LATENCY.name else None
        where = row.roof_text or row.memory or (first[0] if first else next(iter(row.graph), ""))
        return [*facts, ("Where", with_code(where))] if where else facts

    @property
    def _share_of_reason(self) -> str:
        """Of several series, how many sessions failed in all, and which series the reason is of."""
        row = self.incident
        if row.series == 1:
            return ""
        if row.failed_sessions is None:
            return f"one of {row.series:,} series, {self.figures_of}: "
        return f"{numbered(row.failed_sessions, 'session')} of {row.series:,} series failed; {self.figures_of}: "

    @property
    def _scope(self) -> str:
        row = self.incident
        what = [*([_few(row.models, "model")] if row.kind == "device" else []), listed(row.precisions)]
        scope = f"{' '.join(what)} on {_few(row.devices, 'device')}, {numbered(row.series, 'series', 'series')}"
        if not row.is_open or row.measured_series in (None, row.series):
            return scope
        return f"{scope}, {row.measured_series:,} of them measured in the newest night"

    @property
    def decisions(self) -> list[tuple[str, str]]:
        """The commands that accept and annotate the incident."""
        name = self.incident.incident_id
        accept = f"etfarm decisions accept {name} --reason TEXT"
        return [("Accept", accept), ("Annotate", f"etfarm decisions note TEXT --incident {name}")]


def read_open_cards(reader: Reader) -> list[IncidentCard]:
    """Return the cards of the open incidents, up to the newest night; a reader reads them once."""
    return reader.once(_read_open_cards)


def _read_open_cards(reader: Reader) -> list[IncidentCard]:
    newest = next((row.night for row in reader.rows(NightRow)), None)
    return read_cards(reader, {newest: open_incidents(read_incidents(reader))})[newest] if newest else []


def read_night_cards(reader: Reader, nights: Collection[date]) -> dict[date, list[IncidentCard]]:
    """Return the cards of the incidents that each of some nights shows, up to that night."""
    every = read_incidents(reader)
    return read_cards(reader, {night: [row for row in every if row.is_bad(night)] for night in nights})


def read_cards(reader: Reader, of_night: dict[date, list[IncidentRow]]) -> dict[date, list[IncidentCard]]:
    """Return the cards of incidents, with the histories up to their night."""
    figures = {_figure(row): None for rows in of_night.values() for row in rows}
    histories = read_histories(reader, figures, of_night)
    return {
        night: [IncidentCard(row, histories.get((_figure(row), night)), _first_step(reader, row)) for row in rows]
        for night, rows in of_night.items()
    }


def _figure(row: IncidentRow) -> tuple[str, str, str]:
    return row.series_id, row.worst_device, row.metric


def _first_step(reader: Reader, row: IncidentRow) -> tuple[str, str]:
    """Return what to do first about an incident, and the command for it."""
    model = reader.warehouse_names.get(row.model, row.model)
    match row.kind:
        case "device":
            return "Check the device", shlex.join(["etfarm", "devices", "probe", row.worst_device])
        case "failure":
            command = ["etfarm", "sql", "newest-failures", "--model", model, "--device", row.worst_device]
            return "See why it failed", shlex.join(command)
        case "accuracy":
            query = f"FROM cell_accuracy WHERE cell = '{row.cell}'"
            return "See its outputs", shlex.join(["etfarm", "sql", query])
        case _:
            nights = (row.last_good, row.night)
            return "Look closer", closer_command(model, row.worst_device, row.worst_precision, nights)


def _commits(commits: Sequence[Commit], models: Sequence[str]) -> str:
    """Return the commits whose subjects name one of the models, or else the newest: two, and how many more.

    `3f0c1a2 by Ada: Quantize the head; and 3 more`
    """
    likely = next(filter(None, (_naming(commits, names) for names in _spellings(models))), commits)
    listed_first = [f"{each['id'][:7]} by {each['author']}: {each['subject']}" for each in likely[:_MAX_NAMED]]
    left = len(commits) - len(listed_first)
    return "; ".join([*listed_first, *([f"and {left} more"] if left else [])])


def _spellings(models: Sequence[str]) -> Iterator[set[str]]:
    """Yield the names of models in letters and digits alone: in full, then without what distinguishes a size."""
    bases = [model.partition("@")[0] for model in models]
    yield {_simplified(base) for base in bases}
    yield {_simplified(base.partition("_")[0]) for base in bases}


def _naming(commits: Sequence[Commit], names: Collection[str]) -> list[Commit]:
    return [each for each in commits if any(name in _simplified(each["subject"]) for name in names)]


def _simplified(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()


def _few(names: Sequence[str], noun: str) -> str:
    """Return one or two names, or how many there are."""
    return listed(names) if len(names) <= _MAX_NAMED else numbered(len(names), noun)


def limit_to_series(cards: Iterable[IncidentCard], series: Iterable[SeriesRow]) -> list[IncidentCard]:
    """Return the cards of incidents that are open for any of some series."""
    keys = {row.series_id + row.device for row in series}
    return [card for card in cards if not keys.isdisjoint(card.incident.open_parts)]
