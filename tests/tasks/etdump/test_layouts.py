"""ETDumps of one layout: with another one in memory, each is read as it is read alone."""

import dataclasses
import random
import struct
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.etdump.event_columns import read_event_columns
from tasks.etdump.flatbuffer import Buffer
from tasks.etdump.layouts import _MAX_BYTES, layouts
from tasks.etdump.reader import EtdumpError, read_etdump
from tasks.etdump.tree import build_runs
from tests.fixtures.etdump_builder import LOADING, METHOD, Profile, Run, build_etdump, delegated, method
from tests.fixtures.mutated_etdump import small_files


@pytest.fixture(autouse=True)
def _nothing_before() -> Iterator[None]:
    layouts.clear()
    yield
    layouts.clear()


def execution(start: int, operator_ns: int = 3) -> Run:
    operator = delegated("Softmax (NC, F32) #1", start + 1, start + 1 + operator_ns, 0)
    return Run([operator, Profile("DELEGATE_CALL", start, start + 5, instruction=0), method(start, start + 9)])


EARLIER = build_etdump([LOADING, execution(10), execution(30)])
LATER = build_etdump([LOADING, execution(20, 2), execution(50, 1)])


def columns_of(data: bytes, earlier: bytes | None) -> list[object] | None:
    """Return all that is read after `earlier`, None if it is refused."""
    layouts.clear()
    if earlier is not None:
        read_etdump(earlier)
    try:
        dump = read_etdump(data)
    except EtdumpError:
        return None
    values = [getattr(each, field.name) for each in (dump, build_runs(dump)) for field in dataclasses.fields(each)]
    return [each.tolist() if isinstance(each, np.ndarray) else each for each in values if each is not dump.layout]


def test_a_later_etdump_of_the_same_layout_is_read_from_its_times() -> None:
    first = read_etdump(EARLIER)
    with patch("tasks.etdump.reader.read_event_columns", side_effect=AssertionError("read completely")):
        second = read_etdump(LATER)
    assert second.layout is first.layout
    assert second.start_ns.tolist() != first.start_ns.tolist()
    assert columns_of(LATER, EARLIER) == columns_of(LATER, None)


def test_a_changed_byte_anywhere_is_read_or_refused_as_if_there_was_no_other() -> None:
    for at in range(300, len(LATER)):
        data = LATER[:at] + bytes([LATER[at] ^ 0x81]) + LATER[at + 1 :]
        assert columns_of(data, EARLIER) == columns_of(data, None), at


@pytest.mark.parametrize("instruction", [0, 0x3F3F3F3F])
def test_a_time_that_shares_bytes_with_another_field_makes_no_layout(instruction: int) -> None:
    # given methods whose end is read from the bytes of chain and instruction, and another chain in the second file
    table = struct.pack("<10H", 20, 36, 24, 28, 32, 0, 0, 0, 8, 16)
    earlier, later = (
        build_etdump([Run([Profile(METHOD, 10, 20, chain=chain, instruction=instruction)])]).replace(
            table, table[:-2] + struct.pack("<H", 28)
        )
        for chain in (instruction or -1, 77)
    )
    columns = columns_of(later, None)
    assert columns is not None
    assert [77] in columns
    assert columns_of(later, earlier) == columns


@pytest.mark.parametrize("number", range(len(small_files())))
@given(seed=st.integers(0, 2**32))
def test_any_other_times_are_read_or_refused_as_if_there_was_no_other(number: int, seed: int) -> None:
    # given a file of every shape, some of whose times are changed a little, or to what no clock returns
    chance, earlier = random.Random(seed), small_files()[number]
    places = [at for column in read_event_columns(Buffer(earlier)).times_at for at in column.tolist() if at]
    data = bytearray(earlier)
    for at in chance.sample(places, min(len(places), chance.randrange(4))):
        now = struct.unpack_from("<Q", data, at)[0]
        value = chance.choice((0, now + 1, now + 3, max(now, 3) - 3, now + 1000, 2**62, 2**64 - 1))
        struct.pack_into("<Q", data, at, value)
    assert columns_of(bytes(data), earlier) == columns_of(bytes(data), None)


@pytest.mark.parametrize("mean", [(11, 20), (12, 20), (13, 20), (14, 20), (20, 20)])
@pytest.mark.parametrize("earlier_mean", [(11, 20), (12, 20), (14, 20)])
def test_an_operator_is_inside_another_by_the_times_of_its_file(
    mean: tuple[int, int], earlier_mean: tuple[int, int]
) -> None:
    # given an operator that ends before another, which began before it or after it
    earlier, later = (
        build_etdump(
            [
                LOADING,
                Run(
                    [
                        Profile("native_call_add.out", 12, 14, instruction=0),
                        Profile("native_call_mean.out", *times, instruction=0),
                        Profile("OPERATOR_CALL", 10, 30, instruction=0),
                        method(5, 40),
                    ]
                ),
            ]
        )
        for times in (earlier_mean, mean)
    )
    assert columns_of(later, earlier) == columns_of(later, None)


@pytest.mark.parametrize("row", range(7))
def test_an_end_that_has_wrapped_is_refused_as_if_there_was_no_other(row: int) -> None:
    # given an event that ends 1 ns after the largest time of 63 bits
    data = bytearray(EARLIER)
    for column, value in zip(read_event_columns(Buffer(EARLIER)).times_at, (2**63 - 1, 2**63), strict=True):
        struct.pack_into("<Q", data, int(column[row]), value)
    assert columns_of(bytes(data), None) is None
    assert columns_of(bytes(data), EARLIER) is None


def test_the_delegates_of_another_program_are_another_layout() -> None:
    read_etdump(EARLIER)
    other = read_etdump(LATER, backends={(0, 0): "SomeBackend"})
    layouts.clear()
    assert other.names == read_etdump(LATER, backends={(0, 0): "SomeBackend"}).names


def test_no_more_etdumps_are_kept_in_memory_than_a_limit() -> None:
    with patch("tasks.etdump.layouts._MAX_BYTES", 2 * len(EARLIER)):
        for number in range(8):
            read_etdump(build_etdump([LOADING, execution(10), execution(30), *[Run()] * (number // 2)], version=number))
            present = [each for similar in layouts._earlier.values() for each in similar]
            assert sum(len(each.content) for each in present) == layouts._bytes <= 2 * len(EARLIER) < _MAX_BYTES
