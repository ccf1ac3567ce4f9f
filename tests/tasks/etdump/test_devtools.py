"""The ETDump reader beside executorch.devtools: the same events, to the nanosecond."""

import random
from pathlib import Path

import pytest

from tests.fixtures.etdump_builder import METHOD, Allocation, Debug, Event, Profile, Run, build_etdump
from tests.fixtures.etdump_contract import assert_same_as_devtools

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _devtools() -> None:
    pytest.importorskip("executorch.devtools", reason="needs the export extra: pip install 'etfarm[export]'")


def random_runs(chance: random.Random) -> list[Run]:
    """Return loading and executions of differing shape, with clocks that do not agree, as delegates report them."""
    runs, clock = [Run([Profile("Method::init", 5, 90, chain=-1, instruction=0)], name="Default")], 10**15
    for _ in range(chance.randint(1, 6)):
        events: list[Profile] = []
        begin = clock
        for instruction in range(chance.randint(0, 5)):
            call = clock
            for number in range(chance.randint(0, 3)):
                us = chance.randrange(3) * 1000
                text = None if chance.random() < 0.2 else f"Convolution (NHWC, F32) IGEMM #{number + 1}"
                events.append(
                    Profile(
                        text=text,
                        number=number if text is None else -1,
                        start=clock,
                        end=clock + us,
                        instruction=instruction,
                    )
                )
                clock += chance.randrange(2000)
            clock += chance.randrange(1, 99)
            name = chance.choice(["DELEGATE_CALL", "OPERATOR_CALL"])
            events.append(Profile(name, call, clock, instruction=instruction))
        events.append(Profile(METHOD, begin, clock + 7, chain=-1, instruction=0))
        runs.append(Run(events))
    return runs


@pytest.mark.parametrize("seed", range(4))
def test_executions_of_differing_shape_are_the_same_as_in_devtools(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "model.etdump"
    path.write_bytes(build_etdump(random_runs(random.Random(seed)), version=seed))
    assert_same_as_devtools(path)


def test_repeated_instructions_missing_names_and_shared_runs_are_the_same_as_in_devtools(tmp_path: Path) -> None:
    loop: list[Event] = [
        Profile(text="a", start=1, end=3, instruction=4, metadata=b"\x01\x02"),
        Profile("DELEGATE_CALL", 0, 5, instruction=4),
        Profile(text="a", start=6, end=7, instruction=4),
        Profile("DELEGATE_CALL", 5, 9, instruction=4),
        Profile(name="", start=1, end=2, number=7),
        Profile(start=3, end=4),
        Profile(METHOD, 0, 9, chain=-1, instruction=0),
    ]
    path = tmp_path / "model.etdump"
    path.write_bytes(build_etdump([Run(listed=False), Run([]), Run(loop), Run([*loop, *loop])]))
    assert_same_as_devtools(path)


def test_debug_and_allocation_events_are_counted_as_devtools_holds_them(tmp_path: Path) -> None:
    events: list[Event] = [Allocation(1, 64), Debug("native_call_add.out", 2), Profile(METHOD, 1, 2)]
    path = tmp_path / "model.etdump"
    path.write_bytes(build_etdump([Run(events)]))
    assert_same_as_devtools(path)
