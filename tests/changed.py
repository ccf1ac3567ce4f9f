"""The test files that a change most likely breaks, a line each: `make test CHANGED=1` runs them, CI runs all.

Run: python -m tests.changed [BASE]

These are the tests in the folder that mirrors that of a changed file, and those that import it, directly or not.
Imports by fixtures and by the list of commands do not count, since nearly every test reaches every module that way.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

import grimp

from tests.fixtures.paths import ROOT

_PACKAGES = ("flows", "tasks", "devices", "sql", "deployments", "tests")
_FOR_ALL = ("pyproject.toml", "constraints.txt", "Makefile", "tests/conftest.py")
_ALWAYS = ("tests/test_layers.py", "tests/test_manual.py")
_FIXTURE = re.compile(r"^@pytest\.fixture.*\n(?:async )?def (\w+)", re.MULTILINE)


def changed_files(base: str) -> list[str]:
    """Return the files that differ from where this branch left `base`, with those that are not yet committed."""
    start = _git("merge-base", "HEAD", base).strip()
    return [
        *_git("diff", "--name-only", start).splitlines(),
        *_git("ls-files", "-o", "--exclude-standard").splitlines(),
    ]


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def affected_tests(files: list[str]) -> set[str]:
    """Return the test files that these files affect, or the folder `tests` if they concern all."""
    if not set(_FOR_ALL).isdisjoint(files):
        return {"tests"}
    graph = grimp.build_graph(*_PACKAGES, cache_dir=None)
    for module in [each for each in graph.modules if each == "flows.cli.main" or each.startswith("tests.fixtures.")]:
        graph.remove_module(module)
    affected = set(_ALWAYS)
    for file in map(PurePath, files):
        if file.is_relative_to("tests/fixtures"):
            affected.update(_users_of_fixtures(file))
        elif file.parts[0] in _PACKAGES:
            affected.update(_mirrored(file))
            module = ".".join(file.with_suffix("").parts) if file.suffix == ".py" else _package(file)
            if module in graph.modules:
                importers = graph.find_downstream_modules(module, as_package=file.suffix != ".py")
                affected.update(f"{each.replace('.', '/')}.py" for each in (module, *importers))
    return {file for file in affected if PurePath(file).name.startswith("test_") and (ROOT / file).is_file()}


def _package(file: PurePath) -> str:
    """Return the nearest package above a file that is no module, such as a view or a template."""
    folders = (folder for folder in file.parents if (ROOT / folder / "__init__.py").is_file())
    return ".".join(next(folders, PurePath()).parts)


def _mirrored(file: PurePath) -> Iterator[str]:
    """Yield the tests in the nearest folder of tests that mirrors the file's."""
    folder = file.parent if file.parts[0] == "tests" else "tests" / file.parent
    while not (ROOT / folder).is_dir():
        folder = folder.parent
    pattern = "**/test_*.py" if file.name == "conftest.py" else "test_*.py"
    yield from (str(path.relative_to(ROOT)) for path in (ROOT / folder).glob(pattern))


def _users_of_fixtures(file: PurePath) -> Iterator[str]:
    """Yield the tests that import a module of fixtures, or name one of its fixtures.

    Of another file: the tests that name its folder in tests/fixtures, and those of the fixtures that name it.
    """
    path, words = ROOT / file, {f"fixtures.{file.stem}"}
    if file.suffix == ".py":
        words.update(_FIXTURE.findall(path.read_text("utf-8")) if path.is_file() else [])
    else:
        folder = file.relative_to("tests/fixtures").parts[0]
        words = {f"fixtures/{folder}", f'with_name("{folder}")'}
        for module in (ROOT / "tests/fixtures").glob("*.py"):
            if not words.isdisjoint(_words_of(module)):
                yield from _users_of_fixtures(module.relative_to(ROOT))
    users = [path for path in (ROOT / "tests").glob("*/**/*.py") if path.name.startswith(("test_", "conftest"))]
    for user in users:
        if not words.isdisjoint(_words_of(user)):
            yield from _mirrored(user.relative_to(ROOT)) if user.stem == "conftest" else [str(user.relative_to(ROOT))]


def _words_of(path: Path) -> list[str]:
    return re.findall(r'with_name\("\w+"\)|fixtures[./]\w+|\w+', path.read_text("utf-8"))


if __name__ == "__main__":
    print("\n".join(sorted(affected_tests(changed_files(sys.argv[1] if len(sys.argv) > 1 else "main")))))
