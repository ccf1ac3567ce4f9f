"""A skill of docs/skills as data: what its SKILL.md states, block by block, each with its line.

The contract of a SKILL.md:

- Front matter has `name`, the folder's name, and `description`, which states when to use it ("Use when ...").
- The sections are Prerequisites, Steps, What a right result looks like, When it fails.
- Prerequisites is a table of `needed | check`; a check is one command in backticks, which fails if it is not met.
- A ```sh block is run by `sh -e` as written, in the order of the page. A variable that a block sets is set in those
  after it, and so is the folder that it changes to.
- A ```text block right after it is what the block prints: each line occurs in it, in this order. `...` stands for
  anything in a line. A figure with a decimal point or in percent was measured and stands for any figure. Runs of
  spaces are one.
- `# needs the virtual lab` in a block's first line: only where the lab is up.
- When it fails is a table of `printed | cause | what to do`; what is printed is in backticks, with the same `...`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.fixtures.paths import ROOT

SKILLS = sorted((ROOT / "docs/skills").glob("*/SKILL.md"))
SECTIONS = ["Prerequisites", "Steps", "What a right result looks like", "When it fails"]
LAB = "# needs the virtual lab"
_BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
_FIGURE = re.compile(r"(?<![\w.-])[\d,]*\d\.\d+(?:e[-+]\d+)?|(?<![\w.-])\d+(?= (?:to [+-]?\d+ )?%)")


@dataclass(frozen=True)
class Block:
    """Commands of a skill with the line of the page, and the lines that they are to print."""

    line: int
    script: str
    printed: list[str]

    @property
    def needs_lab(self) -> bool:
        return self.script.startswith(LAB)


@dataclass(frozen=True)
class Skill:
    """One SKILL.md."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.parent.name

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def front_matter(self) -> dict[str, str]:
        fields: dict[str, str] = yaml.safe_load(self.text.split("---\n")[1])
        return fields

    def section(self, title: str) -> str:
        return self.text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]

    def blocks(self) -> list[Block]:
        return [
            Block(self.text.count("\n", 0, match.start()) + 1, match[1], (match[2] or "").splitlines())
            for match in _BLOCK.finditer(self.text)
        ]

    def checks(self) -> list[Block]:
        first = self.text.count("\n", 0, self.text.index("\n## Prerequisites\n")) + 2
        rows = enumerate(self.section("Prerequisites").splitlines(), first + 1)
        return [Block(line, row.rpartition(" | `")[2].rpartition("` |")[0], []) for line, row in rows if "` |" in row]

    def failures(self) -> list[str]:
        return re.findall(r"^\| `([^`]+)` \|", self.section("When it fails"), re.MULTILINE)


def is_in(expected: str, printed: str) -> bool:
    parts = [re.escape(" ".join(part.split())) for part in _FIGURE.sub("\0", expected).split("...")]
    pattern = ".*".join(parts).replace(re.escape("\0"), r"[\d,]*\d(?:\.\d+)?(?:e[-+]\d+)?")
    return re.search(pattern, " ".join(printed.split())) is not None


def missing(expected: list[str], printed: str) -> str | None:
    lines = iter(printed.splitlines())
    return next((each for each in expected if not any(is_in(each, line) for line in lines)), None)
