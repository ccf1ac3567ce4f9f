"""The sweep of an upgrade: what it shares with another one, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest

from devices.errors import InputError
from flows.comparison.upgrade import upgrade_sweep
from tasks.runner.executorch_versions import read_versions
from tests.fixtures.plans import a_spec

OWN, OTHER = read_versions("own"), read_versions("1.5.0")


@pytest.mark.parametrize(
    "changes",
    [{"models": ["linear"]}, {"precisions": ["fp32"]}, {"variants": ["sme2_off"]}, {"threads": [2]}, {"executions": 9}],
)
def test_upgrades_that_measure_something_else_on_a_day_are_different_sweeps(changes: dict[str, Any]) -> None:
    name = upgrade_sweep(a_spec(), OWN, OTHER, 8).name
    others = [
        upgrade_sweep(a_spec(**changes), OWN, OTHER, 8),
        upgrade_sweep(a_spec(), OTHER, OWN, 8),
        upgrade_sweep(a_spec(), OWN, OTHER, 8, ["phone"]),
    ]
    assert len({name, *(each.name for each in others)}) == 4
    # but more sessions continue those of the day
    assert upgrade_sweep(a_spec(sessions=3), OWN, OTHER, 16).name == name


def test_an_upgrade_measures_no_roof() -> None:
    sweep = upgrade_sweep(a_spec(roof=True), OWN, OTHER, 8)
    assert "roof" not in {entry.name.partition("@")[0] for entry, _ in sweep.pairs}


def test_a_program_that_is_exported_already_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.pte").write_bytes(b"")
    with pytest.raises(InputError, match=r"net\.pte is .*etfarm compare default runner=1\.5\.0"):
        upgrade_sweep(a_spec(models=["linear", str(tmp_path / "net.pte")]), OWN, OTHER, 8)
