"""The fault matrix: prints a table of all tests that break something, made from their marker `fault`.

Run: python -m tests.survival.matrix
"""

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest

from tests.fixtures.paths import ROOT

_MARKER = "pytest.mark.fault("
_HEAD = """{rows} faults in {cases} cases

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
    """Return the matrix; cases of a test that differ only in its parameters share a row."""
    counts = Counter(cases)
    lines = [[*astuple(case)[:-1], f"`{case.test}`", str(count)] for case, count in sorted(counts.items())]
    rows = "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
    return _HEAD.format(rows=len(lines), cases=counts.total()) + rows


def main() -> None:
    """Collect all marked tests and print their matrix."""
    os.chdir(ROOT)
    collector = _Collector()
    marked = [str(path) for path in sorted(Path("tests").rglob("test_*.py")) if _MARKER in path.read_text("utf-8")]
    with contextlib.redirect_stdout(sys.stderr):  # pytest's own list of the tests
        code = pytest.main(["--collect-only", "-qqq", "-n0", "-m", "fault", *marked], [collector])
    if code != pytest.ExitCode.OK:
        sys.exit(f"the tests could not be collected: {code!r}")
    sys.stdout.write(text_of(collector.cases))


if __name__ == "__main__":
    main()
