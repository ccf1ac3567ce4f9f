"""Runs that repeat the bytes of an earlier one: read as all others are, whatever is different in one of them."""

import struct
import tracemalloc
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given

from tasks.etdump import event_columns
from tasks.etdump.event_columns import read_event_columns
from tasks.etdump.flatbuffer import Buffer, CorruptTables
from tasks.etdump.repeated_runs import Template, longest_progression
from tests.fixtures.etdump_builder import (
    LOADING,
    METHOD,
    Allocation,
    Profile,
    Run,
    build_etdump,
    delegated,
    method,
)
from tests.fixtures.mutated_etdump import mutated


def execution(start: int, operator: str = "Softmax (NC, F32) #1", *more: Profile) -> Run:
    call = Profile("DELEGATE_CALL", start, start + 5, chain=1, instruction=0)
    return Run([delegated(operator, start, start + 4, 0), call, *more, method(start, start + 9)])


ALIKE = build_etdump([LOADING, *(execution(at) for at in range(10, 50, 10))])
UNLIKE = [
    *(execution(at) for at in (10, 20, 30)),
    execution(40, "Softmax (NC, F32) #2"),
    *(execution(at, "Softmax (NC, F32) #1", Profile("OPERATOR_CALL", at, at + 1)) for at in (50, 60, 70)),
    execution(0),  # a time of 0 is not in the file
    execution(80),
    execution(90),
]


def columns_of(data: bytes, least_events: int) -> tuple[list[object] | None, int]:
    """Return the columns, None if the file is refused, and how many runs were read by comparing them."""
    compared = 0

    def counted(template: Template, step: int, runs: int) -> Iterator[tuple[object, object]]:
        nonlocal compared
        compared -= 1  # the first is the run that the others are compared with
        for start, end in times(template, step, runs):
            compared += len(start)
            yield start, end

    times, buffer = Template.times, Buffer(data)
    with patch.object(event_columns, "_MIN_REPEATED_EVENTS", least_events), patch.object(Template, "times", counted):
        try:
            read = read_event_columns(buffer)
        except CorruptTables:
            return None, compared
    names = [read.names[name] for name in read.name_id]
    numbers = (read.run, read.kind, read.chain, read.instruction, read.start_ns, read.end_ns)
    return [names, *(column.tolist() for column in numbers)], compared


def test_runs_with_equal_bytes_are_read_by_comparing_them() -> None:
    # given four executions, of which the first has vtables between its events
    columns, compared = columns_of(ALIKE, 1)
    assert (columns, compared) == (columns_of(ALIKE, 10**9)[0], 2)


def test_runs_before_between_and_after_unlike_ones_keep_their_order() -> None:
    data = build_etdump(UNLIKE)
    assert columns_of(data, 1)[0] == columns_of(data, 10**9)[0]


@pytest.mark.parametrize("allocated", [64, 65])
def test_an_allocation_in_the_middle_of_a_run_is_not_its_event(allocated: int) -> None:
    runs = [Run([*execution(at).events[:2], Allocation(1, at + allocated), method(at, at + 9)]) for at in (10, 20, 30)]
    data = build_etdump(runs)
    assert columns_of(data, 1)[0] == columns_of(data, 10**9)[0]


def test_a_changed_byte_anywhere_is_read_or_refused_as_without_comparing() -> None:
    # of a run in the middle
    for at in range(700, 940):
        data = ALIKE[:at] + bytes([ALIKE[at] ^ 0x81]) + ALIKE[at + 1 :]
        assert columns_of(data, 1)[0] == columns_of(data, 10**9)[0], at


def test_runs_in_which_a_time_shares_bytes_with_another_field_are_read_one_by_one() -> None:
    # given methods whose end is read from the bytes of chain and instruction
    table = struct.pack("<10H", 20, 36, 24, 28, 32, 0, 0, 0, 8, 16)
    runs = [Run([Profile(METHOD, at, 99, chain=at + 5, instruction=0)]) for at in range(10, 100, 10)]
    data = build_etdump(runs).replace(table, table[:-2] + struct.pack("<H", 28))
    columns, compared = columns_of(data, 1)
    assert columns is not None
    assert columns[3] == list(range(15, 105, 10))
    assert compared == 0


def test_long_runs_take_no_more_memory_than_others() -> None:
    events = [Profile("OPERATOR_CALL", at, at, instruction=0) for at in range(1, 6000)]
    data = build_etdump([Run([*events, method(1, 9000)])] * 3)
    with patch.object(event_columns, "MAX_RUN_BYTES", 1 << 16):
        tracemalloc.start()
        read_event_columns(Buffer(data))
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak_bytes < 2 * len(data)


@pytest.mark.fault
@given(mutated())
def test_a_mutated_file_is_read_or_refused_as_without_comparing(data: bytes) -> None:
    if len(data) > 12:
        assert columns_of(data, 1)[0] == columns_of(data, 10**9)[0]


def test_the_longest_sequence_has_one_distance_and_one_length() -> None:
    at, lengths = np.array([9, 20, 30, 40, 50, 70, 90]), np.array([3, 3, 3, 3, 4, 4, 4])
    assert longest_progression(at, lengths) == (1, 2, 10)
    assert longest_progression(at[::-1], lengths[::-1]) == (0, 2, -20)
    assert longest_progression(at[:1], lengths[:1]) == (0, 0, 0)
    # lists at one place are no sequence
    assert longest_progression(np.array([9, 9, 9]), np.array([3, 3, 3]))[1] == 0
