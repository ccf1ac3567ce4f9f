"""`etfarm sweep FILE --dry-run`: what would be measured and why not, without a server and without a change."""

from pathlib import Path

import pytest

from tests.fixtures.command import Command, run_python
from tests.fixtures.farm import sweep_of
from tests.fixtures.warehouse import BundleMaker

INVENTORY = """
devices:
  - {name: here, transport: local, root: "%s", labels: {tier: nightly}}
  - {name: gone, transport: ssh, address: 127.0.0.1, port: 9, user: nobody, root: /tmp/x, labels: {tier: nightly}}
  - {name: other, transport: local, root: "%s", labels: {tier: weekly}}
"""


@pytest.fixture
def dry(command: Command, tmp_path: Path) -> Command:
    """Run a dry run of a sweep of two models with three sessions on an inventory of three devices."""
    inventory, file = tmp_path / "inventory.yaml", tmp_path / "sweep.yaml"
    inventory.write_text(INVENTORY % (tmp_path / "a", tmp_path / "b"), encoding="utf-8")
    file.write_text(sweep_of("linear", "conv", sessions=3, devices={"tier": "nightly"}), encoding="utf-8")
    words = ("sweep", file, "--dry-run", "--inventory", inventory, "--var", tmp_path / "var")
    return lambda *more: command(*words, *more)


def test_a_dry_run_counts_cells_and_sessions_and_says_which_devices_are_off(dry: Command, tmp_path: Path) -> None:
    ended = dry()
    assert ended.code == 0, ended.err
    first, exports, here, gone, other = ended.out.splitlines()
    assert first == "tiny: 1 of 3 devices, 2 cells, 6 sessions, 0 of them measured tonight; time unknown"
    assert exports.startswith("exports: 2 pairs of model and recipe;")
    assert here.startswith("here: reachable; 2 cells, 6 sessions, 0 measured; runner ")
    assert gone.startswith("gone: now unreachable: cannot reach nobody@127.0.0.1:9")
    assert other == "other: not used: label tier is weekly, the sweep selects nightly"
    # and nothing was started or written
    assert not list((tmp_path / "var").rglob("*.duckdb"))


@pytest.mark.parametrize(("sessions", "time"), [(4, "time unknown"), (5, "3 min without exports, so until ")])
def test_the_time_is_that_of_earlier_nights_that_measured_as_much(
    dry: Command, tmp_path: Path, sessions: int, time: str
) -> None:
    # given a night of some sessions, one every 30 s
    maker = BundleMaker(tmp_path / "var")
    for number in range(sessions):
        minute, second = number // 2, 30 * (number % 2)
        maker.session(
            [10_000] * 3,
            device__name="here",
            sweep__sweep_id="tiny-2026-11-01",
            sweep__name="tiny",
            sweep__night="2026-11-01",
            started_at=f"2026-11-01T01:{minute:02}:{second:02}+00:00",
            ended_at=f"2026-11-01T01:{minute:02}:{second + 29:02}+00:00",
        )
    maker.load()
    # then six sessions are estimated by it, 30 s each, if it measured at least three quarters of them
    first = dry("--warehouse", maker.warehouse).out.splitlines()[0]
    assert f"6 sessions, 0 of them measured tonight; {time}" in first


def test_a_dry_run_imports_neither_torch_nor_a_server() -> None:
    text = "import sys, flows.cli.measure.dry_run; print(*sys.modules)"
    loaded = set(run_python("-c", text).stdout.split())
    assert "flows.cli.measure.dry_run" in loaded
    assert not {"torch", "executorch", "prefect.server"} & loaded
