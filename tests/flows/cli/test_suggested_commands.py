"""What a page suggests works: each command that reads the warehouse is run."""

import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from sql.warehouse import open_read_only
from tasks.pages.site.site import Site
from tasks.results.reader import Reader
from tests.fixtures.command import Command
from tests.fixtures.nights import failed_night_of, night_of
from tests.fixtures.pages import Pages
from tests.fixtures.warehouse import INACCURATE, BundleMaker

READING = ("compare", "explain", "sql", "trace", "verdicts")
NEW, FILE, LOST = "wrong", "./own.py:make", "team.lost:make"
STATED = f"{LOST}@export=1.4.1"
SAME, NIGHTS = 5, 7  # nights in which nothing changed, and all


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    """A model that got slower, one that got faster, four that cannot be exported, and one with inaccurate outputs that
    no earlier night has.
    """
    maker = BundleMaker(tmp_path_factory.mktemp("suggested"))
    for day in range(1, NIGHTS + 1):
        for model, factor in (("slow", 1.2), ("fast", 0.8), ("broken", 1.0), (FILE, 1.0), (LOST, 1.0), (STATED, 1.0)):
            changes: dict[str, Any] = {"model__name": model, "model__pte_sha256": "p2" if day > SAME else "p1"}
            changes |= {"model__versions__executorch": "1.4.1"} if model == STATED else {}
            if model in ("broken", FILE, LOST, STATED) and day == NIGHTS:
                failed_night_of(maker, day, model__name=model)
            else:
                night_of(maker, day, factor if day > SAME else 1.0, **changes)
    night_of(maker, NIGHTS, model__name=NEW, accuracy=INACCURATE)
    assert maker.load().refused == []
    return maker


@pytest.fixture(scope="module")
def suggested(maker: BundleMaker) -> dict[str, list[str]]:
    """The commands of the page of the newest night and of those of all models, by page."""
    with open_read_only(maker.warehouse) as connection:
        pages = Pages(Site(Reader(connection), "x"))
        newest = f"nights/{pages.site.nights[0].night}.html"
        names = ["index.html", newest, *(f"models/{model}.html" for model in ("slow", "fast", "broken", NEW))]
        html = {name: pages.html(name) for name in names}
    return {name: re.findall(r"<code[^>]*>(etfarm [^<]*)</code>", text) for name, text in html.items()}


def test_the_export_that_failed_is_named_by_the_command_that_repeats_it(command: Command, maker: BundleMaker) -> None:
    explained = command("explain", LOST, "--warehouse", maker.warehouse).out
    assert f"`etfarm model export {LOST} --precision fp32`" in explained
    # but no command is named where the warehouse has only the name of a model, or a file beside an unknown sweep file,
    # or for another version of ExecuTorch, with which the command does not export
    for name in ("broken", FILE, STATED):
        explained = command("explain", name, "--warehouse", maker.warehouse).out
        assert "run the sweep again" in explained
        assert "model export" not in explained


def test_commands_that_pages_suggest_are_those_that_work(
    command: Command, maker: BundleMaker, suggested: dict[str, list[str]], tmp_path: Path
) -> None:
    commands = {unescape(each) for of_page in suggested.values() for each in of_page}
    run = [words for words in map(shlex.split, sorted(commands)) if words[1] in READING]
    assert {words[1] for words in run} >= {"compare", "explain", "sql", "trace"}
    for _, *words in run:
        places = [str(tmp_path / word) if word.endswith(".json") else word for word in words]
        store = ("--data-dir", maker.bundles.parent) if words[0] == "trace" else ("--warehouse", maker.warehouse)
        ended = command(*places, *store)
        assert (ended.code, ended.err) == (0, ""), words


def test_what_got_faster_and_what_has_no_earlier_night_is_not_compared(suggested: dict[str, list[str]]) -> None:
    compared = [each for of_page in suggested.values() for each in of_page if each.startswith("etfarm compare")]
    assert not [each for each in compared if f"--model {NEW}" in each]
    # and what got faster is not among what to do first
    assert not [each for each in suggested["index.html"] if "fast" in each]
    assert [each for each in compared if each in suggested["index.html"] and "slow" in each]
