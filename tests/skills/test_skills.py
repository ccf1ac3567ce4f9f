"""Skills run: each SKILL.md of docs/skills has the common form, and its commands print what it states."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sql.question import parameters_in
from tests.skills.place import Place, place_for
from tests.skills.skill import SECTIONS, SKILLS, Block, Skill, missing
from tests.test_manual import command_of

_HERE = re.compile(r"<<'END'\n.*?^END$", re.DOTALL | re.MULTILINE)
ALL = [Skill(path) for path in SKILLS]
BY_NAME = pytest.mark.parametrize("skill", ALL, ids=lambda skill: skill.name)


@BY_NAME
def test_every_skill_has_the_common_form(skill: Skill) -> None:
    fields = skill.front_matter()
    assert fields["name"] == skill.name
    assert "Use when" in fields["description"]
    assert len(skill.text.splitlines()) <= 150
    assert re.findall(r"^## (.+)$", skill.text, re.MULTILINE) == SECTIONS
    assert skill.checks()
    assert skill.blocks()
    assert skill.failures()


@BY_NAME
def test_every_command_of_a_skill_exists_with_its_options(skill: Skill) -> None:
    scripts = "\n".join(block.script for block in [*skill.checks(), *skill.blocks()])
    of_sql = {f"--{name}" for name in ("model", "device", *parameters_in(scripts))}
    unquoted = re.sub(r"\"[^\"]*\"|'[^']*'", "x", _HERE.sub("", scripts).replace("\\\n", " "))
    for written in re.findall(r"\b(etfarm(?: [^\s|&;<>]+)+)", unquoted):
        command, words = command_of(written)
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        unknown = {word for word in words if re.match(r"--?[a-z]", word)} - options - {"--version"} - of_sql
        assert unknown == set(), written


def test_no_block_depends_on_how_a_shell_splits_words() -> None:
    """In zsh, the shell of a Mac, a variable without quotes is one word; in sh and bash it is several."""
    script = "\n".join(block.script for skill in ALL for block in [*skill.checks(), *skill.blocks()])
    words = [f"{Path(sys.executable).parent}/shellcheck", "--shell=sh", "--include=SC2086,SC2046", "--format=gcc", "-"]
    checked = subprocess.run(words, input=script, capture_output=True, text=True, check=False)
    assert checked.stdout == ""


def follow(skill: Skill, place: Place, block: Block) -> None:
    """Run a block; fail with the skill's file and the block's line unless it ends well and prints what is stated."""
    code, printed = place.run(block.script)
    where = f"{skill.path}:{block.line}"
    if code != 0:
        pytest.fail(f"{where}: exit code {code}\n{printed}", pytrace=False)
    if (line := missing(block.printed, printed)) is not None:
        pytest.fail(f"{where}: not printed: {line}\n{printed}", pytrace=False)


@pytest.mark.skill
@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.timeout(900)
@BY_NAME
def test_a_skill_followed_in_order_prints_what_it_states(skill: Skill, tmp_path: Path) -> None:
    place = place_for(skill.name, tmp_path / "place")
    for block in [*skill.checks(), *skill.blocks()]:
        if not block.needs_lab:
            follow(skill, place, block)
