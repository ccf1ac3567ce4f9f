"""What a bisection finds, on a device whose true times are known: the night, and the input."""

import json
from collections.abc import Callable
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from devices.errors import FarmError
from flows.comparison import bisect as flow
from flows.comparison.bisect import Bisection
from flows.comparison.interleaved import InterleavedResult
from tasks.bundle.cell import Cell
from tasks.judge.bisect import MeasuredNight, SeriesOnDevice
from tasks.judge.comparison import compare
from tasks.measure.interleaved import Side
from tests.fixtures.plans import NIGHT

SERIES = SeriesOnDevice("a" * 16, "phone", "linear", "fp32", "sme2_off", 1)
CELL = Cell("phone", "linear", "fp32", 1, "sme2_off", "timing", 20, 3)
NOISE = (0.997, 0.999, 1.0, 1.001, 1.003)


class TrueDevice:
    """A device that takes as long as the files are stated to take; it counts the comparisons."""

    sweep = NIGHT

    def __init__(self, took: Callable[[str, str], float], margin: float) -> None:
        self.took, self.margin, self.asked = took, margin, 0

    def ask(self, query: str, **parameters: object) -> list[object]:
        """Of a search whose first bad night is 2026-11-06, a commit lies between that and the good content p4."""
        if query != "bisect_commits" or (parameters["bad"], parameters["pte_sha256"]) != ("2026-11-06", "p4"):
            return []
        before = {"id": "a" * 7, "author": "Ada", "subject": "Start"}
        after = {"id": "b" * 7, "author": "Bo", "subject": "Pad the head"}
        return [(date(2026, 11, 6), json.dumps([after, before])), (date(2026, 11, 5), json.dumps([before]))]

    def compare(self, a: Side, b: Side, *_: object) -> InterleavedResult:
        self.asked += 1
        times = [self.took(side.export.pte_sha256, side.runner.runner_sha256) for side in (a, b)]
        sides = [[time * noise for noise in NOISE] for time in times]
        answer = compare(sides[0], sides[1], self.margin)
        return InterleavedResult(answer, "`Convolution` +50.0 %", "`head` +50.0 %")


def night(day: int, pte: str, runner: str = "r1") -> MeasuredNight:
    return MeasuredNight(date(2026, 11, day), "no change", None, 20, 3, "key", pte, runner)


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Bisection, int]]:
    """Bisect nights whose files are all kept, except those named `gone`."""

    def side(_: object, night: MeasuredNight) -> Side:
        if night.pte_sha256 == "gone":
            raise FarmError("its .pte file (gone) is not in var/exports any more")
        export: Any = SimpleNamespace(pte_sha256=night.pte_sha256, content=(night.pte_sha256, "i"), seed=0)
        runner: Any = SimpleNamespace(runner_sha256=night.runner_sha256)
        return Side(CELL, export, runner)

    monkeypatch.setattr(flow._Search, "_build_side", side)

    def run(took: Callable[[str, str], float], *nights: MeasuredNight, margin: float = 0.01) -> tuple[Bisection, int]:
        bench: Any = TrueDevice(took, margin)
        return flow._Search(bench, SERIES, nights[0], list(nights[1:])).run(), bench.asked

    return run


Search = Callable[..., tuple[Bisection, int]]


def test_the_first_night_with_the_change_is_found_and_a_content_that_is_not_kept_is_left_out(search: Search) -> None:
    # given nine contents, slower from the sixth on, one of which is not kept
    nights = [night(day, "gone" if day == 5 else f"p{day}") for day in range(1, 10)]
    found, asked = search(lambda pte, _: 1.5 if pte >= "p6" else 1.0, *nights)
    # then the night, the commit with its author and what to look at are named
    assert found.conclusion() == [
        "first bad night: 2026-11-06; last good content: 2026-11-04",
        "it came with the model file",
        "in commit bbbbbbb by Bo: Pad the head (`git log aaaaaaa..bbbbbbb`)",
        "cause: `Convolution` +50.0 %",
        "modules: `head` +50.0 %",
    ]
    assert asked <= 5
    assert found.steps[0] == "2026-11-05: left out: its .pte file (gone) is not in var/exports any more"


@pytest.mark.parametrize(
    ("took", "came_with"),
    [
        (lambda _, runner: 1.5 if runner == "r2" else 1.0, "the runner"),
        (lambda pte, _: 1.5 if pte == "p2" else 1.0, "the model file"),
        (lambda pte, runner: (1.2 if pte == "p2" else 1.0) * (1.2 if runner == "r2" else 1.0), "the runner and "),
        (lambda pte, runner: 1.5 if (pte, runner) == ("p2", "r2") else 1.0, "both together: neither shows it alone"),
    ],
)
def test_model_and_runner_are_swapped_alone(search: Search, took: Callable[[str, str], float], came_with: str) -> None:
    found, _ = search(took, night(1, "p1", "r1"), night(2, "p2", "r2"))
    assert (found.came_with or "").startswith(came_with)


def test_nights_that_do_not_differ_now_point_to_the_device(search: Search) -> None:
    found, asked = search(lambda _pte, _runner: 1.0, night(1, "p1"), night(2, "p2"))
    assert asked == 1
    assert found.conclusion() == ["model and runner do not differ from those of 2026-11-01: the device changed"]


def test_a_bisection_smaller_than_the_noise_is_inconclusive(search: Search) -> None:
    found, _ = search(lambda pte, _: 1.0015 if pte == "p2" else 1.0, night(1, "p1"), night(2, "p2"), margin=0.0001)
    (sentence,) = found.conclusion()
    assert sentence.startswith("inconclusive with 8 sessions a side: the noise of the device is larger than the diff")


@pytest.mark.parametrize(("good", "bad", "named"), [("p1", "gone", "2026-11-02"), ("gone", "p2", "2026-11-01")])
def test_a_good_or_bad_night_that_is_not_kept_is_refused(search: Search, good: str, bad: str, named: str) -> None:
    with pytest.raises(FarmError, match=rf"{named}: its \.pte file"):
        search(lambda _pte, _runner: 1.0, night(1, good), night(2, bad))
