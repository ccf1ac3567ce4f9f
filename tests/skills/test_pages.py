"""Pages of docs that make what they need: their files are written and their commands run, in order."""

import re
from pathlib import Path

import pytest

from tests.fixtures.paths import ROOT
from tests.fixtures.voice import write_voice
from tests.fixtures.warehouse import BundleMaker
from tests.skills.place import Place
from tests.skills.skill import missing

# A file is named before its block: "Write `ask.py`:". A block of commands may have what it prints after it.
_FILE = r"`(?P<name>[\w.]+\.(?:py|yaml))`[^`]*:\n\n```(?:python|yaml)\n(?P<content>.*?)^```\n"
_COMMANDS = r"^```sh\n(?P<script>.*?)^```\n(?:\n?```text\n(?P<printed>.*?)^```\n)?"
_STEP = re.compile(f"{_FILE}|{_COMMANDS}", re.DOTALL | re.MULTILINE)


def follow(page: str, place: Place) -> None:
    """Do what a page of docs states; fail with the commands that end badly or do not print what it states."""
    for step in _STEP.finditer((ROOT / "docs" / page).read_text(encoding="utf-8")):
        if step["name"]:
            (place.folder / step["name"]).write_text(step["content"], encoding="utf-8")
            continue
        code, printed = place.run(step["script"])
        assert code == 0, f"{page}: {step['script']}\n{printed}"
        line = missing((step["printed"] or "").splitlines(), printed)
        assert line is None, f"{page}: not printed: {line}\n{printed}"


@pytest.mark.skill
@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.timeout(3600)
def test_the_page_of_language_models_is_followed_from_weights_to_tokens_per_second(tmp_path: Path) -> None:
    follow("llm.md", Place(tmp_path / "place"))


@pytest.mark.thorough
def test_the_script_that_asks_etfarm_mcp_prints_what_the_page_states(tmp_path: Path) -> None:
    # given a farm with the model and the nights of the page
    place = Place(tmp_path / "place")
    maker = BundleMaker(place.folder / "var")
    write_voice(maker)
    maker.warehouse.unlink()
    assert place.run("etfarm warehouse load")[0] == 0
    follow("mcp.md", place)
