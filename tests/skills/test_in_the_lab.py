"""What needs a phone or a Mac, in the virtual lab: the blocks of skills that are marked so."""

from pathlib import Path

import pytest

from tests.fixtures.lab import exclusive_lab
from tests.skills.place import place_for
from tests.skills.skill import Skill
from tests.skills.test_skills import ALL, follow


@pytest.mark.skill
@pytest.mark.parametrize(
    "skill", [each for each in ALL if any(block.needs_lab for block in each.blocks())], ids=lambda skill: skill.name
)
def test_a_skill_is_followed_in_the_virtual_lab(skill: Skill, tmp_path: Path) -> None:
    place = place_for(skill.name, tmp_path / "place")
    with exclusive_lab(tmp_path / "var"):  # down: the skill starts it
        for block in skill.blocks():
            if block.needs_lab:
                follow(skill, place, block)
