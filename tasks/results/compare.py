"""Compare two arms of a warehouse: find what two words name, match their cells, and compare each pair."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from devices.errors import InputError
from devices.suggest import did_you_mean
from tasks.bundle.model_names import find_model
from tasks.judge import comparison, pairs
from tasks.judge.arms import KINDS, SAME_ARM, Arm, ArmName, find_arms, id_prefix, name_of_folder
from tasks.judge.delegates import seconds_later
from tasks.judge.figures import MARGIN, percent_change, signed_percent
from tasks.judge.operators.cause_of_sessions import cause_from_rows
from tasks.judge.pairs import (
    SERIES,
    SINGLE,
    Matched,
    MeasuredCell,
    differing,
    have_same_content,
    match_cells,
    nights_differ_by,
)
from tasks.results.changes import INACCURATE, SLOWER, Comparison, SeriesChange, SideFacts, headline_parts, sessions_text
from tasks.results.gate import dirty_commit
from tasks.results.measurements.graph import graph_remarks
from tasks.results.reader import Reader
from tasks.results.text import in_percent, series_title

_LARGE_RATIO = 2.0  # above it, a change in percent is hard to read
_MAX_CAUSES = 20
_NO_ID = "-"
_NOT_INTERLEAVED = (
    "A and B were not measured interleaved: a device hotter or busier during one of them is part of the difference"
)


def list_arms(reader: Reader) -> dict[str, list[str]]:
    """Return the values of each kind of arm but cells and sessions, which ids name; nights and sweeps newest first."""
    values: dict[str, set[str]] = {kind: set() for kind in KINDS if kind not in SINGLE}
    for kind, value, *_ in reader.tuples("compare_names", a=_NO_ID, b=_NO_ID):
        values[kind].add(reader.names.get(value, value) if kind == "model" else value)
    ordered = {kind: sorted(names) for kind, names in values.items()}
    ordered["threads"].sort(key=int)
    for kind in ("night", "sweep"):
        ordered[kind].reverse()
    return ordered


def compare_arms(
    reader: Reader,
    a: str,
    b: str,
    sweep_id: str | None = None,
    only: Mapping[str, str | None] | None = None,
    margin: float = MARGIN,
) -> Comparison:
    """Compare what two words name: nights, sweeps, devices, models, precisions, variants, versions or ids.

    Models go by the names that pages show or by those of sweep files; `sweep_id` is that of `find_arms`. `only` gives
    the value of a field of the cells (None: any), `margin` is a fraction. Raises InputError if a word names nothing or
    several things, if no cell has a value of `only`, or if no cells match.
    """
    words = [reader.names.get(word, name_of_folder(word)) for word in (a, b)]
    names = [
        ArmName(kind, reader.names.get(value, value) if kind == "model" else value, *rest)
        for kind, value, *rest in reader.tuples("compare_names", a=id_prefix(words[0]), b=id_prefix(words[1]))
    ]
    return _compare(reader, find_arms(words[0], words[1], names, sweep_id), only, margin)


def compare_pair(reader: Reader, a: str, b: str) -> Comparison:
    """Compare two cells, named by their ids; raises InputError as `compare_arms`."""
    if a == b:
        raise InputError(SAME_ARM.format(kind=KINDS["cell"], value=a))
    return _compare(reader, (Arm("cell", a, None), Arm("cell", b, None)), None, MARGIN)


def _compare(reader: Reader, arms: tuple[Arm, Arm], only: Mapping[str, str | None] | None, margin: float) -> Comparison:
    sides = _filter_cells(reader, [_read_cells(reader, arm) for arm in arms], arms[0].kind, only or {})
    matched = match_cells(sides[0], sides[1], arms[0].kind)
    if not matched.pairs:
        of_a, of_b = (f"{len(side)} of {'AB'[at]} ({arms[at]})" for at, side in enumerate(sides))
        cause = f"no cell of the {of_a} matches one of the {of_b}"
        raise InputError(f"nothing to compare: {cause}; name two that have a series in common")
    changes = _changes(reader, matched.pairs, margin)
    return Comparison(
        a=str(arms[0]),
        b=str(arms[1]),
        changes=changes,
        headline=comparison_headline(changes, margin),
        remarks=[
            *(f"{series_title(each)}: {each.note}" for each in changes if each.note),
            *graph_remarks(reader, matched.pairs),
            *_remarks(changes, matched.pairs),
        ],
        uncompared=list(_uncompared(matched)),
    )


def comparison_headline(changes: Sequence[SeriesChange], margin: float) -> str:
    """Return the answer in one sentence, with the number of sessions and the margin (a fraction)."""
    return f"{'; '.join([*headline_parts(changes), sessions_text(changes)])}; margin {100 * margin:g} %."


def read_side_facts(reader: Reader, cells: Sequence[str]) -> dict[str, SideFacts]:
    """Return size of the .pte file, peak memory, accuracy, load time and commit of each cell, by its id."""
    rows = reader.tuples("side_facts", cells=list(cells)) if cells else []
    return {
        cell: SideFacts(
            cell=cell,
            pte_bytes=size,
            peak_memory_bytes=peak_memory_bytes,
            accuracy=accuracy,
            load_ms=load_ms,
            commit=commit and dirty_commit(commit, is_dirty),
        )
        for cell, size, peak_memory_bytes, accuracy, load_ms, commit, is_dirty in rows
    }


def read_file_commits(reader: Reader, pte_sha256: Sequence[str]) -> dict[str, str]:
    """Return the commit of the newest night that measured each .pte file, by its hash; only of files of nights."""
    rows = reader.tuples("file_commits", hashes=list(pte_sha256))
    return {sha256: dirty_commit(commit, is_dirty) for sha256, commit, is_dirty in rows}


def measured_fields(
    result: comparison.SideComparison | None,
    margin: float,
    inaccurate_sides: str = "",
    *,
    is_of_device: bool = False,
    night_noise: float | None = None,
    without_times: str = "",
) -> dict[str, Any]:
    """Return the fields of a SeriesChange that its times decide; `result` is None for sides `without_times`.

    Inaccurate outputs (`inaccurate_sides` is `A`, `B` or `A and B`) come first: the times are then no result, so the
    change is neither different nor a regression. A regression is slower by more than the margin (a fraction), with the
    complete interval above 1, and not because of the device. `night_noise` is the result of `nights_differ_by`.
    """
    names = ("ratio", "low", "high", "more_sessions", "superiority", "note")
    fields = {"nights_differ_by": night_noise, **{name: getattr(result, name) for name in names if result}}
    if inaccurate_sides:
        return {**fields, "word": INACCURATE, "answer": INACCURATE, "in_words": f"{INACCURATE}: {inaccurate_sides}"}
    if result is None:
        return {**fields, "word": without_times, "answer": None, "in_words": f"{without_times}: no times"}
    word: str = result.answer
    if result.answer == "different":
        word = f"{'device ' if is_of_device else ''}{SLOWER if (result.low or 0) > 1 else 'faster'}"
    return {
        **fields,
        "word": word,
        "answer": result.answer,
        "in_words": _in_words(result, word, night_noise),
        "is_regression": word == SLOWER and (result.ratio or 0) > 1 + margin,
    }


def _in_words(result: comparison.SideComparison, word: str, night_noise: float | None) -> str:
    """Return `slower 12.3 % (10.1 to 14.8 %)`, `not slower: at most 1.2 %` or `inconclusive: 14 more sessions ...`.

    A ratio above _LARGE_RATIO is one: `slower: 3.03 times as long (2.98 to 3.08)`.
    """
    if word != "unknown" and result.ratio is not None and result.low is not None and result.high is not None:
        if word == "same":
            return f"not slower: at most {percent_change(max(result.high, 1.0), result.low, result.high).lstrip('+')}"
        if result.ratio > _LARGE_RATIO:
            times = f"{result.ratio:.3g} times as long ({result.low:.3g} to {result.high:.3g})"
            return f"{word}: {times}"
        ends = sorted((result.low, result.high), key=lambda bound: abs(bound - 1))
        size, *bounds = (signed_percent(each, result.low, result.high).lstrip("+-") for each in (result.ratio, *ends))
        return f"{word} {size} % ({' to '.join(bounds)} %)"
    lacking = "over 1000 more sessions of each side"
    if result.ratio is None:
        lacking = "in which state the device was" if result.note else "a time of 0"
    elif result.more_sessions is not None:
        lacking = f"{result.more_sessions} more session{'' if result.more_sessions == 1 else 's'} of each side"
    elif night_noise is not None:
        lacking = f"nights differ by {in_percent(night_noise)} without a change"
    return f"inconclusive: {lacking}"


def _read_cells(reader: Reader, arm: Arm) -> list[MeasuredCell]:
    """Return the cells of an arm, with the names of models that pages show."""
    value = find_model(arm.value, reader.names) if arm.kind == "model" else arm.value
    cells = [MeasuredCell(*row) for row in reader.tuples("compare_cells", **{**asdict(arm), "value": value})]
    return [replace(cell, model=reader.names.get(cell.model, cell.model)) for cell in cells]


def _filter_cells(
    reader: Reader, sides: Sequence[list[MeasuredCell]], kind: str, only: Mapping[str, str | None]
) -> list[list[MeasuredCell]]:
    """Return the cells of each side with the values of `only`; raises InputError for a value that no cell has.

    A model is also named without what arms of this `kind` differ in, such as the delegate.
    """
    filtered = [list(side) for side in sides]
    for name, word in only.items():
        if word is None:
            continue
        value = reader.names.get(word, word) if name == "model" else word
        values = {each for side in sides for cell in side for each in _names(cell, name, kind)}
        if value not in values:
            hint = did_you_mean(value, values) or f"; they have {', '.join(sorted(values))}"
            raise InputError(f"--{name}: neither A nor B has a cell with {name} `{value}`{hint}")
        filtered = [[cell for cell in side if value in _names(cell, name, kind)] for side in filtered]
    return filtered


def _names(cell: MeasuredCell, name: str, kind: str) -> set[str]:
    """Return what `--name` may state of a cell."""
    return {cell.model, cell.subject(kind)} if name == "model" else {str(getattr(cell, name))}


def _changes(reader: Reader, pairs: Sequence[tuple[MeasuredCell, MeasuredCell]], margin: float) -> list[SeriesChange]:
    """Return the change of each pair; only the 20 largest have a cause, which takes a while, and none of a device."""
    facts = read_side_facts(reader, [cell.cell for pair in pairs for cell in pair])
    changes = [compare_cells(a, b, margin, facts) for a, b in pairs]
    different = [index for index, change in enumerate(changes) if change.word in (SLOWER, "faster")]
    different.sort(key=lambda index: -abs((changes[index].ratio or 1.0) - 1))
    for index in different[:_MAX_CAUSES]:
        a, b = pairs[index]
        # others have no common names of operators
        if (a.subject("runtime"), a.precision, a.delegate) == (b.subject("runtime"), b.precision, b.delegate):
            rows = reader.tuples("comparison_operators", cells_a=[a.cell], cells_b=[b.cell])
            changes[index] = replace(changes[index], cause=cause_from_rows(rows))
    return changes


def compare_cells(a: MeasuredCell, b: MeasuredCell, margin: float, facts: Mapping[str, SideFacts]) -> SeriesChange:
    """Return the change from cell `a` to `b`, without its cause; `margin` is a fraction, `facts` are by cell.

    Where the later night was judged without a change, the interval reaches as far as these nights are apart.
    """
    without_times = a.without_times or b.without_times
    night_noise, result = nights_differ_by(a, b), None
    if without_times is None:
        result = comparison.compare_sessions(a.times_ms, b.times_ms, margin, math.log1p(night_noise or 0))
        if night_noise is not None and result.answer == "different" and pairs.is_no_change(a, b):
            half_width = max(abs(math.log(bound or 1.0)) for bound in (result.low, result.high))
            night_noise = math.expm1(half_width)
            result = comparison.compare_sessions(a.times_ms, b.times_ms, margin, half_width)
    fields = measured_fields(
        result,
        margin,
        " and ".join(side for side, cell in (("A", a), ("B", b)) if cell.accuracy == INACCURATE),
        is_of_device=have_same_content(a, b),
        night_noise=night_noise,
        without_times=without_times or "",
    )
    return SeriesChange(
        **_series_fields(a, b),
        **fields,
        a=_side_facts(a, facts, result.time_a if result else None),
        b=_side_facts(b, facts, result.time_b if result else None),
        emulated=without_times is not None,
        changed=", ".join(differing(a, b)),
    )


def _uncompared(matched: Matched) -> Iterator[SeriesChange]:
    """Yield the cells without a counterpart, then those that a newer cell replaces."""
    for word, cells in (
        ("only in A", matched.only_a),
        ("only in B", matched.only_b),
        ("older cell of A", matched.older_a),
        ("older cell of B", matched.older_b),
    ):
        for cell in cells:
            side = _side_facts(cell, {}, None)
            change = SeriesChange(**_series_fields(cell, cell), word=word, answer=word, emulated=cell.emulated)
            yield replace(change, a=side) if word.endswith("A") else replace(change, b=side)


def _side_facts(cell: MeasuredCell, facts: Mapping[str, SideFacts], time_ms: float | None) -> SideFacts:
    side = facts.get(cell.cell, SideFacts(cell=cell.cell))
    return replace(side, sessions=len(cell.session_ids), sweep=cell.sweep_id, time_ms=time_ms)


def _remarks(changes: Sequence[SeriesChange], compared: Sequence[tuple[MeasuredCell, MeasuredCell]]) -> Iterator[str]:
    """Yield that sides were not interleaved: those of different sweeps, or of one that a later start resumed."""
    if differing_nights := [change.nights_differ_by for change in changes if change.nights_differ_by is not None]:
        least, most = in_percent(min(differing_nights)), in_percent(max(differing_nights))
        span = most if least == most else f"{least} to {most}, depending on the series,"
        yield f"{_NOT_INTERLEAVED}; nights differ by {span} without a change, which the intervals include"
        yield "to know more, measure both interleaved: `etfarm compare A.pte B.pte`"
    elif any(change.a.sweep != change.b.sweep for change in changes):
        yield _NOT_INTERLEAVED
    elif apart := sum(seconds_later(a.starts_s, b.starts_s) is not None for a, b in compared if not a.without_times):
        yield f"{_NOT_INTERLEAVED}; {apart} of {len(compared)} series, by a sweep that was resumed"


def _series_fields(a: MeasuredCell, b: MeasuredCell) -> dict[str, Any]:
    """Return the fields that name a pair, `one -> other` where its sides differ."""
    names = {}
    for name in SERIES:
        one, other = (getattr(cell, name) for cell in (a, b))
        if name == "device":
            one, other = (f"{c.device} ({c.without_times})" if c.emulated else c.device for c in (a, b))
        names[name] = one if one == other else f"{one} -> {other}"
    return names
