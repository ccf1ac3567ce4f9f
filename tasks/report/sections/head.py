"""The head of the report: what was measured, how it ended, and the few sentences that someone in a hurry needs."""

from collections.abc import Iterator
from itertools import groupby

from tasks.report.cells import precision_order, variant_word
from tasks.report.data import Answers, Row
from tasks.report.page import Code, Figure, Text
from tasks.report.sections.sme2 import sme2_sentence
from tasks.report.sections.time import FLAGGED_SHARE
from tasks.report.text import codes, counted, duration, in_ms, in_percent, joined, listed, whole_percent

_MOST_MODELS_NAMED = 5
_MOST_REASONS_NAMED = 3


def title(answers: Answers) -> str:
    """The name of the report."""
    return f"Sweep {answers.sweep['sweep_id']}"


def subtitle(answers: Answers) -> str:
    """Night and times of the sweep."""
    sweep = answers.sweep
    night = f"night of {sweep['night']:%Y-%m-%d}" if sweep["night"] else "night not known"
    if not sweep["started_at"]:
        return f"{sweep['name']}, {night}"
    took = duration((sweep["ended_at"] - sweep["started_at"]).total_seconds())
    return f"{sweep['name']}, {night}, measured from {sweep['started_at']:%Y-%m-%d %H:%M} UTC in {took}"


def figures(answers: Answers) -> list[Figure]:
    """How the sessions ended, in numbers."""
    sweep = answers.sweep
    return [
        Figure(f"{sweep['succeeded']:,}", "sessions succeeded"),
        Figure(f"{sweep['failed']:,}", "failed", "bad" if sweep["failed"] else "quiet"),
        Figure(f"{sweep['invalid']:,}", "invalid", "bad" if sweep["invalid"] else "quiet"),
        Figure(f"{sweep['discarded']:,}", "discarded by rule", "quiet"),
        Figure(f"{sweep['devices']:,}", "device" if sweep["devices"] == 1 else "devices"),
        Figure(f"{sweep['models']:,}", "model" if sweep["models"] == 1 else "models"),
    ]


def summary(answers: Answers) -> list[Text]:
    """Sentences computed from the answers; one that has nothing to say is left out."""
    return [
        _counts(answers),
        *_trouble(answers),
        *_latency(answers),
        *sme2_sentence(answers),
        *_time(answers),
        *_portable(answers),
        *_accuracy(answers),
    ]


def _counts(answers: Answers) -> Text:
    sweep = answers.sweep
    sessions = sum(sweep[key] for key in ("succeeded", "failed", "invalid", "discarded"))
    emulated = len({row["device"] for row in answers["devices"] if row["emulated"]})
    said = f" ({counted(emulated, 'of them', 'of them')} emulated)" if emulated else ""
    ended = [f"{sweep['succeeded']:,} succeeded"]
    for key, word in (("failed", "failed"), ("invalid", "invalid"), ("discarded", "discarded by rule")):
        verb = "" if key == "failed" else "was " if sweep[key] == 1 else "were "
        ended += [f"{sweep[key]:,} {verb}{word}"] if sweep[key] else []
    return (
        f"{counted(sessions, 'session').capitalize()} of {counted(sweep['models'], 'model')} ran on "
        f"{counted(sweep['devices'], 'device')}{said}: {listed(ended)}."
    )


def _trouble(answers: Answers) -> Iterator[Text]:
    standing = [row for row in answers["failures"] if not row["superseded"]]
    if standing:
        kinds = sorted({(row["reason_code"] or "unknown reason", row["device"]) for row in standing})
        parts: list[str] = []
        for position, (reason_code, device) in enumerate(kinds[:_MOST_REASONS_NAMED]):
            parts += [", "] if position else []
            parts += [Code(reason_code), f" on {device}"]
        rest = " and more" if len(kinds) > _MOST_REASONS_NAMED else ""
        yield joined("Without a result to this day: ", tuple(parts), f"{rest}.")


def _latency(answers: Answers) -> Iterator[Text]:
    """The plainest cell of each model on the device that measured most."""
    rows = [row for row in answers["latency"] if row["median_ms"] is not None]
    if not rows:
        return
    devices = sorted({row["device"] for row in rows})
    device = max(devices, key=lambda name: sum(row["sessions"] for row in rows if row["device"] == name))
    plain = min((row for row in rows if row["device"] == device), key=_plainness)
    alike = [row for row in rows if row["device"] == device and _plainness(row) == _plainness(plain)]
    alike = sorted({row["model"]: row for row in alike}.values(), key=lambda row: row["median_ms"])
    parts: list[str] = []
    for position, row in enumerate(alike[:_MOST_MODELS_NAMED]):
        parts += [", "] if position else []
        parts += [f"{in_ms(row['median_ms'])} for ", Code(row["model"])]
    rest = f" and {len(alike) - _MOST_MODELS_NAMED} more" if len(alike) > _MOST_MODELS_NAMED else ""
    yield joined(f"{_conditions(plain)} a run takes ", tuple(parts), f"{rest} (medians).")


def _plainness(row: Row) -> tuple[int, int, bool]:
    return precision_order(row["precision"]), row["threads"] or 0, row["variant"] != "sme2_off"


def _conditions(row: Row) -> str:
    parts = [row["precision"]] + ([counted(row["threads"], "thread")] if row["threads"] is not None else [])
    sme2 = variant_word(row["variant"])
    return f"On {row['device']} ({', '.join(parts + ([f'SME2 {sme2}'] if sme2 != 'unknown' else []))})"


def _time(answers: Answers) -> Iterator[Text]:
    """Which category takes the most, by model, over all its cells."""
    largest: dict[str, list[tuple[str, float]]] = {}
    for model, group in groupby(answers["categories"], key=lambda row: row["model"]):
        totals: dict[str, float] = {}
        for row in group:
            totals[row["category"]] = totals.get(row["category"], 0.0) + row["share"]
        cells = sum(totals.values())
        category = max(totals, key=lambda name: totals[name])
        largest.setdefault(category, []).append((model, totals[category] / cells))
    if largest:
        parts = [
            joined(
                f"{category} in ", codes([model for model, _ in models]), f" ({_span([share for _, share in models])})"
            )
            for category, models in sorted(largest.items(), key=lambda entry: -len(entry[1]))
        ]
        yield joined("Most of the time goes to ", *_semicolons(parts), ".")


def _span(shares: list[float]) -> str:
    low, high = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _semicolons(parts: list[Text]) -> Iterator[Text]:
    for position, part in enumerate(parts):
        if position:
            yield "; "
        yield part


def _portable(answers: Answers) -> Iterator[Text]:
    rows = answers["portable"]
    worst: dict[str, Row] = {}
    for row in rows:
        if row["share"] > FLAGGED_SHARE and row["share"] > worst.get(row["model"], {"share": 0})["share"]:
            worst[row["model"]] = row
    if worst:
        named = sorted(worst.values(), key=lambda row: -row["share"])
        parts: list[str] = []
        for position, row in enumerate(named[:_MOST_MODELS_NAMED]):
            parts += [", "] if position else []
            parts += [Code(row["model"]), f" {row['precision']} ({in_percent(row['share'])})"]
        yield joined(
            f"Portable operators take more than {whole_percent(FLAGGED_SHARE)} of the time in ", tuple(parts), "."
        )
    elif rows:
        yield f"Portable operators take no more than {whole_percent(FLAGGED_SHARE)} of the time of any model."


def _accuracy(answers: Answers) -> Iterator[Text]:
    rows = answers["accuracy"]
    mismatched = sorted({row["model"] for row in rows if row["nonfinite_mismatches"]})
    measured = [row for row in rows if row["max_abs_error"] is not None]
    if measured:
        worst = max(measured, key=lambda row: row["max_abs_error"])
        yield (
            f"The largest distance of an output from eager's is {worst['max_abs_error']:.1e} (",
            Code(worst["model"]),
            f" {worst['precision']} on {worst['device']}).",
        )
    if mismatched:
        yield joined("Outputs that are finite on one side only: ", codes(mismatched), ".")
