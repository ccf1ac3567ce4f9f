"""Skills give the same commands in sh, bash and zsh, the shell of a Mac: nothing depends on how words are split."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.skills.skill import Skill
from tests.skills.test_skills import BY_NAME

SHELLS = {"sh": ["sh"], "bash": ["bash", "--norc"], "zsh": ["zsh", "-f"]}
# Stand-ins that print their words, and the folders and files that commands of a shell need.
_STAND_IN = "#!/bin/sh\nprintf '%s' \"${0##*/}\"; printf ' <%s>' \"$@\"; echo\n"
_PROGRAMS = ("etfarm", "make", "python", "python3", "git", "c++")
_FILES = (
    "Makefile",
    "pyproject.toml",
    "pr/a.xml",
    "pr/a.md",
    "var/bundles/session.json",
    "var/devices/health.json",
    "var/runners/linux-x86_64/1/manifest.json",
    "var/runners/linux-aarch64/1/manifest.json",
)


@BY_NAME
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_skill_gives_the_same_commands_in_every_shell(skill: Skill, shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    expected, printed = (commands_of(skill, each, tmp_path / each) for each in ("sh", shell))
    assert "etfarm <" in expected
    assert printed == expected


def commands_of(skill: Skill, shell: str, folder: Path) -> str:
    """What all blocks of a skill print in a shell in which the programs only print their words."""
    for name in _FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}", encoding="utf-8")
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    for name in _PROGRAMS:
        (programs / name).write_text(_STAND_IN, encoding="utf-8")
        (programs / name).chmod(0o755)
    script = "\n".join(block.script for block in [*skill.checks(), *skill.blocks()])
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(
        [*SHELLS[shell], "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return ended.stdout.replace(str(folder), "FOLDER")
