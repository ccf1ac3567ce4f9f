"""The ETDump reader beside executorch.devtools: the same events, to the nanosecond."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import read_etdump
from tests.fixtures.etdump_builder import METHOD, Allocation, Debug, Event, Profile, Run, build_etdump

pytestmark = pytest.mark.torch


@pytest.fixture
def devtools() -> Callable[[bytes], Any]:
    """Devtools' own reader."""
    name = "executorch.devtools.etdump.serialize"
    module = pytest.importorskip(name, reason="needs the export extra: pip install 'etfarm[export]'")
    read: Callable[[bytes], Any] = module.deserialize_from_etdump_flatcc
    return read


def assert_same(data: bytes, devtools: Callable[[bytes], Any]) -> None:
    ours, theirs = read_etdump(data), devtools(data)
    events = [(number, event) for number, run in enumerate(theirs.run_data) for event in run.events or ()]
    expected = [(number, event.profile_event) for number, event in events if event.profile_event is not None]
    names = [ours.names[number] for number in ours.name_id]
    is_total = [name.endswith(" delegate") for name in names]  # of a call whose operators do not fit in it
    rows = zip(
        ours.run_data_index.tolist(),
        ["DELEGATE_CALL" if total else name for name, total in zip(names, is_total, strict=True)],
        [kind == EventKind.DELEGATED and not total for kind, total in zip(ours.kind, is_total, strict=True)],
        ours.chain_index.tolist(),
        ours.instruction_id.tolist(),
        ours.start_ns.tolist(),
        ours.end_ns.tolist(),
        ours.dur_ns.tolist(),
        strict=True,
    )
    assert list(rows) == [row_of(number, event) for number, event in expected]
    executes = [event for _, event in expected if event.name == "Method::execute"]
    assert ours.execute_ns.tolist() == [event.end_time - event.start_time for event in executes]
    assert ours.executions == len(executes)


def row_of(run_data_index: int, event: Any) -> tuple[Any, ...]:
    """Return what our reader should say of an event of devtools."""
    name, text, number = event.name, event.delegate_debug_id_str, event.delegate_debug_id_int
    return (
        run_data_index,
        name or text or ("(unnamed)" if number == -1 else f"delegate:{number}"),
        not name and (bool(text) or number != -1),
        event.chain_index,
        event.instruction_id,
        event.start_time,
        event.end_time,
        event.end_time - event.start_time,
    )


def random_runs(chance: random.Random) -> list[Run]:
    """Return loading and executions of differing shape, with clocks that do not agree, as delegates report them."""
    runs, clock = [Run([Profile("Method::init", 5, 90, chain=-1, instruction=0)], name="Default")], 10**15
    for _ in range(chance.randint(1, 6)):
        events: list[Profile] = []
        begin = clock
        for instruction in range(chance.randint(0, 5)):
            call = clock
            for number in range(chance.randint(0, 3)):
                end = clock + chance.randrange(3) * 1000
                text = None if chance.random() < 0.2 else f"Convolution (NHWC, F32) IGEMM #{number + 1}"
                debug_id = number if text is None else -1
                events.append(Profile(text=text, number=debug_id, start=clock, end=end, instruction=instruction))
                clock += chance.randrange(2000)
            clock += chance.randrange(1, 99)
            name = chance.choice(["DELEGATE_CALL", "OPERATOR_CALL"])
            events.append(Profile(name, call, clock, instruction=instruction))
        events.append(Profile(METHOD, begin, clock + 7, chain=-1, instruction=0))
        runs.append(Run(events))
    return runs


@pytest.mark.parametrize("seed", range(2))
def test_executions_of_differing_shape_are_the_same_as_in_devtools(devtools: Callable[[bytes], Any], seed: int) -> None:
    assert_same(build_etdump(random_runs(random.Random(seed)), version=seed), devtools)


def test_repeated_instructions_missing_names_and_other_events_are_the_same_as_in_devtools(
    devtools: Callable[[bytes], Any],
) -> None:
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
