"""What needs a phone or a Mac, in the virtual lab: the blocks of skills that are marked so."""

from pathlib import Path
from typing import Any

import pytest

from tests.skills.place import place_for
from tests.skills.skill import Skill
from tests.skills.test_skills import ALL, follow


@pytest.mark.parametrize(
    "skill", [each for each in ALL if any(block.needs_lab for block in each.blocks())], ids=lambda skill: skill.name
)
def test_a_skill_is_followed_in_the_virtual_lab(skill: Skill, lab_up: Any, tmp_path: Path) -> None:
    place = place_for(skill.name, tmp_path / "place")
    for block in skill.blocks():
        if block.needs_lab:
            follow(skill, place, block)
