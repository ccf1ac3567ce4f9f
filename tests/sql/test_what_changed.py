"""What the view `verdict` names as changed since the last good night: commit, model source, conditions."""

from typing import Any

import pytest

from tests.fixtures.nights import night_of
from tests.fixtures.warehouse import BundleMaker

OLD, NEW = "1a2b3c4" + 33 * "0", "5d6e7f8" + 33 * "0"


def changed(maker: BundleMaker, before: dict[str, Any], now: dict[str, Any]) -> str | None:
    """What is named as changed in a night, after one night with other fields of session.json."""
    night_of(maker, 1, **before)
    night_of(maker, 2, **now)
    assert not maker.load().refused
    answer: str | None = maker.ask("SELECT changed FROM verdict WHERE is_newest")[0][0]
    return answer


def source(commit: str, is_dirty: bool | None = False) -> dict[str, Any]:
    return {"sweep__source": {"commit": commit, "is_dirty": is_dirty}}


@pytest.mark.parametrize(
    ("before", "now", "named"),
    [
        (source(OLD), source(NEW), "commit 1a2b3c4 -> 5d6e7f8"),
        (source(OLD), source(NEW, True), "commit 1a2b3c4 -> 5d6e7f8 with uncommitted changes"),
        (source(OLD, True), source(OLD, False), "commit 1a2b3c4 with uncommitted changes -> 1a2b3c4"),
        (source(OLD, True), source(OLD, True), "commit 1a2b3c4 with uncommitted changes"),
        (source(OLD), source(OLD), None),
        (source(OLD), source(OLD, None), None),
        (source(OLD, None), source(NEW, None), "commit 1a2b3c4 -> 5d6e7f8"),
        ({}, source(NEW), None),
        (source(OLD), {}, None),
    ],
)
def test_the_commit_of_the_sweep_file_is_named(
    maker: BundleMaker, before: dict[str, Any], now: dict[str, Any], named: str | None
) -> None:
    assert changed(maker, before, now) == named


def test_the_commit_is_no_part_of_the_cell(maker: BundleMaker) -> None:
    # given one night whose sweep was started again after a commit
    sweep = {"sweep_id": "nightly-2026-11-01", "name": "nightly", "night": "2026-11-01"}
    for hour, commit in enumerate((OLD, OLD, NEW, NEW)):
        started_at = f"2026-11-01T0{hour}:00:00+00:00"
        maker.session([1_000_000] * 3, started_at=started_at, sweep=dict(sweep), index=hour, **source(commit))
    maker.load()
    # then its sessions are still of one cell
    assert maker.ask("SELECT sessions FROM verdict") == [(4,)]
    # and the commit of the last start is the one that is compared
    night_of(maker, 2, **source(NEW))
    maker.load()
    assert maker.ask("SELECT changed FROM verdict WHERE is_newest") == [(None,)]


def model(pte: str, source_sha256: str | None, **versions: str) -> dict[str, Any]:
    return {
        "model__pte_sha256": pte,
        "model__source_sha256": source_sha256,
        "model__versions": {"executorch": "1.5.1", **versions},
    }


@pytest.mark.parametrize(
    ("before", "now", "named"),
    [
        (model("p1", "s1"), model("p2", "s2"), ".pte file, model source"),
        (model("p1", "s1"), model("p2", "s1"), ".pte file (same model source)"),
        (
            model("p1", "s1", torch="2.12.0"),
            model("p2", "s1", torch="2.13.0"),
            ".pte file (same model source), torch 2.12.0 -> 2.13.0",
        ),
        (model("p1", None), model("p2", "s2"), ".pte file"),
        (model("p1", "s1"), model("p1", "s2"), None),
    ],
)
def test_a_changed_model_is_told_from_changed_versions(
    maker: BundleMaker, before: dict[str, Any], now: dict[str, Any], named: str | None
) -> None:
    assert changed(maker, before, now) == named


def test_of_two_starts_in_a_night_the_newer_one_is_compared(maker: BundleMaker) -> None:
    # given a night in which the source was edited between two starts, without an effect on the .pte file
    sweep = {"sweep_id": "nightly-2026-11-01", "name": "nightly", "night": "2026-11-01"}
    for hour, source_sha256 in enumerate(("s1", "s1", "s2", "s2")):
        started_at = f"2026-11-01T0{hour}:00:00+00:00"
        maker.session([1_000_000] * 3, started_at=started_at, sweep=sweep, index=hour, **model("p1", source_sha256))
    # when the next night has another .pte file of that source, for example by another exporter
    night_of(maker, 2, **model("p2", "s2"))
    maker.load()
    # then the source did not change
    assert maker.ask("SELECT changed FROM verdict WHERE is_newest") == [(".pte file (same model source)",)]


def state(**conditions: Any) -> dict[str, Any]:
    return {"conditions__before": {"taken_at": "2026-11-01T00:00:00Z", **conditions}}


@pytest.mark.parametrize(
    ("before", "now", "named"),
    [
        (state(temperature_c=31.2), state(temperature_c=44.4), "temperature 31 -> 44 C"),
        (state(temperature_c=36.4), state(temperature_c=31.0), "temperature 36 -> 31 C"),
        (state(temperature_c=31.0), state(temperature_c=36.0), None),
        (state(), state(temperature_c=44.0), None),
        (state(governor="schedutil"), state(governor="powersave"), "governor schedutil -> powersave"),
        (state(governor="schedutil"), state(), None),
        (state(charging=True), state(charging=False), "battery charging -> not charging"),
        (state(charging=None), state(charging=False), None),
    ],
)
def test_conditions_that_clearly_differ_are_named(
    maker: BundleMaker, before: dict[str, Any], now: dict[str, Any], named: str | None
) -> None:
    assert changed(maker, before, now) == named


def test_conditions_that_changed_during_a_night_are_compared_by_their_middle(maker: BundleMaker) -> None:
    # given a night in which the device warmed up and its battery was full in the end
    night_of(maker, 1, **state(temperature_c=30.0, charging=True))
    night_of(maker, 2, sessions=5, **state(temperature_c=31.0, charging=True))
    night_of(maker, 2, sessions=3, **state(temperature_c=50.0, charging=False))
    maker.load()
    # then neither its hottest sessions nor its last ones count as a change
    assert maker.ask("SELECT changed FROM verdict WHERE is_newest") == [(None,)]
