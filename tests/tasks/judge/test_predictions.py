"""What a cell would take if its operators changed, and what the next night answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from sql.question import questions
from sql.warehouse import open_read_only
from tasks.judge import predictions
from tasks.judge.operators import measured_pairs
from tasks.judge.operators.measured_pairs import MeasuredPair, Ratio, measured_ratio
from tasks.judge.predictions import predict_delegated, predict_peers
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.nights import fields_of, night_of_operators
from tests.fixtures.roofs import KEEPDIM, X86_64, roof
from tests.fixtures.warehouse import CONVOLUTION, MEAN, BundleMaker

BASIS = "mean_keepdim on x86_64, 2026-11-28"
CELL: dict[str, Any] = {"cell_id": 1, "series_id": "s", "device": "host", "night": None}
CELL |= {"cell_ms": 4.0, "low_ms": 3.9, "high_ms": 4.2, "noise_floor": None}


@pytest.fixture(autouse=True)
def _pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one rewrite, measured where the operator took 10 and where it took 1,000 microseconds."""
    small, large = Ratio(0.8, 0.7, 0.9, BASIS), Ratio(0.3, 0.2, 0.4, BASIS)
    pairs = (MeasuredPair(10.0, small), MeasuredPair(1000.0, large))
    monkeypatch.setattr(measured_pairs, "_table", lambda: {("mean_keepdim", "fp32", "x86_64"): pairs})


def portable_row(**changes: Any) -> dict[str, Any]:
    row = CELL | {"precision": "fp32", "platform": "linux-x86_64", "threads": 1, "exported": KEEPDIM}
    return row | {"portable": [{"operator": "mean", "calls": 1.0, "time_ms": 1.0}]} | changes


@pytest.mark.parametrize(
    ("operator_us", "expected"),
    [(300.0, (0.3, 0.2, 0.9)), (20.0, (0.8, 0.2, 0.9)), (1.0, (0.8, 0.2, 0.9))],
)
def test_the_nearest_size_gives_the_ratio_and_the_sizes_around_it_the_range(
    operator_us: float, expected: tuple[float, float, float]
) -> None:
    ratio = measured_ratio("mean_keepdim", "fp32", "x86_64", operator_us)
    assert ratio
    assert (ratio.ratio, ratio.low, ratio.high) == expected
    assert measured_ratio("mean_keepdim", "fp32", "aarch64", operator_us) is None


def test_a_rewrite_replaces_the_time_of_the_operator_by_its_measured_ratio() -> None:
    [prediction] = predict_delegated(portable_row())
    # 4 ms - 1 ms + 0.3 ms; the ratio may be 0.1 less or 0.6 more, and the cell 0.1 ms less or 0.2 ms more
    assert prediction["predicted_ms"] == pytest.approx(3.3)
    assert (prediction["low_ms"], prediction["high_ms"]) == pytest.approx((3.3 - 0.02**0.5, 3.3 + 0.4**0.5))
    assert (prediction["kind"], prediction["operators"], prediction["basis"]) == ("delegated", ["mean"], BASIS)
    # with a noise floor above the interval of the cell, that counts
    [noisy] = predict_delegated(portable_row(noise_floor=0.1))
    assert noisy["high_ms"] - 3.3 == pytest.approx((0.6**2 + 0.33**2) ** 0.5)
    # and on two threads the part of the delegate may halve
    [threaded] = predict_delegated(portable_row(threads=2, low_ms=None))
    assert threaded["low_ms"] == pytest.approx(3.3 - 0.2)


@pytest.mark.parametrize(
    "changes",
    [
        {"platform": "android-arm64"},
        {"precision": "fp16"},
        {"portable": [{"operator": "mean", "calls": 1.0, "time_ms": 0.1}]},
        {"exported": [{"operator": "aten.mean.dim", "reason": "another reason"}]},
    ],
    ids=["processor", "precision", "light", "no advice"],
)
def test_without_a_measured_pair_for_a_heavy_operator_there_is_no_prediction(changes: dict[str, Any]) -> None:
    assert list(predict_delegated(portable_row(**changes))) == []


def test_no_time_below_zero_is_predicted() -> None:
    # given a rewrite that also saves half a millisecond around an operator of 1 ms
    saves = Ratio(-0.5, -0.6, 0.4, BASIS)
    pairs = {("mean_keepdim", "fp32", "x86_64"): (MeasuredPair(1000.0, saves),)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measured_pairs, "_table", lambda: pairs)
        [prediction] = predict_delegated(portable_row(cell_ms=1.55, low_ms=None, high_ms=None))
        assert prediction["predicted_ms"] == pytest.approx(0.05)
        assert prediction["low_ms"] == 0.0
        assert list(predict_delegated(portable_row(cell_ms=1.4, low_ms=None, high_ms=None))) == []


def test_an_operator_is_predicted_at_the_share_of_the_roof_of_others_of_its_kind() -> None:
    row = CELL | {"operator": "fc1", "time_ms": 1.2, "roof_ms": 0.2, "peers": 3, "shares": [0.4, 0.5, 0.8]}
    [prediction] = predict_peers(row)
    # 0.2 ms at half of the roof are 0.4 ms, 0.8 ms less than now
    assert prediction["predicted_ms"] == pytest.approx(3.2)
    assert prediction["changed_ms"] == pytest.approx(0.5)
    # and nothing is predicted of an operator that is as near, or of one with few peers
    assert list(predict_peers(row | {"time_ms": 0.5})) == []
    assert list(predict_peers(row | {"peers": 2})) == []


MS = 1_000_000
LAYER = "Fully Connected (NC, F32) GEMM #"


def etdump_of_delegates(delegates: list[dict[int, int]], begins_ns: int) -> bytes:
    now, runs = begins_ns, []
    for _ in range(4):
        began, events = now, []
        for instruction, layers in enumerate(delegates):
            start = now
            for number, time_ms in layers.items():
                end = now + time_ms * MS
                events.append(Profile(text=f"{LAYER}{number}", start=now, end=end, instruction=instruction))
                now = end
            events.append(Profile("DELEGATE_CALL", start, now, instruction=instruction))
        runs.append(Run([*events, Profile(METHOD, began, now)]))
    return build_etdump(runs)


def night_of_delegates(maker: BundleMaker, delegates: list[dict[int, int]], idle: int = 0) -> None:
    """Write a night of linear layers in several delegates, by number in milliseconds, each 1 ms at the roof.

    The last `idle` ones of eight have no work.
    """
    works = [[10 * MS, 8]] * (8 - idle) + [[0, 0]] * idle
    nodes = [{"kind": "XNNFullyConnected", "sources": [], "work": work} for work in works]
    calls = [
        {"chain": 0, "instruction": at, "backend": "XnnpackBackend", "sources": [], "nodes": nodes[: len(layers)]}
        for at, layers in enumerate(delegates)
    ]
    content = {"version": 1, "modules": [], "sources": [], "methods": {"forward": calls}}
    for number in range(8):
        etdump = etdump_of_delegates(delegates, number * 1000 * MS)
        files = {"sources.json": json.dumps(content).encode(), "model.etdump": etdump}
        maker.session([MS] * 3, repetition=number, files=files, **fields_of(1))
        roof(maker, 2, repetition=number, **fields_of(1))


def test_an_operator_whose_name_occurs_in_two_delegates_is_not_predicted(tmp_path: Path) -> None:
    # given two delegates, of which each numbers its operators from 1
    maker = BundleMaker(tmp_path)
    night_of_delegates(maker, [{1: 8, 2: 2, 3: 2, 4: 2, 5: 6}, {1: 8, 2: 2}])
    maker.load()
    # then nothing could tell which of two is meant, and the one whose name is its own takes 2 ms instead of 6
    columns = "operators, time_ms, predicted_ms"
    assert maker.ask(f"SELECT {columns} FROM what_if") == [([f"{LAYER}5"], 30.0, 26.0)]


def test_operators_without_work_are_no_peers(tmp_path: Path) -> None:
    maker = BundleMaker(tmp_path)
    night_of_delegates(maker, [{1: 8, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 2, 8: 2}], idle=5)
    maker.load()
    assert maker.ask("SELECT count(*) FROM operator_roofline WHERE share = 0") == [(5,)]
    assert maker.ask("SELECT count(*) FROM what_if") == [(0,)]


def test_the_next_night_with_another_program_answers_a_prediction(tmp_path: Path) -> None:
    maker = BundleMaker(tmp_path)
    about = X86_64 | {"model__portable": KEEPDIM}
    slow, fast = {CONVOLUTION: 3_000_000, MEAN: 1_000_000}, {CONVOLUTION: 3_300_000}
    for model in ("rewritten", "other"):
        for day in (1, 2):
            night_of_operators(maker, day, slow, model__name=model, **about)
    night_of_operators(maker, 3, fast, model__name="rewritten", model__pte_sha256="p2", **X86_64)
    night_of_operators(maker, 3, slow, model__name="other", model__pte_sha256="p2", **about)
    maker.load()
    answers = (
        "SELECT night::VARCHAR, round(time_ms, 3), round(predicted_ms, 3), round(measured_ms, 3), held FROM what_if"
    )
    # only the last night of the first program has a prediction, which the night after it answers
    assert maker.ask(f"{answers} WHERE model = 'rewritten'") == [("2026-11-02", 4.0, 3.3, 3.3, True)]
    # where the operator is still portable there is no answer, and the newest night has a prediction, too
    unanswered = [("2026-11-02", 4.0, 3.3, None, None), ("2026-11-03", 4.0, 3.3, None, None)]
    assert maker.ask(f"{answers} WHERE model = 'other' ORDER BY night") == unanswered
    # and the named question leaves out the one about a program that was replaced
    question = questions()["what-if"]
    with open_read_only(maker.warehouse) as connection:
        rows = connection.execute(question.text, dict.fromkeys(question.parameters)).fetchall()
    assert [row[0] for row in rows] == ["nightly-2026-11-03", "nightly-2026-11-02"]


def test_a_prediction_stays_as_it_was_made_until_its_cell_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = BundleMaker(tmp_path)
    about = X86_64 | {"model__portable": KEEPDIM}
    run = [(4_000_000, {CONVOLUTION: 3_000_000, MEAN: 1_000_000})] * 3
    for number in range(4):
        maker.session(run, repetition=number, **fields_of(1), **about)
    maker.load()
    monkeypatch.setattr(predictions, "rule_sha256", lambda: "another rule")
    rules = "SELECT rule FROM prediction JOIN cell USING (cell_id) ORDER BY cell.night"
    [(first,)] = maker.ask(rules)
    # when another night of another program is loaded, with another rule
    night_of_operators(maker, 2, {CONVOLUTION: 3_000_000, MEAN: 900_000}, model__pte_sha256="p2", **about)
    maker.load()
    assert maker.ask(rules) == [(first,), ("another rule",)]
    # and further sessions of the first cell make it again
    maker.session(run, repetition=4, **fields_of(1), **about)
    maker.load()
    assert maker.ask(rules) == [("another rule",), ("another rule",)]
