"""The fault matrix: prints a table of all tests with the marker `fault`, whose names say what is done and what holds.

Run: python -m tests.survival.matrix
"""

import contextlib
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fixtures.paths import ROOT

_HEAD = """{rows} faults in {cases} cases

| where | what is done and holds | cases |
| --- | --- | ---: |
"""


class _Collector:
    """Plugin of pytest that counts the cases of each collected test."""

    cases: Counter[tuple[str, str]]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        names = (item.nodeid.partition("[")[0].rpartition("::") for item in session.items)
        self.cases = Counter((file, name.removeprefix("test_").replace("_", " ")) for file, _, name in names)


def main() -> None:
    os.chdir(ROOT)
    collector = _Collector()
    marked = [str(path) for path in sorted(Path("tests").rglob("test_*.py")) if "mark.fault" in path.read_text("utf-8")]
    with contextlib.redirect_stdout(sys.stderr):  # pytest's own list of the tests
        code = pytest.main(["--collect-only", "-qqq", "-n0", "-m", "fault", *marked], [collector])
    if code != pytest.ExitCode.OK:
        sys.exit(f"the tests could not be collected: {code!r}")
    rows = [f"| `{file}` | {name} | {count} |\n" for (file, name), count in sorted(collector.cases.items())]
    sys.stdout.write(_HEAD.format(rows=len(rows), cases=collector.cases.total()) + "".join(rows))


if __name__ == "__main__":
    main()
