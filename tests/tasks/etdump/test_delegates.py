"""ETDumps of delegates whose events are not simply times: shares stay between 0 and 1, and a sentence tells why."""

import random

import numpy as np
import pytest

from sql.schema import seed_rows
from tasks.etdump.delegates import DELEGATES, UNRECOGNIZED
from tasks.etdump.reader import Etdump, EtdumpError, read_etdump
from tasks.etdump.tree import build_runs, contradiction, negative_time
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.mutated_etdump import mutated

CALL = Profile("DELEGATE_CALL", 1_100, 1_900, instruction=3)
COST = b'{"operatorName": "ios17.conv", "estimatedCost": 0.4}'


def delegated(name: str, start: int, end: int, metadata: bytes | None = None) -> Profile:
    return Profile(text=name, start=start, end=end, instruction=3, metadata=metadata)


def read(*events: Profile, backend: str | None = None) -> Etdump:
    """Return a dump of two equal executions of 1000 ns."""
    method = Profile(METHOD, 1_000, 2_000, chain=-1, instruction=0)
    data = build_etdump([Run([*events, method]), Run([*events, method])])
    return read_etdump(data, backends={(0, 3): backend} if backend else None)


def parts(dump: Etdump) -> dict[str, float]:
    """Return the share of each operator; all are between 0 and 1 and add up to 1."""
    runs = build_runs(dump)
    assert contradiction(dump, runs, 0) is None
    assert (runs.self_ns >= 0).all()
    shares: dict[str, float] = {}
    for node, self_ns in zip(runs.node.tolist(), runs.self_ns.tolist(), strict=True):
        name = runs.tree[node].parts.operator
        shares[name] = shares.get(name, 0) + self_ns / runs.execute_ns.sum()
    assert sum(shares.values()) == pytest.approx(1)
    return {name: round(share, 3) for name, share in shares.items()}


@pytest.mark.parametrize(
    ("name", "backend"),
    [("conv:OpId_21 (cycles)", None), ("node_7 (us)", None), ("aten_conv", "QnnBackend")],
    ids=["cycles by their name", "microseconds by their name", "by the program"],
)
def test_cycles_of_qnn_are_no_times_so_its_calls_are_one_part(name: str, backend: str | None) -> None:
    # given QNN's events, which begin at 0 and end at a number of cycles: 13 ms in a call of 800 ns
    dump = read(delegated(name, 0, 13_000_000), delegated(name, 0, 120), CALL, backend=backend)
    assert parts(dump) == {"QNN delegate": 0.8, METHOD: 0.2}
    [note] = dump.delegate_notes
    assert note.startswith("QNN delegate: shown as the total of its calls; ")


SCOPES = [
    delegated("ETVK_COPY_INPUTS", 1_110, 1_160),
    delegated("ETVK_COMPUTE_GRAPH_EXECUTE", 1_200, 1_700),
]
AFTER = [delegated("ETVK_COPY_OUTPUTS", 1_710, 1_760), delegated("ETVK_EXECUTE", 1_105, 1_800), CALL]


def dispatch(kernel: str, start: int, end: int, number: int) -> Profile:
    return delegated(f'{{"kernel_name": "{kernel}", "dispatch_id": {number}}}', start, end)


@pytest.mark.parametrize("epoch", [7, 10**12], ids=["before the runtime's", "after the runtime's"])
def test_dispatches_of_vulkan_are_parts_of_the_wait_for_the_gpu(epoch: int) -> None:
    # given nested scopes, and dispatches on a clock with another zero that take as long as the wait for them
    shaders = [dispatch("conv2d", epoch, epoch + 300, 0), dispatch("add", epoch + 320, epoch + 500, 1)]
    dump = read(*SCOPES, *shaders, *AFTER)
    # then each nanosecond counts once: the gap between both is the rest of the wait
    assert parts(dump) == {
        "conv2d": 0.3,
        "add": 0.18,
        "ETVK_COMPUTE_GRAPH_EXECUTE": 0.02,
        "ETVK_COPY_INPUTS": 0.05,
        "ETVK_COPY_OUTPUTS": 0.05,
        "ETVK_EXECUTE": 0.095,
        "DELEGATE_CALL": 0.105,
        METHOD: 0.2,
    }
    assert dump.unfinished_events == 0
    assert "times of the GPU's clock" in dump.delegate_notes[0]


def test_dispatches_that_take_longer_than_the_wait_for_them_are_left_out() -> None:
    # given a dispatch of one nanosecond more than the wait
    dump = read(*SCOPES, dispatch("conv2d", 7, 508, 0), *AFTER)
    shares = parts(dump)
    assert "conv2d" not in shares
    assert shares["ETVK_COMPUTE_GRAPH_EXECUTE"] == 0.5
    assert "left out" in dump.delegate_notes[0]
    assert dump.unfinished_events == 0


def test_estimates_of_core_ml_are_marked_wherever_they_are_shown() -> None:
    # given two operators, the second one without metadata as it has none of its own
    operators = [delegated("conv_1", 1_200, 1_600, COST), delegated("relu_2", 1_600, 1_700)]
    for dump in (read(*operators, CALL), read(*operators, CALL, backend="CoreMLBackend")):
        assert parts(dump) == {
            "conv_1 [estimate]": 0.4,
            "relu_2 [estimate]": 0.1,
            "DELEGATE_CALL": 0.3,
            METHOD: 0.2,
        }
        assert dump.delegate_notes[0].startswith("Core ML delegate: operators marked [estimate]")


@pytest.mark.parametrize("end", [1_900, 1_901], ids=["inside its call", "1 ns longer"])
def test_an_unknown_delegate_is_believed_if_its_events_lie_in_their_call(end: int) -> None:
    dump = read(delegated("anything", 1_100, end), CALL)
    if end == 1_900:
        assert parts(dump) == {"anything": 0.8, "DELEGATE_CALL": 0, METHOD: 0.2}
        assert dump.delegate_notes == ()
    else:
        assert parts(dump) == {"Unknown delegate": 0.8, METHOD: 0.2}
        assert "clock is unknown" in dump.delegate_notes[0]


@pytest.mark.parametrize("second_ns", [400, 401])
def test_operators_of_xnnpack_count_on_any_clock_while_they_fit_in_their_call(second_ns: int) -> None:
    # given operators that begin at 0
    dump = read(delegated("Add (ND) #1", 0, 400), delegated("Add (ND) #2", 400, 400 + second_ns), CALL)
    if second_ns == 400:
        assert parts(dump)["Add"] == 0.8
        assert dump.delegate_notes == ()
    else:
        assert parts(dump) == {"XNNPACK delegate": 0.8, METHOD: 0.2}
        assert "longer than the call" in dump.delegate_notes[0]


def test_a_call_with_events_of_two_delegates_is_of_neither() -> None:
    dump = read(delegated("Add (ND) #1", 1_100, 1_200), delegated("conv:OpId_2 (cycles)", 0, 5), CALL)
    assert parts(dump) == {"Unknown delegate": 0.8, METHOD: 0.2}


def test_one_call_that_does_not_fit_makes_all_calls_of_its_instruction_one_part() -> None:
    # given two executions, of which only the second has operators that are longer than their call
    runs = [
        Run([delegated("Add (ND) #1", 0, ns), CALL, Profile(METHOD, 1_000, 2_000, chain=-1, instruction=0)])
        for ns in (800, 801)
    ]
    dump = read_etdump(build_etdump(runs))
    assert parts(dump) == {"XNNPACK delegate": 0.8, METHOD: 0.2}


def test_a_delegate_that_reports_nothing_has_the_time_of_its_call_if_the_program_states_it() -> None:
    assert parts(read(CALL, backend="OpenvinoBackend")) == {"OpenvinoBackend delegate": 0.8, METHOD: 0.2}
    # and otherwise nobody knows who took it
    assert parts(read(CALL)) == {"DELEGATE_CALL": 0.8, METHOD: 0.2}
    assert parts(read(CALL, backend="XnnpackBackend")) == {"DELEGATE_CALL": 0.8, METHOD: 0.2}


def test_events_of_a_runtime_that_contradict_each_other_are_refused() -> None:
    # given a portable operator of 1 ns more than its call
    call = Profile("OPERATOR_CALL", 1_100, 1_200, instruction=3)
    for end, refused in ((1_200, False), (1_201, True)):
        dump = read(Profile("native_call_add.out", 1_100, end, instruction=3), call)
        cause = contradiction(dump, build_runs(dump), 0)
        assert bool(cause) == refused
        assert cause is None or "OPERATOR_CALL lasts 100 ns in execution 0, 1 ns less" in cause


def test_each_part_of_a_known_delegate_has_a_category() -> None:
    known = {(row[0], row[1]) for row in seed_rows("operator_category")}
    for delegate in (*DELEGATES.values(), UNRECOGNIZED):
        assert (f"{delegate.name} delegate", "delegated") in known


NAMES = ["Add (ND) #1", "conv:OpId_2 (cycles)", "ETVK_COMPUTE_GRAPH_EXECUTE", '{"x", "dispatch_id": 4}', "who", "VGF_X"]
BACKENDS = [None, "XnnpackBackend", "QnnBackend", "VulkanBackend", "CoreMLBackend", "Odd"]


def anything(chance: random.Random) -> bytes:
    """Return a dump of delegate calls with events of any delegate, at any time."""
    runs = []
    for _ in range(chance.randint(1, 3)):
        events: list[Profile] = []
        for instruction in range(3):
            begin = 10_000 + 300 * instruction
            for _ in range(chance.randrange(5)):
                start = chance.choice([0, begin, begin + chance.randrange(-50, 300), 10**12])
                end = start + chance.choice([0, 1, 50, 199, 200, 10**7])
                metadata = COST if chance.random() < 0.1 else None
                text = chance.choice(NAMES)
                events.append(Profile(text=text, start=start, end=end, instruction=instruction, metadata=metadata))
            if chance.random() < 0.9:
                events.append(Profile("DELEGATE_CALL", begin, begin + 200, instruction=instruction))
        runs.append(Run([*events, Profile(METHOD, 10_000, 11_000, chain=-1, instruction=0)]))
    return build_etdump(runs)


def assert_shares(dump: Etdump) -> None:
    """Times are not negative and add up to their execution, unless the dump is refused for it."""
    runs = build_runs(dump)
    if negative_time(runs):
        return
    for run, execute_ns in enumerate(runs.execute_ns.tolist()):
        own = runs.self_ns[runs.run == run]
        assert own.sum() == execute_ns
        assert ((own >= 0) & (own <= execute_ns)).all()


@pytest.mark.parametrize("seed", range(60))
def test_whatever_a_delegate_reports_its_shares_are_between_0_and_1(seed: int) -> None:
    chance = random.Random(seed)
    backends = {(0, at): name for at in range(3) if (name := chance.choice(BACKENDS))}
    dump = read_etdump(anything(chance), backends=backends)
    # the runtime's own events do not contradict each other, so nothing is refused
    assert negative_time(build_runs(dump)) is None
    assert_shares(dump)
    # and what is left out belongs to no execution
    assert not np.isin(dump.parent, np.flatnonzero(dump.execution < 0)).any()


@pytest.mark.parametrize("seed", range(20))
def test_shares_of_a_damaged_dump_are_between_0_and_1_or_it_is_refused(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        try:
            dump = read_etdump(mutated(chance))
        except EtdumpError:
            continue
        assert_shares(dump)
