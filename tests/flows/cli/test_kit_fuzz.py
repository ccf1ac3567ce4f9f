"""Hostile folders of the profiling kit, of which `make test` imports two hundred."""

import pytest

from tests.fixtures.command import run_python


@pytest.mark.long
@pytest.mark.fault
@pytest.mark.parametrize(("seed", "cases"), [(1, 3000)])
@pytest.mark.thorough
def test_hostile_folders_are_imported_or_refused_in_one_sentence(seed: int, cases: int) -> None:
    ended = run_python("-m", "tests.fixtures.kit_fuzz", "--seed", seed, "--cases", cases, "--minutes", 3)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    # then neither all were accepted nor all refused
    assert all(f" {code}: " in ended.stdout.replace("{", " ") for code in (0, 1, 2)), ended.stdout
