"""A report on paper: few pages, which say what they leave out."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.needs import needs
from tests.fixtures.report import MS, report_of
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, MEAN, BundleMaker

pytestmark = pytest.mark.thorough
MAX_PAGES = 5
MODELS, PRECISIONS = ("toy_cnn", "mobilenet_v2", "mobilevit_xs", "bert_tiny"), ("fp32", "fp16")


def measure_smoke(maker: BundleMaker) -> None:
    """What deployments/sweeps/smoke.yaml measures on two devices, one with SME2; one session failed."""
    for model in MODELS:
        for precision in PRECISIONS:
            for device, variant in (("phone", "sme2_off"), ("phone", "sme2_on"), ("board", "sme2_off")):
                name = CONVOLUTION_SME2 if variant == "sme2_on" else CONVOLUTION
                runs = [(20 * MS, {name: 12 * MS, MEAN: 4 * MS})] * 3
                cell: dict[str, Any] = {
                    "model__name": model,
                    "model__precision": precision,
                    "device__name": device,
                }
                for repetition in range(3):
                    maker.session(runs, repetition=repetition, variant=variant, **cell)
    failed: dict[str, Any] = {
        "status": "failed",
        "reason_code": "runner_crashed",
        "reason": "it fell",
        "log_tail": "last words",
    }
    maker.session(model__name="toy_cnn", device__name="board", repetition=9, **failed)


def test_the_report_of_the_smoke_sweep_is_at_most_five_pages_and_names_what_is_not_on_them(maker: BundleMaker) -> None:
    needs("chromium")
    from playwright.sync_api import sync_playwright

    measure_smoke(maker)
    report = report_of(maker)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(Path(report.path).as_uri())
        printed = page.pdf(format="A4")
        left_out = page.locator(".unprinted").text_content() or ""
        # what a reader opens is printed, too
        for title in ("provenance", "operators", "modules"):
            page.locator(f"#{title} summary").first.click()
        longer = page.pdf(format="A4")
        still_left_out = page.locator(".unprinted").text_content() or ""
        browser.close()
    assert 1 <= pages_in(printed) <= MAX_PAGES
    assert pages_in(printed) < pages_in(longer)
    assert ("Where the figures come from" in left_out, "report.html" in left_out) == (True, True)
    assert "Where the figures come from" not in still_left_out


def pages_in(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))
