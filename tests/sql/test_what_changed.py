"""What the view `verdict` lists as changed since the last good night, as text: commit, model source, conditions."""

from typing import Any

import pytest

from tasks.results.sentences import describe_changes
from tests.fixtures.nights import fields_of, night_of, week_of
from tests.fixtures.warehouse import BundleMaker

OLD, NEW = "1a2b3c4" + 33 * "0", "5d6e7f8" + 33 * "0"


def source(commit: str, is_dirty: bool | None = False, author: str | None = None) -> dict[str, Any]:
    return {"sweep__source": {"commit": commit, "is_dirty": is_dirty, "author": author}}


def model(pte: str, source_sha256: str | None, **versions: str) -> dict[str, Any]:
    made = {"model__pte_sha256": pte, "model__source_sha256": source_sha256}
    return made | {"model__versions": {"executorch": "1.5.1", **versions}}


def layers(pte: str, converted: int | None) -> dict[str, Any]:
    counts = {"model__layer_count": 3, "model__converted_layers": converted} if converted is not None else {}
    return model(pte, None) | counts


def state(**conditions: Any) -> dict[str, Any]:
    return {"conditions__before": {"taken_at": "2026-11-01T00:00:00Z", **conditions}}


# Fields of a first night, fields of the second, and what is named in it.
CASES: list[tuple[dict[str, Any], dict[str, Any], str | None]] = [
    # the commit of the sweep file
    (source(OLD), source(NEW), "commit 1a2b3c4 -> 5d6e7f8"),
    (source(OLD), source(NEW, True), "commit 1a2b3c4 -> 5d6e7f8 with uncommitted changes"),
    (source(OLD, True), source(OLD, False), "commit 1a2b3c4 with uncommitted changes -> 1a2b3c4"),
    (source(OLD, True), source(OLD, True), "commit 1a2b3c4 with uncommitted changes"),
    (source(OLD), source(OLD), None),
    (source(OLD), source(OLD, None), None),
    (source(OLD, None), source(NEW, None), "commit 1a2b3c4 -> 5d6e7f8"),
    (source(OLD, author="Ada"), source(NEW, author="Li Na"), "commit 1a2b3c4 by Ada -> 5d6e7f8 by Li Na"),
    (source(OLD, author="Ada"), source(OLD, author="Ada"), None),
    (source(OLD, True, "Ada"), source(OLD, True, "Ada"), "commit 1a2b3c4 by Ada with uncommitted changes"),
    ({}, source(NEW), None),
    (source(OLD), {}, None),
    # a changed model, and changed versions
    (model("p1", "s1"), model("p2", "s2"), ".pte file, model source"),
    (model("p1", "s1"), model("p2", "s1"), ".pte file (same model source)"),
    (model("p1", "s1", torch="2"), model("p2", "s1", torch="3"), ".pte file (same model source), torch 2 -> 3"),
    (model("p1", None), model("p2", "s2"), ".pte file"),
    (layers("p1", 3), layers("p2", 1), ".pte file, converted layers 3 of 3 -> 1 of 3"),
    (layers("p1", 3), layers("p2", 3), ".pte file"),
    (layers("p1", None), layers("p2", 3), ".pte file"),
    (model("p1", "s1"), model("p1", "s2"), None),
    (model("p1", "s1"), model("p1", "s1", torch="2.13.0"), "torch unknown -> 2.13.0"),
    # other words before the runner
    ({}, {"command": ["nice", "-n", "10", "trees/r1/executor_runner"]}, "launcher none -> nice -n 10"),
    # conditions that clearly differ
    (state(temperature_c=31.2), state(temperature_c=44.4), "temperature 31 -> 44 C"),
    (state(temperature_c=36.4), state(temperature_c=31.0), "temperature 36 -> 31 C"),
    (state(temperature_c=31.0), state(temperature_c=36.0), None),
    (state(), state(temperature_c=44.0), None),
    (state(governor="schedutil"), state(governor="powersave"), "governor schedutil -> powersave"),
    (state(governor="schedutil"), state(), None),
    (state(charging=True), state(charging=False), "battery charging -> not charging"),
    (state(charging=None), state(charging=False), None),
]


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """What is named in each case; its number is the name of its model."""
    maker = BundleMaker(tmp_path_factory.mktemp("changed"))
    for number, (before, now, _) in enumerate(CASES):
        night_of(maker, 1, sessions=3, model__name=str(number), **before)
        night_of(maker, 2, sessions=3, model__name=str(number), **now)
    assert not maker.load().refused
    rows = maker.ask("SELECT model, changed FROM verdict WHERE is_newest")
    return {model: describe_changes(changes) for model, changes in rows}


@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_clearly_differs_from_the_night_before_is_named(changed: dict[str, str | None], number: int) -> None:
    _, _, named = CASES[number]
    assert changed[str(number)] == named


def test_of_two_starts_in_a_night_the_newer_one_is_compared_and_conditions_by_their_middle(maker: BundleMaker) -> None:
    # given a night whose sweep was started again after a change of the commit or of the source, which had no effect
    # on the file until another exporter made it, the next night
    made = [model("p1", "s1")] * 2 + [model("p1", "s2")] * 2
    starts = {
        "commit": ([source(OLD), source(NEW)], source(NEW), None),
        "source": (made, model("p2", "s2"), ".pte file (same model source)"),
    }
    for name, (nights, next_night, _) in starts.items():
        for hour, fields in enumerate(fields for fields in nights for _ in range(2)):
            at = {"started_at": f"2026-11-01T0{hour}:00:00+00:00", "model__name": name}
            maker.session([1_000_000] * 3, repetition=hour, **(fields_of(1) | at | fields))
        night_of(maker, 2, sessions=4, model__name=name, **next_night)
    # and one in which the device warmed up and its battery was full in the end
    night_of(maker, 1, model__name="middle", **state(temperature_c=30.0, charging=True))
    night_of(maker, 2, sessions=5, model__name="middle", **state(temperature_c=31.0, charging=True))
    night_of(maker, 2, sessions=3, model__name="middle", **state(temperature_c=50.0, charging=False))
    maker.load()
    # then sessions of one content are of one cell, and what the last start had is what the next night is compared with
    rows = maker.ask("SELECT model, sessions, changed FROM verdict WHERE is_newest")
    changed = {name: (sessions, describe_changes(changes)) for name, sessions, changes in rows}
    expected = {name: (4, named) for name, (*_, named) in starts.items()}
    # and neither the hottest sessions nor the last ones count as a change of conditions
    assert changed == expected | {"middle": (8, None)}


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_a_commit_after_the_first_night_of_a_step_is_not_named(maker: BundleMaker, factor: float) -> None:
    # given a step with the commit of Dee, and an unrelated commit of Eli the night after
    week_of(maker, 4, sessions=5, **source(OLD, author="Ada"))
    for day, author in ((5, "Dee"), (6, "Eli"), (7, "Eli")):
        commit = source(f"{day}" * 40, author=author)
        night_of(maker, day, factor, model__pte_sha256=f"p{day}", **commit)
    maker.load()
    # then every night of the step names Dee, in the view as in the reader's verdicts
    named = {".pte file, commit 1a2b3c4 by Ada -> 5555555 by Dee"}
    for view in ("verdict", "_shown_verdict"):
        metric = "TRUE" if view == "verdict" else "metric = 'latency'"
        nights = maker.ask(f"SELECT day(night), changed FROM {view} WHERE since IS NOT NULL AND {metric}")
        assert {day for day, _ in nights} == {5, 6, 7}
        assert {describe_changes(changes) for _, changes in nights} == named
