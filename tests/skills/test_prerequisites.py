"""Each prerequisite of each skill, broken: its check fails, and what it prints is in the skill's `When it fails`."""

from pathlib import Path

import pytest

from tests.skills.place import Place
from tests.skills.skill import is_in
from tests.skills.test_skills import ALL

# As Python prints it where torch is not installed.
_NO_TORCH = "echo 'raise ModuleNotFoundError(f\"No module named {__name__!r}\")' >torch.py"
_NO_INVENTORIES = "rm deployments"
_UNREACHABLE = """rm deployments
mkdir -p deployments/inventories
echo 'devices: [{name: mac, transport: ssh, address: mac.invalid}]' >deployments/inventories/local.yaml"""
_UNREADABLE = _UNREACHABLE.replace(", address: mac.invalid", "")
_UNMEASURED = ""
# What breaks a prerequisite, a program that is not installed (`-name`) or a script -> the row that explains it.
EXPLAINED_BY = {
    "rm Makefile": "Makefile...No such file or directory",
    "-python3": "python3:...not found",
    "-c++": "c++:...not found",
    "-git": "git:...not found",
    "-etfarm": "etfarm:...not found",
    _NO_TORCH: "No module named 'torch'",
    _NO_TORCH.replace("torch.py", "ziglang.py"): "No module named 'ziglang'",
    _NO_INVENTORIES: "no such inventory",
    _UNREACHABLE: "unreachable",
    _UNREADABLE: "needs an...a host name or an ssh_config alias",
    _UNMEASURED: "no snapshot was published here yet",
}
# Skill, prerequisite by its row -> what breaks it.
BROKEN: dict[tuple[str, int], str] = {
    ("set-up-a-farm", 0): "rm Makefile",
    ("set-up-a-farm", 1): "-python3",
    ("set-up-a-farm", 2): "-c++",
    ("set-up-a-farm", 3): "-git",
    ("onboard-a-model", 0): "-etfarm",
    ("onboard-a-model", 1): _NO_TORCH,
    ("onboard-a-model", 2): "-c++",
    ("run-a-sweep", 0): "-etfarm",
    ("run-a-sweep", 1): _NO_INVENTORIES,
    ("run-a-sweep", 2): _NO_TORCH,
    ("run-a-sweep", 3): "-c++",
    ("read-the-results", 0): "-etfarm",
    ("read-the-results", 1): _UNMEASURED,
    ("explain-a-regression", 0): "-etfarm",
    ("explain-a-regression", 1): _UNMEASURED,
    ("explain-a-regression", 2): _NO_INVENTORIES,
    ("gate-a-pull-request", 0): "-etfarm",
    ("gate-a-pull-request", 1): "-git",
    ("gate-a-pull-request", 2): _NO_INVENTORIES,
    ("gate-a-pull-request", 3): _NO_TORCH,
    ("gate-a-pull-request", 4): "-c++",
    ("build-runners", 0): "-etfarm",
    ("build-runners", 1): _NO_TORCH,
    ("build-runners", 2): "-c++",
    ("build-runners", 3): _NO_TORCH.replace("torch.py", "ziglang.py"),
    ("validate-a-farm", 0): "-etfarm",
    ("validate-a-farm", 1): _UNREACHABLE,
    ("validate-a-farm", 2): _NO_TORCH,
    ("validate-a-farm", 3): "-c++",
    ("keep-a-farm", 0): "-etfarm",
    ("keep-a-farm", 1): _UNMEASURED,
    ("add-a-device", 0): "-etfarm",
    ("add-a-device", 1): _UNREADABLE,
}


def test_every_prerequisite_of_every_skill_is_broken_here() -> None:
    assert set(BROKEN) == {(skill.name, row) for skill in ALL for row in range(len(skill.checks()))}


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "row"), BROKEN)
def test_a_broken_prerequisite_fails_its_check_and_is_explained(name: str, row: int, tmp_path: Path) -> None:
    skill = next(skill for skill in ALL if skill.name == name)
    check, how = skill.checks()[row], BROKEN[name, row]
    place = Place(tmp_path / "place")
    if how.startswith("-"):
        place.hide(how[1:])
    else:
        assert place.run(how) == (0, "")
    code, printed = place.run(check.script)
    assert code != 0, f"{skill.path}:{check.line} does not notice it\n{printed}"
    row_of_it = EXPLAINED_BY[how]
    assert row_of_it in skill.failures()
    assert any(is_in(row_of_it, line) for line in printed.splitlines()), f"{skill.path}:{check.line}:\n{printed}"
