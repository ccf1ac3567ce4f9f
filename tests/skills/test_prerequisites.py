"""Each prerequisite of each skill, broken: its check fails, and what it prints is in the skill's `When it fails`."""

from pathlib import Path

import pytest

from tests.skills.place import Place
from tests.skills.skill import Skill, is_in
from tests.skills.test_skills import ALL

# As Python prints it where torch is not installed.
_NO_TORCH = "echo 'raise ModuleNotFoundError(f\"No module named {__name__!r}\")' >torch.py"
_NO_INVENTORIES = "rm deployments"
_UNREACHABLE = """rm deployments
mkdir -p deployments/inventories
echo 'devices: [{name: mac, transport: ssh, address: mac.invalid}]' >deployments/inventories/local.yaml"""
_UNREADABLE = _UNREACHABLE.replace(", address: mac.invalid", "")
# The check of a prerequisite -> what breaks it, a program that is not installed (`-name`) or a script -> the row that
# explains it in each skill with this check; one of them, if there are several.
BROKEN: dict[str, dict[str, str]] = {
    "ls Makefile pyproject.toml": {"rm Makefile": "Makefile...No such file or directory"},
    "python3 -c": {"-python3": "python3:...not found"},
    "c++ --version": {"-c++": "c++:...not found"},
    "git --version": {"-git": "git:...not found"},
    "etfarm --version": {"-etfarm": "etfarm:...not found"},
    "python -c 'import torch, executorch'": {_NO_TORCH: "No module named 'torch'"},
    "python -c 'import ziglang'": {_NO_TORCH.replace("torch.py", "ziglang.py"): "No module named 'ziglang'"},
    "etfarm devices --inventory deployments/inventories/local.yaml": {
        _NO_INVENTORIES: "no such inventory",
        _UNREACHABLE: "unreachable",
        _UNREADABLE: "needs an...a host name or an ssh_config alias",
    },
    'etfarm sql "SELECT count(*) FROM session_latency"': {"": "no snapshot was published here yet"},
    "etfarm verdicts --fail-on never": {"": "no snapshot was published here yet"},
    "etfarm warehouse path": {"": "no snapshot was published here yet"},
}


def rows_of(script: str) -> dict[str, str]:
    """Return what breaks a check, with the row that explains it."""
    return next((rows for check, rows in BROKEN.items() if script.startswith(check)), {})


@pytest.mark.parametrize("skill", ALL, ids=lambda skill: skill.name)
def test_every_prerequisite_of_a_skill_has_a_row_that_explains_it(skill: Skill) -> None:
    for check in skill.checks():
        assert set(rows_of(check.script).values()) & set(skill.failures()), f"{skill.path}:{check.line}"


@pytest.mark.thorough
@pytest.mark.parametrize(("check", "how"), [(check, how) for check, rows in BROKEN.items() for how in rows])
def test_a_broken_prerequisite_fails_its_check_and_prints_its_row(check: str, how: str, tmp_path: Path) -> None:
    scripts = {block.script for skill in ALL for block in skill.checks()}
    (script,) = (each for each in scripts if each.startswith(check))
    place = Place(tmp_path / "place")
    if how.startswith("-"):
        place.hide(how[1:])
    else:
        assert place.run(how) == (0, "")
    code, printed = place.run(script)
    assert code != 0, printed
    assert any(is_in(BROKEN[check][how], line) for line in printed.splitlines()), printed
