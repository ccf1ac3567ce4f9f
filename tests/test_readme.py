"""The README is true: its sweep file is valid, its views exist, its commands are commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from devices.inventory import Inventory
from sql.warehouse import query as ask
from tasks.measure.spec import read_sweep
from tests.fixtures.paths import ROOT
from tests.fixtures.warehouse import BundleMaker

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_sweep_file_and_the_inventory_of_the_readme_are_valid(tmp_path: Path) -> None:
    sweep, models, inventory, labs = blocks("yaml")
    # given the files that its entries name, beside the sweep
    for name in ("model.py", "lin.pte", "in0.bin", "ref.bin", "lin.etrecord", "weights/config.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "model.py").write_text("def make(): ...\ndef detector(): ...\n")
    for text, count in ((sweep, 3), (f"name: a\n{models}", 5)):
        (tmp_path / "sweep.yaml").write_text(text)
        assert len(read_sweep(tmp_path / "sweep.yaml").models) == count
    assert len(Inventory.model_validate(yaml.safe_load(inventory)).devices) == 4
    assert Inventory.model_validate(yaml.safe_load(labs)).reached == []


def test_every_public_view_is_in_the_readme() -> None:
    views = {path.stem for path in (ROOT / "sql/views").rglob("[a-z]*.sql")}
    assert views - set(re.findall(r"`(\w+)`", README)) == set()


GROUPS = "devices runner|devices|warehouse|model|server|decisions|site"
COMMANDS = sorted(set(re.findall(rf"etfarm ((?:(?:{GROUPS}) )?[a-z][a-z-]*)", "".join(blocks("sh")))))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_is_one(command: str) -> None:
    words = [sys.executable, "-m", "flows.cli.main", *command.split(), "--help"]
    asked = subprocess.run(words, capture_output=True, check=False)
    assert asked.returncode == 0, asked.stderr


def test_every_path_that_the_readme_leads_to_or_names_exists() -> None:
    linked = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    named = re.findall(r"`((?:flows|tasks|devices|sql|deployments|tests)/[^`<>*]*)`", README)
    assert [path for path in linked + named if not (ROOT / path).exists()] == []


def test_every_make_target_of_the_readme_is_one() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(
        re.findall(r"\bmake ([a-z-]+)", "".join(blocks("sh")) + " ".join(re.findall(r"`([^`]+)`", README)))
    ):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


QUERIES = re.findall(r'etfarm sql(?: --[a-z]+ \S+)* "([^"]+)"', "".join(blocks("sh")))


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_of_the_readme_runs_and_ranks_no_emulated_device(query: str, tmp_path: Path) -> None:
    # given a slow device, and an emulated one with a time that would come first
    maker = BundleMaker(tmp_path)
    maker.session([9_000_000], model__name="measured", device__name="real")
    maker.session([1_000_000], model__name="emulated", device__name="phone", device__emulated=True)
    maker.load()
    # when a query of the README is run, then what it orders by time is of the real device only
    columns, rows = ask(maker.warehouse, query)
    assert columns
    if "ORDER BY" in query:
        assert [row[columns.index("model")] for row in rows] == ["measured"]
