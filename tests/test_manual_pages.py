"""The pages of the manual, as `make docs` builds them."""

import subprocess
import sys

import pytest

from tests.fixtures.browser import chromium_started, violations
from tests.fixtures.needs import needs
from tests.fixtures.paths import ROOT


@pytest.mark.thorough
def test_every_page_of_the_manual_is_accessible() -> None:
    needs("chromium")
    options = ("--quiet", "--fail-on-warning", "-c", "docs", "-d", "build/doctrees", ".", "build/docs")
    subprocess.run([sys.executable, "-m", "sphinx", *options], cwd=ROOT, check=True)
    broken = []
    with chromium_started() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        pages = sorted((ROOT / "build/docs").rglob("*.html"))
        for path in pages:
            page.goto(path.as_uri())
            broken += [(path.name, *violation) for violation in violations(page)]
    assert len(pages) > 40
    assert broken == []
