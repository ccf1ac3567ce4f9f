"""ETDumps that were mutated in 21,000 ways, of which `make test` reads a thousand."""

import pytest

from tests.fixtures.etdump_fuzz import Outcome, large_files, mutated, outcome_of, small_files

PARTS = range(1000, 21_000, 5000)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("first", "last"), [(0, 999), *(pytest.param(each, each + 4999, marks=pytest.mark.thorough) for each in PARTS)]
)
def test_mutated_etdumps_are_read_or_refused_in_one_sentence(first: int, last: int) -> None:
    # when every mutation of this part is read
    outcomes = {index: outcome_of(mutated(0, index)) for index in range(first, last + 1)}
    # then every one kept the promises, and neither all were accepted nor all refused
    assert {index: outcome.failure for index, outcome in outcomes.items() if outcome.failure} == {}
    assert 0.05 < sum(outcome.accepted for outcome in outcomes.values()) / len(outcomes) < 0.5


@pytest.mark.parametrize("data", [*small_files(), *large_files()], ids=len)
def test_undamaged_etdumps_of_every_shape_take_less_than_four_times_their_size(data: bytes) -> None:
    # given a file in which nested scopes, overlapping operators or distinct names take the most memory for its size
    assert outcome_of(data) == Outcome(accepted=True)
