"""Names say what a thing is in words that a newcomer searches for."""

import ast
import builtins
import functools
import itertools
import keyword
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from spellchecker import SpellChecker

from tests.fixtures.paths import ROOT

PACKAGES = ("flows", "tasks", "devices", "sql", "deployments")
MAX_OTHER_WORDS = 150
OTHER_WORDS = ROOT / "tests/words.txt"
# Names that say nothing to whoever reads only their line, and what stands in their place.
REPLACED = {
    r"(found|known|given|made|wanted|told|shown|stated|kept)s?": "a noun: the thing that was found, such as `bundles`",
    r"(most|least)_\w+": "`max_` or `min_`",
    r"\w+_letters|letters": "`chars`",
    r"way_on|next_step": "`remedy`",
    r"middle_(half|mean)": "`interquartile_mean`",
    r"tonight\w*": "`night`",
}


def python_names(path: Path, *, definitions_only: bool) -> Iterator[str]:
    """Yield the names that a module gives to functions and classes, and to parameters, variables and attributes."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not name.startswith(("__", "pytest_")):  # of Python, and hooks of pytest
                    yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                if not definitions_only:
                    yield name


def all_names() -> Iterator[tuple[str, str]]:
    """Yield each name of product and tests with its file; in tests, those of files, functions and classes."""
    for package in (*PACKAGES, "tests"):
        for path in sorted((ROOT / package).rglob("*.*")):
            if path.suffix in (".py", ".sql") and path.name != "__init__.py":
                file = path.relative_to(ROOT).as_posix()
                yield path.stem, file
                if path.suffix == ".py":
                    yield from ((name, file) for name in python_names(path, definitions_only=package == "tests"))
                else:
                    yield from ((name, file) for name in re.findall(r"\bAS (\w+)", path.read_text("utf-8")))


@functools.cache
def names_with_files() -> list[tuple[str, str]]:
    """Return all names; read once, and only by the worker that tests them."""
    return list(all_names())


def words(name: str) -> list[str]:
    return re.findall(r"[a-z]{2,}", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower())


def plain_words() -> set[str]:
    """Words that need no reason: of Python and its library, of dependencies, of the glossary."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    dependencies = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8")
    texts = [
        *(re.split(r"[^\w-]", each)[0] for each in dependencies),
        glossary,
        *sys.stdlib_module_names,
        project["name"],
    ]
    return {word for text in (*texts, *dir(builtins), *keyword.kwlist, "init") for word in words(text)}


def other_words() -> dict[str, str]:
    """Words beside a plain dictionary and the glossary, each with its reason."""
    lines = OTHER_WORDS.read_text("utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines)


def test_names_are_made_of_plain_words_the_glossary_and_a_short_list() -> None:
    allowed = plain_words() | other_words().keys()
    files = {word: f"{file}: {name}" for name, file in names_with_files() for word in words(name)}
    dictionary = SpellChecker()
    roots = {word: re.sub(r"^(un|non|pre|de)|(?<!s)s$", "", word) for word in dictionary.unknown(files)}
    unknown = {
        word for word, root in roots.items() if word not in allowed and root not in allowed | dictionary.known({root})
    }
    assert sorted(f"{word} ({files[word]})" for word in unknown) == []


def test_every_other_word_has_a_reason_and_is_used() -> None:
    used = {word for name, _ in names_with_files() for word in words(name)}
    assert len(other_words()) <= MAX_OTHER_WORDS
    assert sorted(word for word, reason in other_words().items() if word not in used or len(reason) < 5) == []


def test_no_name_is_a_word_that_says_nothing_alone() -> None:
    names = [(name, file) for name, file in names_with_files() if name != "given" or not file.startswith("tests/")]
    for pattern, instead in REPLACED.items():
        vague = {f"{file}: {name}" for name, file in names if re.fullmatch(pattern, name.strip("_"))}
        assert sorted(vague) == [], f"use {instead}"
