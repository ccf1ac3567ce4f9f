"""The report of a sweep: its head, its files, and answers where it cannot be written."""

import contextlib
from pathlib import Path
from typing import NamedTuple

import pytest

from devices.errors import FarmError
from sql.warehouse import writing
from tasks.pages.report import record_dropped
from tests.fixtures.report import MS, render
from tests.fixtures.warehouse import BundleMaker
from tests.tasks.pages.conftest import Sweep, with_sessions

SWEEP = "smoke-2026-11-20"


class Loaded(NamedTuple):
    warehouse: Path
    reports: Path


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    maker = BundleMaker(tmp_path_factory.mktemp("report"))
    for night in ("2026-11-20", "2026-11-19"):
        maker.session([MS], sweep={"sweep_id": f"smoke-{night}", "name": "smoke", "night": night})
    maker.load()
    return maker.warehouse


@pytest.fixture
def loaded(warehouse: Path, tmp_path: Path) -> Loaded:
    return Loaded(warehouse, tmp_path / "reports")


def three_outcomes(sweep: Sweep) -> None:
    sweep.session([MS])
    sweep.session(status="failed", reason_code="runner_crashed", reason="it fell", repetition=1)
    sweep.session(status="invalid", reason_code="first_session", reason="discarded", repetition=-1)


@with_sessions(three_outcomes)
def test_the_head_counts_how_sessions_ended(sweep: Sweep) -> None:
    assert sweep.head.startswith(
        "Three sessions of one model ran on one device: 1 succeeded, 1 failed and 1 discarded automatically."
    )


def test_the_newest_sweep_is_taken_without_an_id(loaded: Loaded) -> None:
    assert render(*loaded) == loaded.reports / SWEEP / "report.html"
    assert render(*loaded, "smoke-2026-11-19").parent.name == "smoke-2026-11-19"


def test_a_sweep_of_one_delegate_has_no_section_on_them(loaded: Loaded) -> None:
    assert "Delegates" not in render(*loaded).read_text(encoding="utf-8")


def test_a_sweep_without_a_report_is_refused_in_one_sentence(maker: BundleMaker, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    with pytest.raises(FarmError, match="no sweep is loaded yet; run `etfarm sweep` first"):
        render(maker.warehouse, reports)
    maker.session([MS])
    maker.load()
    with pytest.raises(FarmError, match=f"unknown sweep `other`; available: {SWEEP}"):
        render(maker.warehouse, reports, "other")
    # and views of another version
    with writing(maker.warehouse) as connection:
        connection.execute("DROP VIEW session_accuracy")
    with pytest.raises(FarmError, match="its views do not match this version of etfarm"):
        render(maker.warehouse, reports)
    assert not reports.exists()


def test_a_report_that_cannot_be_written_names_the_file(loaded: Loaded) -> None:
    loaded.reports.write_text("in the way")
    with pytest.raises(FarmError, match=f"{SWEEP}/report.md: cannot write the report: "):
        render(*loaded)


def test_the_number_of_dropped_sessions_is_read_or_its_file_is_named(loaded: Loaded) -> None:
    folder = loaded.reports / SWEEP
    record_dropped(folder, "8 dropped (`--finish-by 06:00`)")
    html = render(*loaded).read_text(encoding="utf-8")
    assert "Sessions: 8 dropped (<code>--finish-by 06:00</code>); start the sweep again" in html
    (folder / "dropped.txt").write_bytes(b"\xff")
    with pytest.raises(FarmError, match=r"dropped\.txt: cannot read the number of dropped sessions: it is not UTF-8"):
        render(*loaded)


def test_a_full_disk_leaves_the_earlier_report(loaded: Loaded, full_disk: Path) -> None:
    reports = full_disk / "reports"
    html = render(loaded.warehouse, reports)
    before = html.read_bytes()
    with (full_disk / "filler").open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(4096))
    with pytest.raises(FarmError, match="No space left"):
        render(loaded.warehouse, reports)
    assert html.read_bytes() == before
    assert sorted(path.name for path in html.parent.iterdir()) == ["report.html", "report.md"]
