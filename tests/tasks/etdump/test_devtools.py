"""The ETDump reader beside executorch.devtools: the same events, to the nanosecond."""

from collections.abc import Callable
from typing import Any

import pytest

from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import read_etdump
from tests.fixtures.etdump_builder import METHOD, Allocation, Debug, Event, Profile, Run, build_etdump
from tests.fixtures.mutated_etdump import small_files

pytestmark = [pytest.mark.torch, pytest.mark.thorough]


@pytest.fixture
def devtools() -> Callable[[bytes], Any]:
    name = "executorch.devtools.etdump.serialize"
    module = pytest.importorskip(name, reason="needs the export extra: pip install 'etfarm[export]'")
    read: Callable[[bytes], Any] = module.deserialize_from_etdump_flatcc
    return read


def assert_same(data: bytes, devtools: Callable[[bytes], Any]) -> None:
    ours, theirs = read_etdump(data), devtools(data)
    events = [(at, each.profile_event) for at, run in enumerate(theirs.run_data) for each in run.events or ()]
    expected = [(number, event) for number, event in events if event is not None]
    names = [ours.names[number] for number in ours.name_id]
    is_total = [name.endswith(" delegate") for name in names]  # of a call whose operators do not fit in it
    kinds = zip(ours.kind == EventKind.DELEGATED, is_total, strict=True)
    rows = zip(
        ours.run_data_index,
        ["DELEGATE_CALL" if total else name for name, total in zip(names, is_total, strict=True)],
        [bool(delegated) and not total for delegated, total in kinds],
        *(ours.chain_index, ours.instruction_id, ours.start_ns, ours.end_ns, ours.dur_ns),
        strict=True,
    )
    assert list(rows) == [row_of(number, event) for number, event in expected]
    executes = [event for _, event in expected if event.name == "Method::execute"]
    assert ours.execute_ns.tolist() == [event.end_time - event.start_time for event in executes]
    assert ours.executions == len(executes)


def row_of(run_data_index: int, event: Any) -> tuple[Any, ...]:
    name, text, number = event.name, event.delegate_debug_id_str, event.delegate_debug_id_int
    shown = name or text or ("(unnamed)" if number == -1 else f"delegate:{number}")
    begin, end = event.start_time, event.end_time
    is_delegated = not name and (bool(text) or number != -1)
    return run_data_index, shown, is_delegated, event.chain_index, event.instruction_id, begin, end, end - begin


@pytest.mark.parametrize("number", range(len(small_files())))
def test_executions_of_every_shape_are_the_same_as_in_devtools(devtools: Callable[[bytes], Any], number: int) -> None:
    assert_same(small_files()[number], devtools)


def test_unusual_events_are_the_same_as_in_devtools(devtools: Callable[[bytes], Any]) -> None:
    loop: list[Event] = [
        Profile(text="a", start=1, end=3, instruction=4, metadata=b"\x01\x02"),
        Profile("DELEGATE_CALL", 0, 5, instruction=4),
        Profile(text="a", start=6, end=7, instruction=4),
        Profile("DELEGATE_CALL", 5, 9, instruction=4),
        Profile(name="", start=1, end=2, number=7),
        Profile(start=3, end=4),
        Profile(METHOD, 0, 9, chain=-1, instruction=0),
    ]
    others: list[Event] = [Allocation(1, 64), Debug("native_call_add.out", 2), Profile(METHOD, 1, 2)]
    assert_same(build_etdump([Run(listed=False), Run([]), Run(loop), Run([*loop, *loop]), Run(others)]), devtools)
