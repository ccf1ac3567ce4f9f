"""What a bisection over releases of ExecuTorch finds, on a device whose true times are known."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.errors import FarmError, InputError
from flows.cli.bisect import _bisect_versions
from flows.comparison.bisect_versions import VersionBisection, VersionSearch
from flows.comparison.interleaved import InterleavedResult
from tasks.export.entry import parse_entry
from tasks.judge.comparison import compare
from tasks.measure.interleaved import Side
from tasks.runner.executorch_versions import releases_between
from tasks.store.workspace import Workspace
from tests.fixtures.plans import NIGHT

NOISE = (0.997, 0.999, 1.0, 1.001, 1.003)
RELEASES = ["1.3.1", "1.4.0", "1.4.1", "1.5.0", "1.5.1"]


class TrueDevice:
    """A device on which a program takes as long as it is called; it counts the comparisons."""

    sweep, variant = NIGHT, "sme2_off"
    workspace = probe = runner = SimpleNamespace(
        exports=SimpleNamespace(absolute=str), store=None, device=SimpleNamespace(name="phone"), runner_sha256="r"
    )

    def runner_for(self, _delegate: str | None) -> SimpleNamespace:
        return self.runner

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, query: str, **cells: list[str]) -> list[tuple[Any, ...]]:
        """Of the two cells that were compared, one operator that moved into the delegate."""
        assert (query, cells) == ("graph_difference", {"cells_a": ["a1"], "cells_b": ["b1"]})
        return [(0, "aten.avg_pool2d", 0, 1, 1, 0, ["head"])]

    def compare(self, a: Side, b: Side, *_: object) -> InterleavedResult:
        self.asked += 1
        sides = [[float(side.export.pte_sha256) * noise for noise in NOISE] for side in (a, b)]
        return InterleavedResult(compare(sides[0], sides[1], 0.01), "`Convolution` +50.0 %", cells=(("a1",), ("b1",)))


def search(
    monkeypatch: pytest.MonkeyPatch, programs: dict[str, str | None], model: str = "linear"
) -> tuple[VersionBisection, int]:
    """Bisect releases that export these programs; one with None cannot export."""

    def export(entry: Any, *_: object) -> list[Any]:
        program = programs[entry.name.partition("=")[2]]
        if program is None:
            raise FarmError("SpecViolationError")
        executions = {"executions": lambda *counts: counts}
        return [SimpleNamespace(model=entry.name, pte_sha256=program, content=(program, "i"), seed=0, **executions)]

    monkeypatch.setattr("flows.comparison.bisect_versions.make_export", export)
    monkeypatch.setattr("flows.comparison.bisect_versions.export_settings", lambda *_: None)
    device: Any = TrueDevice()
    return VersionSearch(device, parse_entry(model), "fp32", list(programs)).run(), device.asked


def test_the_first_release_with_the_change_is_found_and_one_that_cannot_export_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, asked = search(monkeypatch, dict(zip(RELEASES, ["1.0", "1.001", None, "1.5", "1.501"], strict=True)))
    assert result.first_changed == "1.5.0"
    assert result.steps[1] == "1.4.1: left out: SpecViolationError"
    assert "1.5.0; last one without: 1.4.0" in result.conclusion()[0]
    assert "Convolution" in result.conclusion()[1]
    assert "`aten.avg_pool2d`: 1 moved into the delegate" in result.conclusion()[2]
    assert asked == 4


def test_releases_that_export_the_same_program_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    result, asked = search(monkeypatch, dict.fromkeys(RELEASES, "1.0"))
    assert (result.answer, result.first_changed, asked) == ("same", None, 0)
    assert "1.3.1 and 1.5.1" in result.conclusion()[0]


def test_a_model_is_named_by_its_path_and_a_program_that_is_exported_already_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text("def make(): ...")
    result, _ = search(monkeypatch, dict.fromkeys(RELEASES, "1.0"), f"{tmp_path}/net.py:make")
    assert result.answer == "same"
    (tmp_path / "net.pte").write_bytes(b"")
    device: Any = None
    with pytest.raises(InputError, match=r"net\.pte is exported already"):
        _bisect_versions(f"{tmp_path}/net.pte", "1.5.0..1.5.1", "fp32", device, Workspace(tmp_path))


def test_releases_are_those_of_the_table_in_their_order() -> None:
    assert releases_between("1.3.1..1.5.0") == ["1.3.1", "1.4.0", "1.4.1", "1.5.0"]
    for text in ("1.5.0", "1.2.0..1.5.0", "1.5.0..1.4.1"):
        with pytest.raises(InputError, match=text):
            releases_between(text)
