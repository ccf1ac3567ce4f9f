"""The pinned versions install on every Python that the project supports."""

import re
import tomllib
from importlib.metadata import distributions

from packaging.specifiers import SpecifierSet

from tests.fixtures.paths import ROOT


def test_no_pinned_version_needs_a_newer_python_than_the_project() -> None:
    # given the oldest supported Python, and the versions in this environment that are pinned
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = re.findall(r">=([\d.]+)", project["requires-python"])[0] + ".0"
    pins = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()}
    needed = {
        f"{each.name} {each.version}": each.metadata["Requires-Python"]
        for each in distributions()
        if each.name.lower() in pins and each.metadata["Requires-Python"]
    }
    # then each accepts it
    assert needed
    assert [name for name, range_ in needed.items() if not SpecifierSet(range_).contains(oldest)] == []
