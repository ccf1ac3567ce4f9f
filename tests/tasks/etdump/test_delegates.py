"""ETDumps of delegates whose events are not simply times: shares stay between 0 and 1, and a sentence tells why."""

import random

import numpy as np
import pytest

from sql.schema import seed_rows
from tasks.etdump.columns import Etdump
from tasks.etdump.delegates import DELEGATES, UNRECOGNIZED
from tasks.etdump.reader import read_etdump
from tasks.etdump.tree import build_runs, contradiction, negative_time
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump, delegated, method
from tests.fixtures.mutated_etdump import wrong_share
from tests.fixtures.paths import ROOT

CALL = Profile("DELEGATE_CALL", 1_100, 1_900, instruction=3)
COST = b'{"operatorName": "ios17.conv", "estimatedCost": 0.4}'


def read(*events: Profile, backend: str | None = None) -> Etdump:
    """Return a dump of two equal executions of 1000 ns."""
    data = build_etdump([Run([*events, method(1_000, 2_000)])] * 2)
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


SCOPES = [delegated("ETVK_COPY_INPUTS", 1_110, 1_160), delegated("ETVK_COMPUTE_GRAPH_EXECUTE", 1_200, 1_700)]
AFTER = [delegated("ETVK_COPY_OUTPUTS", 1_710, 1_760), delegated("ETVK_EXECUTE", 1_105, 1_800)]
OF_SCOPES = {"ETVK_COPY_INPUTS": 0.05, "ETVK_COPY_OUTPUTS": 0.05, "ETVK_EXECUTE": 0.095, "DELEGATE_CALL": 0.105}
CONV, RELU = delegated("conv_1", 1_200, 1_600, metadata=COST), delegated("relu_2", 1_600, 1_700)
ESTIMATES = {"conv_1 [estimate]": 0.4, "relu_2 [estimate]": 0.1, "DELEGATE_CALL": 0.3}


def dispatch(kernel: str, start: int, end: int, number: int) -> Profile:
    return delegated(f'{{"kernel_name": "{kernel}", "dispatch_id": {number}}}', start, end)


def dispatches(epoch: int, end: int = 300) -> list[Profile]:
    """Return what Vulkan writes: the dispatches, on a clock of the GPU, after the scope that waited for them."""
    shaders = [dispatch("conv2d", epoch, epoch + end, 0), dispatch("add", epoch + 320, epoch + 500, 1)]
    return [*SCOPES, *shaders, *AFTER]


def adds(end: int) -> list[Profile]:
    return [delegated("Add (ND) #1", 0, 400), delegated("Add (ND) #2", 400, end)]


ON_CPU = {"ETVK_COMPUTE_GRAPH_EXECUTE": 0.5, **OF_SCOPES}
ON_GPU = {"conv2d": 0.3, "add": 0.18, "ETVK_COMPUTE_GRAPH_EXECUTE": 0.02, **OF_SCOPES}
QNN, UNKNOWN, XNNPACK = {"QNN delegate": 0.8}, {"Unknown delegate": 0.8}, {"XNNPACK delegate": 0.8}
# The events of a call of 800 ns in an execution of 1000 ns, the program's backend, the shares beside Method::execute's
# 0.2, and a part of the note.
CASES: dict[str, tuple[list[Profile], str | None, dict[str, float], str | None]] = {
    "cycles of QNN by name": ([delegated("a:OpId_21 (cycles)", 0, 13_000_000)], None, QNN, "QNN delegate: shown as"),
    "microseconds of QNN by name": ([delegated("node_7 (us)", 0, 120)], None, QNN, "QNN delegate: shown as the total"),
    "QNN by the program": ([delegated("aten_conv", 0, 120)], "QnnBackend", QNN, "QNN delegate: shown as the total of"),
    "GPU whose clock began earlier": (dispatches(7), None, ON_GPU, "times of the GPU's clock"),
    "GPU whose clock began later": (dispatches(10**12), None, ON_GPU, "times of the GPU's clock"),
    "GPU that took 1 ns more than the wait": (dispatches(7, 501), None, ON_CPU, "left out"),
    "estimates of Core ML by their cost": ([CONV, RELU], None, ESTIMATES, "Core ML delegate: operators marked [estim"),
    "estimates of Core ML by the program": ([RELU, CONV], "CoreMLBackend", ESTIMATES, "Core ML delegate: operators"),
    "unknown, in its call": ([delegated("a", 1_100, 1_900)], None, {"a": 0.8, "DELEGATE_CALL": 0}, None),
    "unknown, 1 ns longer": ([delegated("a", 1_100, 1_901)], None, UNKNOWN, "clock is unknown"),
    "XNNPACK on a clock from 0, as long as its call": (adds(800), None, {"Add": 0.8, "DELEGATE_CALL": 0}, None),
    "XNNPACK, 1 ns longer": (adds(801), None, XNNPACK, "longer than the call"),
    "two delegates in one call": ([*adds(800), delegated("a (cycles)", 0, 5)], None, UNKNOWN, "several delegates"),
    "silent, stated by the program": ([], "OpenvinoBackend", {"OpenVINO delegate": 0.8}, "no operators"),
    "silent XNNPACK": ([], "XnnpackBackend", {"DELEGATE_CALL": 0.8}, None),
}


@pytest.mark.parametrize(("events", "backend", "shares", "note"), CASES.values(), ids=CASES)
def test_each_nanosecond_of_a_call_counts_once_for_each_kind_of_delegate(
    events: list[Profile], backend: str | None, shares: dict[str, float], note: str | None
) -> None:
    dump = read(*events, CALL, backend=backend)
    assert parts(dump) == {**shares, METHOD: 0.2}
    assert dump.unfinished_events == 0
    assert [note in each for each in dump.delegate_notes if note] == [True] * bool(note)
    assert note or not dump.delegate_notes


def test_a_program_that_openvino_executed_has_one_part_for_it_and_one_for_the_rest() -> None:
    # given what the farm's runner recorded of three executions of a convolution and a linear layer, all in OpenVINO
    dump = read_etdump(ROOT / "tests/fixtures/openvino.etdump", backends={(0, 0): "OpenvinoBackend"})
    shares = parts(dump)
    assert set(shares) == {"OpenVINO delegate", METHOD}
    assert shares["OpenVINO delegate"] > 0.9
    assert dump.delegate_notes == ("OpenVINO delegate: shown as the total of its calls; it reports no operators",)


def test_one_call_that_does_not_fit_makes_all_calls_of_its_instruction_one_part() -> None:
    runs = [Run([delegated("Add (ND) #1", 0, ns), CALL, method(1_000, 2_000)]) for ns in (800, 801)]
    dump = read_etdump(build_etdump(runs))
    assert parts(dump) == {"XNNPACK delegate": 0.8, METHOD: 0.2}


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
        runs.append(Run([*events, method(10_000, 11_000)]))
    return build_etdump(runs)


@pytest.mark.parametrize("seed", range(40))
def test_shares_of_any_delegate_are_between_0_and_1(seed: int) -> None:
    chance = random.Random(seed)
    backends = {(0, at): name for at in range(3) if (name := chance.choice(BACKENDS))}
    dump = read_etdump(anything(chance), backends=backends)
    # the runtime's own events do not contradict each other, so nothing is refused
    assert negative_time(build_runs(dump)) is None
    assert wrong_share(build_runs(dump)) is None
    # and what is left out belongs to no execution
    assert not np.isin(dump.parent, np.flatnonzero(dump.execution < 0)).any()
