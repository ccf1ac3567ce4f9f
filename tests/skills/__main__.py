"""Follow a skill by hand and print what each block prints: python -m tests.skills NAME."""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.skills.place import place_for
from tests.skills.skill import LAB, SKILLS, Skill


def follow(skill: Skill, folder: Path) -> None:
    place = place_for(skill.name, folder)
    for block in [*skill.checks(), *skill.blocks()]:
        print(f"--- line {block.line}: {block.script.strip()}", flush=True)
        if block.script.startswith(LAB):
            continue
        began = time.monotonic()
        code, printed = place.run(block.script)
        print(f"{printed}--- exit {code}, {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    scratch = Path(tempfile.mkdtemp(prefix="etfarm-skill-"))
    try:
        follow(next(Skill(path) for path in SKILLS if path.parent.name == sys.argv[1]), scratch / "place")
    finally:
        shutil.rmtree(scratch)
