"""Commands set up Prefect before they import it; otherwise a comparison would print Prefect's lines."""

from pathlib import Path

import pytest

from flows.warehouse.publish import load_and_publish
from tests.fixtures.command import DataFolder, run_python
from tests.fixtures.paths import INVENTORIES

# The command, up to where it states what it is about to measure.
_STARTED = """
import sys
import flows.cli.prefect_run as run

def announce(what, *_):
    sys.exit(f"{what}: Prefect is {'' if 'prefect' in sys.modules else 'not '}imported")

run.set_up_run = announce
from flows.cli.main import main
main()
"""


@pytest.fixture
def two_nights(data: DataFolder) -> Path:
    """A data folder with two nights of a model that differ in its file."""
    for night in ("2026-11-19", "2026-11-20"):
        sweep = {"sweep_id": f"smoke-{night}", "name": "smoke", "night": night}
        data.session([10_000_000], sweep=sweep, model__pte_sha256=night, device__name="this-machine")
    load_and_publish(data.workspace, [data.bundles])
    return data.workspace.root


@pytest.mark.parametrize("words", [["bisect", "toy", "--good", "2026-11-19", "--bad", "2026-11-20"], ["compare"]])
def test_commands_set_up_prefect_before_they_import_it(two_nights: Path, words: list[str]) -> None:
    files = [two_nights / "a.pte", two_nights / "b.pte"] if words == ["compare"] else []
    for file in files:
        file.write_bytes(b"any")
    ended = run_python(
        "-c", _STARTED, *words, *files, "--data-dir", two_nights, "--inventory", INVENTORIES / "local.yaml"
    )
    assert ended.stderr.endswith(": Prefect is not imported\n"), ended.stderr
