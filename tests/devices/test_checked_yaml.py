"""Mistakes in YAML files: one sentence each, with the file, the line and what would be right."""

from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from devices.checked_yaml import load_checked
from devices.errors import InputError

# Four lines that mean a hundred thousand values.
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in ("ab", "bc", "cd", "de")
)


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["red", "green"]
    size: int = 1

    @field_validator("size")
    @classmethod
    def _even(cls, size: int) -> int:
        if size % 2 and size != 1:
            raise ValueError("the size must be even")
        return size


class Thing(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    parts: list[Part] = Field(default_factory=list)
    best: Part | None = None
    file: Path | None = None
    labels: dict[str, str] = Field(default_factory=dict)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "thing.yaml"


def complaint(file: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_checked(file, Thing)
    text = str(caught.value)
    assert "\n" not in text
    return text.replace(str(file), "F")


def test_a_right_file_becomes_its_model(file: Path) -> None:
    file.write_text("name: größe\nparts:\n  - {kind: red, size: 2}\nlabels: {site: lab-a}\n", encoding="utf-8")
    thing = load_checked(file, Thing)
    assert thing == Thing(name="größe", parts=[Part(kind="red", size=2)], labels={"site": "lab-a"})


NO_KEYS = "1: the file must consist of keys and values"
MISTAKES = [
    ("[" * 1000, "1: the brackets are nested too deeply"),
    (ALIASES, "1: its aliases stand for more than 50000 values"),
    ("# nothing\n", "1: `name`: required key is missing"),
    ("- a\n- b\n", NO_KEYS),
    ("parts: []\n", "1: `name`: required key is missing"),
    ("name: a\nparts:\n  - kind: red\n  - size: 2\n", "4: `parts.1.kind`: required key is missing"),
    ("name: a\nnmae: b\n", "2: `nmae`: unknown key; did you mean `name`?"),
    ("name: a\nparts:\n  - kind: red\n    colour: 1\n", "4: `parts.0.colour`: unknown key; the keys are kind, size"),
    ("name: a\nbest:\n  kind: red\n  colour: 1\n", "4: `best.colour`: unknown key; the keys are kind, size"),
    ("name: a\nparts:\n  - kind: blue\n", "3: `parts.0.kind`: input should be 'red' or 'green', not 'blue'"),
    ("name: a\nparts:\n- kind: red\n  size: 3\n", "4: `parts.0.size`: the size must be even, not 3"),
    ("name: a\nfile: 5\n", "2: `file`: must be one path, written as text, not 5"),
    ("nmae: a\n", "1: `nmae`: unknown key"),
    ("name: a\nparts: [red]\n", "2: `parts.0`: must consist of keys and values"),
    ("name: [1]\n", "1: `name`: input should be a valid string"),
    ("name: a\nparts: {}\n", "2: `parts`: input should be a valid list"),
    ("name: a\nlabels: {slot: on}\n", '2: `labels.slot`: input should be a valid string, not on; write "on" in quotes'),
    ("name: a\nlabels: {os: 1.10}\n", '2: `labels.os`: input should be a valid string, not 1.10; write "1.10" in quo'),
    ("name: a\nbest:\n  kind: red\n  size: 1:30\n", '4: `best.size`: YAML reads 1:30 as 90, in base 60; write "1:30"'),
    ("name: a\nlabels: {a: 1:30.5}\n", '2: `labels.a`: YAML reads 1:30.5 as 90.5, in base 60; write "1:30.5"'),
    ("name: a\nparts:\n- {kind: red, size: 010}\n", '3: `parts.0.size`: YAML reads 010 as 8, in base 8; write "010"'),
    ("name: a\nlabels: {1:30: b}\n", '2: `labels.1:30`: YAML reads 1:30 as 90, in base 60; write "1:30"'),
    ("name: a\nbest:\n  kind: red\n  size: yes\n", "4: `best.size`: must be a number, not yes"),
    ("name: a\nparts: [{kind: red, size: true}]\n", "2: `parts.0.size`: must be a number, not true"),
    ("name: a\nname: b\n", "2: duplicate key `name`; remove one"),
    ("name: a\nbest: {kind: red, kind: green}\n", "2: duplicate key `kind`; remove one"),
    ("name: a\n\tparts: []\n", "2: not valid YAML: found character '\\t'"),
    ("name: 'a\n", "2: not valid YAML: found unexpected end of stream"),
    ("name: a\n---\nname: b\n", "2: not valid YAML: but found another document"),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_a_mistake_is_one_sentence_with_its_place(file: Path, text: str, expected: str) -> None:
    file.write_text(text)
    assert complaint(file).startswith(f"F:{expected}")


def test_numbers_and_texts_that_mean_what_they_look_like_are_read(file: Path) -> None:
    file.write_text(
        'name: "1:30"\nparts: [{kind: red, size: 0}, {kind: red, size: 1_000}]\nlabels: {a: "010", b: 08:15}\n'
    )
    thing = load_checked(file, Thing)
    assert [part.size for part in thing.parts] == [0, 1000]
    assert (thing.name, thing.labels) == ("1:30", {"a": "010", "b": "08:15"})


def test_a_missing_file_a_folder_and_bytes_that_are_not_utf8_are_refused(tmp_path: Path, file: Path) -> None:
    assert complaint(file) == "F: no such file; `etfarm init` writes files to begin with"
    file.write_bytes(b"name: \xff\xfe\n")
    assert complaint(file).startswith("F: cannot be read as UTF-8 text (")
    assert complaint(tmp_path).startswith("F: cannot be read as UTF-8 text (")
