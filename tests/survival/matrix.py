"""The fault matrix: a table of all tests that break something, written from their marker `fault`.

Run: python -m tests.survival.matrix [FILE]
"""

import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest

from tests.fixtures.paths import ROOT

README = Path(__file__).parent / "README.md"
_MARKER = "pytest.mark.fault("
_HEAD = """# Fault matrix

{rows} faults in {cases} cases: something is killed, cut, filled, changed or slowed. In each, 0 results are lost, 0 are
doubled and 0 failures look like success. `.venv/bin/pytest -m fault --durations=0` runs them and prints their times.
`python -m tests.survival.matrix` writes this file.

| stage | what is done | what holds | test | cases |
| --- | --- | --- | --- | ---: |
"""


@dataclass(frozen=True, order=True)
class Case:
    """One case of the matrix."""

    stage: str
    done: str
    holds: str
    test: str


class _Collector:
    """Plugin of pytest that keeps the cases of the collected tests."""

    cases: list[Case]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.cases = [case_of(item) for item in session.items]


def case_of(item: pytest.Item) -> Case:
    """Return the case of a marked test; a name in braces in the marker stands for that parameter of the test."""
    marker = item.get_closest_marker("fault")
    assert marker is not None
    callspec = getattr(item, "callspec", None)
    parameters = callspec.params if callspec else {}
    test = item.nodeid.partition("[")[0]
    return Case(**{key: text.format(**parameters) for key, text in marker.kwargs.items()}, test=test)


def text_of(cases: Iterable[Case]) -> str:
    """Return the content of the matrix's file; cases of a test that differ only in its parameters share a row."""
    counts = Counter(cases)
    lines = [[*astuple(case)[:-1], f"`{case.test}`", str(count)] for case, count in sorted(counts.items())]
    rows = "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
    return _HEAD.format(rows=len(lines), cases=counts.total()) + rows


def main() -> None:
    """Collect all marked tests and write the matrix to the file that is named, or to README.md beside this file."""
    file = Path(sys.argv[1]) if sys.argv[1:] else README
    os.chdir(ROOT)
    collector = _Collector()
    marked = [str(path) for path in sorted(Path("tests").rglob("test_*.py")) if _MARKER in path.read_text("utf-8")]
    code = pytest.main(["--collect-only", "-qqq", "-n0", "-m", "fault", *marked], [collector])
    if code != pytest.ExitCode.OK:
        sys.exit(f"the tests could not be collected: {code!r}")
    file.write_text(text_of(collector.cases), encoding="utf-8")


if __name__ == "__main__":
    main()
