"""The report names the first layer whose values go wrong."""

import json

import pytest

from tests.fixtures.report import LAYERS, report_of
from tests.fixtures.warehouse import BundleMaker


@pytest.mark.parametrize(
    ("snr_db", "finding"),
    [
        # small differences of large values lose digits, which nothing after them needs
        ([130.0, 50.0, 128.0], "no sudden loss in three layers"),
        # a loss that stays, but above the limit of fp32, is rounding
        ([130.0, 61.0, 62.0], "no sudden loss in three layers"),
        ([130.0, 59.0, 62.0], "first fault at layer 1"),
        # less than 20 dB below the layer before
        ([75.0, 55.1, 55.0], "no sudden loss in three layers"),
        ([75.1, 55.0, 54.0], "first fault at layer 1"),
    ],
)
def test_a_loss_of_precision_is_a_fault_if_it_stays_and_is_below_the_limit(
    maker: BundleMaker, snr_db: list[float], finding: str
) -> None:
    layers = [{**json.loads(LAYERS)["layers"][0], "layer": at, "snr_db": each} for at, each in enumerate(snr_db)]
    files = {"layer_drift.json": json.dumps({"layers": layers}).encode()}
    maker.session(mode="numerics", variant="sme2_off", files=files)
    assert report_of(maker).contains(finding, "layers")


def test_a_layer_that_is_finite_in_the_fp32_model_alone_is_a_fault(maker: BundleMaker) -> None:
    [layer] = json.loads(LAYERS)["layers"]
    layers = [layer, {**layer, "layer": 1, "lost_fp32": 1}]
    maker.session(
        mode="numerics", variant="sme2_off", files={"layer_drift.json": json.dumps({"layers": layers}).encode()}
    )
    assert report_of(maker).contains("first fault at layer 1", "layers")
