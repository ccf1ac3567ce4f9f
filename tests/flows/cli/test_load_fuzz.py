"""Hostile bundles in folders, archives and object storage, of which `make test` loads some."""

import pytest

from tests.fixtures.command import run_python

pytest.importorskip("fsspec", reason="needs the extra s3: pip install -e '.[dev]'")


@pytest.mark.long
@pytest.mark.fault
@pytest.mark.parametrize(("seed", "cases"), [(1, 1000)])
@pytest.mark.thorough
def test_hostile_bundles_are_loaded_or_refused_in_one_sentence(seed: int, cases: int) -> None:
    ended = run_python("-m", "tests.fixtures.load_fuzz", "--seed", seed, "--cases", cases, "--minutes", 3)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    # then neither all were accepted nor all refused
    assert all(f" {code}: " in ended.stdout.replace("{", " ") for code in (0, 1)), ended.stdout
