"""What the time of a cell would be if one thing about its operators changed, and how far off that may be.

`delegated`: portable operators are rewritten so that XNNPACK executes them, as measured pairs of the table of advice
show. `peers`: an operator comes as near to the roof of the device as the others of its kind in the cell.

The view what_if has what was measured after the change.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from devices.platform import PLATFORM_FACTS
from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.judge.operators.advice import HEAVY_SHARE, Advice, advice_for, operator_word
from tasks.judge.operators.measured_pairs import RATIOS, measured_ratio

MIN_PEERS = 3
"""Other operators of the same kind that an operator is compared with."""
_QUERIES = {file.name: file.text for file in sql_files("loading")}
# Planning the query of peers takes longer than a load should that measured no roof.
_HAS_ROOF = """
SELECT count(*) > 0
FROM cell
WHERE sweep_id IN (SELECT sweep_id FROM cell JOIN cell_to_predict USING (cell_id)) AND _is_roof(model)
"""
_Row = dict[str, Any]


def refresh_predictions(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the predictions of the series in `series_to_judge` that lack them; remove those of older cells."""
    connection.execute(_QUERIES["cells_to_predict"])
    if connection.execute("SELECT count(*) FROM cell_to_predict").fetchall() == [(0,)]:
        return
    predictions = []
    rules = {"portable_to_predict": predict_delegated}
    if connection.execute(_HAS_ROOF).fetchall() == [(True,)]:
        rules["peers_to_predict"] = predict_peers
    for query, predict in rules.items():
        rows = connection.execute(_QUERIES[query], {"heavy_share": HEAVY_SHARE}).to_arrow_table().to_pylist()
        predictions += [prediction for row in rows for prediction in predict(row)]
    insert_rows(connection, "prediction", predictions)


def predict_delegated(row: Mapping[str, Any]) -> Iterator[_Row]:
    """Yield a prediction for each rewrite of heavy portable operators of a cell, a row of portable_to_predict."""
    names = [each["operator"] for each in (row["exported"] or row["portable"])]
    reasons: dict[str, list[str]] = defaultdict(list)
    for each in row["exported"]:
        reasons[operator_word(each["operator"])].append(each["reason"] or "")
    by_entry: dict[Advice, list[_Row]] = defaultdict(list)
    for operator in row["portable"]:
        reason = "; ".join(reasons[operator_word(operator["operator"])])
        if entry := advice_for(operator["operator"], reason, names):
            by_entry[entry].append(operator)
    facts = PLATFORM_FACTS.get(row["platform"])
    for entry, operators in by_entry.items():
        time_ms, calls = (sum(each[name] for each in operators) for name in ("time_ms", "calls"))
        if facts is None or not calls or time_ms < HEAVY_SHARE * row["cell_ms"]:
            continue
        ratio = measured_ratio(entry.name, row["precision"], facts.processor, 1e3 * time_ms / calls)
        if ratio is None:
            continue
        # Pairs run with one thread; a delegate uses all, a portable operator one.
        low = min(ratio.low, ratio.low / row["threads"])
        after_ms = (time_ms * low, time_ms * ratio.ratio, time_ms * ratio.high)
        about = {"kind": "delegated", "operators": [each["operator"] for each in operators], "changed_ms": 0.0}
        prediction = _prediction(row, time_ms, after_ms) | about | {"basis": ratio.basis}
        if prediction["predicted_ms"] > 0:  # the ratio of a rewrite that saves more than the operator is below 0
            yield prediction


def predict_peers(row: Mapping[str, Any]) -> Iterator[_Row]:
    """Yield a prediction for a heavy operator that is further from the roof than its peers.

    `row` is one of peers_to_predict: `shares` are the quartiles and the median of the peers' parts of the
    roof.
    """
    low, middle, high = row["shares"]
    after_ms = (row["roof_ms"] / high, row["roof_ms"] / middle, row["roof_ms"] / low)
    if row["peers"] >= MIN_PEERS and after_ms[2] < row["time_ms"]:
        about = {"kind": "peers", "operators": [row["operator"]], "changed_ms": after_ms[2]}
        yield _prediction(row, row["time_ms"], after_ms) | about | {"basis": f"{row['peers']} peers"}


def _prediction(row: Mapping[str, Any], operator_ms: float, after_ms: Sequence[float]) -> _Row:
    """Return the time of the cell of which a part takes low, middle and high `after_ms` instead of `operator_ms`.

    The interval adds what the part may be off, and what the time of the cell may: its own interval, or what the series
    moves by without a change. They are independent, so their squares add up.
    """
    low_after, middle_after, high_after = after_ms
    cell_ms = row["cell_ms"]
    predicted_ms = cell_ms - operator_ms + middle_after
    moves_ms = (row["noise_floor"] or 0.0) * predicted_ms
    below_ms = max(cell_ms - (row["low_ms"] or cell_ms), moves_ms)
    above_ms = max((row["high_ms"] or cell_ms) - cell_ms, moves_ms)
    return {
        **{name: row[name] for name in ("cell_id", "series_id", "device", "night")},
        "operator_ms": operator_ms,
        "cell_ms": cell_ms,
        "predicted_ms": predicted_ms,
        "low_ms": max(predicted_ms - math.hypot(middle_after - low_after, below_ms), 0.0),
        "high_ms": predicted_ms + math.hypot(high_after - middle_after, above_ms),
        "rule": rule_sha256(),
    }


@cache
def rule_sha256() -> str:
    """Return the first 16 digits of the SHA-256 of this rule and its tables."""
    files = (Path(__file__), RATIOS, RATIOS.with_name("measured_pairs.py"), RATIOS.with_name("advice.csv"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
