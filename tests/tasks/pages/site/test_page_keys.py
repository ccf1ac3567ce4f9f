"""The promise of a publication: whatever was loaded, decided or removed, it is what a first one would be."""

import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from sql.warehouse import writing
from tasks.judge.decisions import Decisions
from tasks.maintain import prune
from tasks.maintain.decisions import store_decisions
from tasks.maintain.forget import forget_sessions
from tasks.pages.site import page_keys
from tasks.pages.site.site import Site
from tasks.results.reader import Reader, open_reader
from tests.fixtures.nights import decision, fields_of, night_of
from tests.fixtures.pages import Pages
from tests.fixtures.publications import files_at, publish_site
from tests.fixtures.warehouse import COMPARED, CONVOLUTION, LINEAR, MEAN, BundleMaker, etdump_of

Step = Callable[[BundleMaker], object]
MODEL, SLOW = "a/toy.py:make", "slow"
RUN = (1_000_000, {CONVOLUTION: 600_000, LINEAR: 200_000, MEAN: 100_000})
HOT = {"taken_at": "2026-11-03T01:00:00+00:00", "temperature_c": 71.5, "governor": "powersave"}


def write_night(maker: BundleMaker, day: int, factor: float = 1.0) -> None:
    for device in ("here", "there"):
        night_of(maker, day, sessions=3, model__name=MODEL, device__name=device)
    night_of(maker, day, factor, sessions=8, model__name=SLOW, device__name="here", model__pte_sha256=f"p{factor}")
    maker.session([RUN] * 3, model__name=SLOW, device__name="here", mode="trace", **fields_of(day))


def add(day: int, *executions: Any, **fields: Any) -> Step:
    """A further session of a night that is loaded late."""
    every: dict[str, Any] = {"model__name": MODEL, "device__name": "here", "repetition": 8, **fields_of(day), **fields}
    return lambda maker: maker.session(executions, **every)


def compare(maker: BundleMaker) -> None:
    """Measure two contents interleaved, which decides on the newest night of a model."""
    for number, side in itertools.product(range(8), "ab"):
        arm = {"purpose": "same_night", "comparison": "c" * 16, "side": side}
        time_ns = round(1_000_000 * (1.5 if side == "b" else 1.0) * (1 + 0.001 * (number % 3)))
        content: dict[str, Any] = {"model__name": SLOW, "model__pte_sha256": {"a": "p1.0", "b": "p1.5"}[side]}
        maker.session([time_ns] * 3, repetition=number, arm=arm, device__name="here", **content, **fields_of(9))


def decide(*records: Any) -> Step:
    return lambda maker: store_decisions(maker.warehouse, Decisions(records))


def forget(query: str) -> Step:
    return lambda maker: forget_sessions(maker.warehouse, [row[0] for row in maker.ask(query)])


STEPS: dict[str, Step] = {
    "next night": lambda maker: write_night(maker, 10, 1.5),
    "compared": compare,
    "late": add(3, 1_300_000),
    "late and hot": add(4, 1_000_000, model__name=SLOW, conditions__before=HOT, conditions__after=HOT),
    "traced": add(9, RUN, RUN, mode="trace", model__name=SLOW),
    "inaccurate": add(9, 1_000_000, accuracy=[COMPARED | {"is_inaccurate": True}]),
    "failed": add(9, status="failed", reason_code="device_lost", reason="cable"),
    "other sweep": add(9, 2_000_000, sweep={"sweep_id": "gate-2026-11-09", "name": "gate", "night": "2026-11-09"}),
    "new model": add(9, 1_000_000, model__name="b/new.py:make"),
    "same short name": add(9, 1_000_000, model__name="b/toy.py:make"),
    "without a night": lambda maker: (maker.bundles / "x.etdump").write_bytes(etdump_of([RUN, RUN])),
    "excluded": decide(decision(1, night=date(2026, 11, 5))),
    "noted": decide(decision(2, kind="note", reason="new fan", night=date(2026, 11, 9))),
    "forgotten": forget("SELECT min(session_id) FROM session WHERE sweep_id = 'nightly-2026-11-08'"),
    "forgotten sweep": forget("SELECT session_id FROM session WHERE sweep_id = 'nightly-2026-11-04'"),
    "thinned": lambda maker: prune._remove_events(maker.warehouse, date(2026, 11, 8)),
}


@pytest.fixture(scope="module", autouse=True)
def _few_nights() -> Iterator[None]:
    with patch.object(page_keys, "_MAX_NIGHTS", 4), patch.object(os, "fsync"):
        yield


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    """Nine nights of two models on two devices, one of which got slower in the newest one."""
    maker = BundleMaker(tmp_path_factory.mktemp("farm"))
    for day in range(1, 10):
        write_night(maker, day, 1.5 if day == 9 else 1.0)
    assert maker.load().refused == []
    return maker


@pytest.fixture
def copied(farm: BundleMaker, tmp_path: Path) -> BundleMaker:
    """A copy of that farm, without the bundles that are loaded."""
    maker = BundleMaker(tmp_path)
    maker.bundles.mkdir()
    maker.sessions = farm.sessions
    shutil.copyfile(farm.warehouse, maker.warehouse)
    return maker


@pytest.fixture
def published(copied: BundleMaker) -> BundleMaker:
    """A copy of that farm, and in the folder `site` beside it its pages."""
    publish_site(copied.warehouse, str(copied.warehouse.with_name("site")))
    return copied


def keys_of(maker: BundleMaker) -> dict[str, str]:
    with open_reader(maker.warehouse) as reader:
        return page_keys.read_keys(Site(reader, maker.warehouse.name))


def stale_pages(maker: BundleMaker) -> set[str]:
    """Load what was written, publish again, and return the pages that a first publication would make otherwise."""
    if any(maker.bundles.iterdir()):
        assert maker.load().refused == []
    folders = [str(maker.warehouse.with_name(name)) for name in ("site", "first")]
    for folder in folders:
        publish_site(maker.warehouse, folder)
    again, first = map(files_at, folders)
    shutil.rmtree(folders[1])
    return {page for page in again | first if again.get(page) != first.get(page)}


@pytest.mark.thorough
@pytest.mark.long
@pytest.mark.timeout(900)
def test_after_loads_decisions_and_removals_in_any_order_a_site_is_what_a_first_one_would_be(
    published: BundleMaker,
) -> None:
    names = random.Random(0).sample([*STEPS], len(STEPS))
    for number, name in enumerate(names):
        STEPS[name](published)
        assert (names[: number + 1], stale_pages(published)) == (names[: number + 1], set())


def test_a_first_device_with_times_changes_the_pages_of_nights_without_one(tmp_path: Path) -> None:
    maker = BundleMaker(tmp_path)
    for day in (1, 2):
        maker.session([RUN], device__name="board", device__emulated=True, **fields_of(day))
    maker.load()
    publish_site(maker.warehouse, str(tmp_path / "site"))
    add(3, RUN)(maker)
    assert stale_pages(maker) == set()


def test_the_result_of_a_comparison_that_decides_two_nights_is_part_of_their_keys(copied: BundleMaker) -> None:
    # given a comparison of the ninth night, by which the tenth is judged, too
    compare(copied)
    STEPS["next night"](copied)
    copied.load()
    assert copied.ask(
        "SELECT count(*), count(DISTINCT comparison) FROM verdict JOIN series_verdict USING ("
        "series_id, device, night) WHERE metric = 'latency' AND comparison IS NOT NULL"
    ) == [(2, 1)]
    # when its times change and its ratio does not
    before = keys_of(copied)
    with writing(copied.warehouse) as connection:
        connection.execute("UPDATE comparison_result SET time_a = 2 * time_a, time_b = 2 * time_b")
    # then the pages that show them are made again
    unchanged = {page for page, key in keys_of(copied).items() if key == before[page]}
    weeks = {page for page in before if page.startswith("histories/here/")}
    shown = {
        "devices/here.html",
        "models/slow.html",
        "nights/2026-11-09.html",
        "nights/2026-11-10.html",
        *sorted(weeks)[-1:],
    }
    assert unchanged & shown == set()


def test_another_version_of_etfarm_makes_every_page_again(small: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    before = page_keys.read_keys(small.site)
    assert page_keys.read_keys(small.site) == before
    monkeypatch.setattr(page_keys, "code_sha256", lambda: "another")
    after = page_keys.read_keys(small.site)
    assert [name for name in before | after if before.get(name) == after.get(name)] == []


def test_pages_of_two_cells_and_of_two_nights_are_made_again_when_a_page_that_they_link_to_is_gone(
    copied: BundleMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given two nights, in the second of which a series changed: its two cells have a page
    monkeypatch.setattr(page_keys, "_MAX_NIGHTS", 2)
    before = keys_of(copied)
    [cells] = [page for page in before if page.startswith("comparisons/cells/")]
    # when the first night has no page any more
    monkeypatch.setattr(page_keys, "_MAX_NIGHTS", 1)
    assert keys_of(copied)[cells] != before[cells]
    # or when the cells have none, because newer ones displaced them
    monkeypatch.setattr(page_keys, "_MAX_NIGHTS", 2)
    read_rows = Reader.rows
    monkeypatch.setattr(
        Reader, "rows", lambda self, kind, *more: [] if kind is page_keys.PublishedRow else read_rows(self, kind, *more)
    )
    nights = "comparisons/2026-11-08..2026-11-09.html"
    assert keys_of(copied)[nights] != before[nights]
