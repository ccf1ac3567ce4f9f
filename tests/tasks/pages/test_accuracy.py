"""The sections on accuracy and layers: the worst figures of outputs, and the first layer whose values go wrong."""

import json
from collections.abc import Callable

import pytest

from tests.fixtures.report import LAYERS, MS
from tests.fixtures.warehouse import COMPARED
from tests.tasks.pages.conftest import Sweep, with_sessions

DASH = "\u2013"


def layers(*changes: dict[str, float]) -> Callable[[Sweep], None]:
    [layer] = json.loads(LAYERS)["layers"]
    written = [{**layer, "layer": number, **change} for number, change in enumerate(changes)]
    files = {"layer_drift.json": json.dumps({"layers": written}).encode()}
    return lambda sweep: sweep.session(mode="numerics", files=files)


def snr(*figures: float) -> Callable[[Sweep], None]:
    return layers(*({"snr_db": each} for each in figures))


@pytest.mark.parametrize(
    ("sweep", "result"),
    [
        # small differences of large values lose digits, which nothing after them needs
        (snr(130.0, 50.0, 128.0), "no sudden loss in three layers"),
        # a loss that stays, but above the limit of fp32, is rounding
        (snr(130.0, 61.0, 62.0), "no sudden loss in three layers"),
        (snr(130.0, 59.0, 62.0), "first fault at layer 1"),
        # less than 20 dB below the layer before
        (snr(75.0, 55.1, 55.0), "no sudden loss in three layers"),
        (snr(75.1, 55.0, 54.0), "first fault at layer 1"),
        # finite in the fp32 model alone
        (layers({}, {"lost_fp32": 1}), "first fault at layer 1"),
    ],
    indirect=["sweep"],
)
def test_a_loss_of_precision_is_a_fault_if_it_stays_and_is_below_the_limit(sweep: Sweep, result: str) -> None:
    section = sweep["layers"]
    assert f"toy \u00b7 fp32 \u2014 {result}" in section.words
    sentence = "Numbers of toy fp32 on host part from eager PyTorch at encoder (layer 1)."
    assert section.summary == (sentence if result.startswith("first") else "")


def inaccurate_with_sme2(sweep: Sweep) -> None:
    limited = COMPARED | {"max_abs_error": 0.5, "cosine": 0.5, "min_snr_db": 10.0}
    good = [{**limited, "reference": "eager", "snr_db": 40.0, "is_inaccurate": False}]
    bad = [*good, {**limited, "reference": "fp32", "snr_db": -1.5, "is_inaccurate": True}]
    sweep.session([10 * MS], variant="sme2_off", accuracy=good)
    sweep.session([5 * MS], variant="sme2_on", accuracy=bad)
    sweep.session([5 * MS], model__name="prebuilt", model__precision="as_is", model__pte_sha256="prebuilt")


@with_sessions(inaccurate_with_sme2)
def test_inaccurate_outputs_are_marked_wherever_their_times_are_shown(sweep: Sweep) -> None:
    accuracy, sme2 = sweep["accuracy"], sweep["sme2"]
    assert accuracy.column("Compared with") == ["same precision", "same precision", "fp32"]
    assert accuracy.column("SNR") == ["40.0", "40.0", "-1.5"]
    assert accuracy.column("Result") == ["accurate", "accurate", "inaccurate"]
    assert accuracy.column("Result", table=1) == ["not compared"]
    assert accuracy.summary.startswith("Inaccurate outputs: toy fp32 on host with SME2 on")
    assert "inaccurate outputs with SME2" in sme2.tables[0][1]
    assert "times as fast" not in sme2.summary
