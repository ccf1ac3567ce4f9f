"""Each row of a skill's `When it fails` is what the farm prints: a step or a script provokes it, or the code has it."""

import re

import pytest

from tests.fixtures.nights import night_of, week_of
from tests.fixtures.paths import ROOT
from tests.fixtures.warehouse import BundleMaker
from tests.skills.place import Place
from tests.skills.skill import is_in
from tests.skills.test_skills import ALL

_INVENTORY = "devices: [{name: mac, transport: ssh, address: mac.invalid, port: many}]"
_SWEEP = "{name: a, models: [toy_cnn], devices: {rack: left}}"
_NEWER = """from pathlib import Path
from sql.warehouse import writing
with writing(Path('var/warehouse/warehouse.duckdb')) as connection:
    connection.execute(
        'INSERT INTO schema_migration SELECT * REPLACE (number + 1000 AS number) FROM schema_migration'
    )"""
# In a farm with six nights of one content, the last of which is slow. The last scripts damage it.
PROVOKED = {
    "fix:": "ulimit -n 100; etfarm doctor",
    "inventory...must be": f"echo '{_INVENTORY}' >inventory.yaml; etfarm devices --inventory inventory.yaml",
    "cannot reach...": f"echo '{_INVENTORY.replace('many', '22')}' >mac.yaml; etfarm devices --inventory mac.yaml",
    "label...is not set": f"echo '{_SWEEP}' >a.yaml; etfarm sweep a.yaml --dry-run",
    "unknown model": "echo '{name: a, models: [toycnn]}' >b.yaml; etfarm sweep b.yaml --dry-run",
    "unknown platform": "etfarm devices runner build --platform linux-x86",
    "is not a model or a series id": "etfarm explain voice",
    "new": "etfarm verdicts 2026-11-01",
    "device slower": "etfarm compare 2026-11-05 2026-11-06",
    "were not measured interleaved": "etfarm compare 2026-11-05 2026-11-06",
    "(0 rows)": "etfarm sql sme2-coverage",
    "does not match its hash": 'echo >>"$(ls var/bundles/*/*/model.etdump | head -1)"; etfarm warehouse check',
    "was written by a newer farm": f'python -c "{_NEWER}"; etfarm warehouse load',
}
# What needs a phone, SME2, a model or another farm: the file whose sentence it is.
SENTENCES = {
    "no snapshot was published here yet": "tasks/load/snapshot.py",
    "no such inventory": "devices/inventory.py",
    "needs an...a host name or an ssh_config alias": "devices/inventory.py",
    "unreachable": "flows/device/states.py",
    "Python 3.": "docs/skills/set-up-a-farm/SKILL.md",
    "cannot be used (...)": "devices/adb/device.py",
    "but its runner (...) needs": "tasks/runner/min_versions.py",
    "cannot export...as": "tasks/export/export.py",
    "must return (torch.nn.Module, tuple of tensors)": "tasks/export/factory.py",
    "needs ...dynamic_shapes": "tasks/export/factory.py",
    "portable operators take...more than": "flows/cli/model.py",
    "is held by": "devices/ondevice/lease.py",
    "not proven": "tasks/results/measurements/sme2.py",
    "failed": "tasks/bundle/record.py",
    "failed: SME proof": "flows/certify/certify.py",
    "failed: left behind": "flows/certify/certify.py",
    "regression": "tasks/results/changes.py",
    "unknown": "tasks/results/changes.py",
    "different": "tasks/results/changes.py",
    "rebuild the warehouse with": "tasks/maintain/check.py",
}
# What other programs print.
FOREIGN = {
    "Propagating input shapes failed", "Makefile...No such file or directory", "No module named 'torch'",
    *(f"{program}:...not found" for program in ("python3", "c++", "git", "etfarm")), "No module named 'ziglang'",
}  # fmt: skip


def test_every_row_is_provoked_or_is_a_sentence_of_the_farm() -> None:
    assert {row for skill in ALL for row in skill.failures()} == {*PROVOKED, *SENTENCES, *FOREIGN}


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("failures") / "place")
    maker = BundleMaker(place.folder / "var")
    week_of(maker, nights=5)
    night_of(maker, 6, 1.3)
    maker.warehouse.unlink()
    code, printed = place.run("etfarm warehouse load")
    assert code == 0, printed
    return place


@pytest.mark.thorough
@pytest.mark.parametrize("row", PROVOKED)
def test_a_failure_prints_what_the_row_states(nights: Place, row: str) -> None:
    _, printed = nights.run(PROVOKED[row])
    assert any(is_in(row, line) for line in printed.splitlines()), printed


@pytest.mark.parametrize("row", SENTENCES)
def test_a_sentence_of_a_row_is_in_the_code(row: str) -> None:
    text = (ROOT / SENTENCES[row]).read_text(encoding="utf-8")
    assert [part for part in re.split(r"\.{3}|: ", row) if part not in text] == []
