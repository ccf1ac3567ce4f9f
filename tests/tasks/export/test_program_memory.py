"""What a program needs of memory by its plan: which buffers are alive when most are, and what holds them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.bundle.memory_plan import LiveBuffer, MemoryPlan
from tasks.export.contents.memory_text import describe_plan
from tasks.export.contents.program_memory import Lifetime, largest_live_set, list_lifetimes, plan_case
from tasks.export.exported import EXPORT_VERSION, read_exports
from tasks.export.program import Call, ProgramMethod, ProgramTensor
from tests.fixtures.exports import build_here
from tests.fixtures.program_builder import Signature, Tensor, build_program

KB = 1000


def planned(offset: int, kilobytes: int, *, is_state: bool = False) -> ProgramTensor:
    shape = (kilobytes * KB // 4,)
    return ProgramTensor("float32", shape, False, (True, 1) if is_state else None, planned_at=(1, offset))


def method(values: Sequence[ProgramTensor], calls: Sequence[Call], lists: dict[int, tuple[int, ...]]) -> ProgramMethod:
    return ProgramMethod("forward", (values[0],), (values[-1],), tuple(calls), values=tuple(values), lists=lists)


def operator(number: int, name: str, *arguments: int) -> Call:
    return Call(0, number, operator=f"aten::{name}.out", arguments=arguments)


def test_a_buffer_lives_from_the_call_that_writes_it_to_the_last_that_uses_it() -> None:
    # given an input of 4 kB, a view of what is computed from it, a cache, two outputs of one call, and the output
    values = [
        planned(0, 4), planned(4 * KB, 8), planned(4 * KB, 8), planned(12 * KB, 16, is_state=True),
        planned(28 * KB, 2), planned(30 * KB, 2), planned(32 * KB, 1),
    ]  # fmt: skip
    calls = [
        operator(0, "mul", 0, 0, 1, 1),
        Call(0, 1, operator="executorch_prim::et_view.default", arguments=(1, 2, 2)),
        operator(2, "index_put_", 3, 2, 3),
        operator(3, "topk", 3, 4, 5, 7),  # the list of both
        Call(0, 4, delegate="XnnpackBackend", arguments=(4, 6)),
    ]
    lives = {(each.planned_at, each.first): each for each in list_lifetimes(method(values, calls, {7: (4, 5)}))}
    # then each has its first and last call, and the cache is always there
    found = {key: (each.last, each.producer, each.last_user) for key, each in lives.items()}
    assert found == {
        ((1, 0), 0): (0, "input", "aten::mul.out"),
        ((1, 4 * KB), 0): (1, "aten::mul.out", "executorch_prim::et_view.default"),
        ((1, 4 * KB), 1): (2, "executorch_prim::et_view.default", "aten::index_put_.out"),
        ((1, 12 * KB), 0): (4, "state", "state"),
        ((1, 28 * KB), 3): (4, "aten::topk.out", "XnnpackBackend"),
        ((1, 30 * KB), 3): (3, "aten::topk.out", "aten::topk.out"),
        ((1, 32 * KB), 4): (4, "XnnpackBackend", "output"),
    }
    # and a view counts once: input, product and cache are 28 kB together
    live_bytes, live_at, alive = largest_live_set(lives.values())
    assert (live_bytes, live_at) == (28 * KB, 0)
    assert sorted(each.size_bytes for each in alive) == [4 * KB, 8 * KB, 16 * KB]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 99)), max_size=12))
def test_the_largest_live_set_is_that_of_the_call_with_most_bytes(lives: list[tuple[int, int, int]]) -> None:
    # given buffers that do not share memory
    buffers = [Lifetime((1, number), size, min(ends), max(ends)) for number, (*ends, size) in enumerate(lives)]
    by_call = [sum(each.size_bytes for each in buffers if each.first <= call <= each.last) for call in range(11)]
    live_bytes, live_at, alive = largest_live_set(buffers)
    assert live_bytes == max(by_call) == by_call[live_at] == sum(each.size_bytes for each in alive)


@pytest.mark.parametrize(
    ("needed", "expected"), [(300_000, "64x64 needs 300 kB"), (None, "what 64x64 needs is unknown for a .pte file")]
)
def test_the_plan_of_a_dynamic_program_is_stated_beside_what_its_input_needs(needed: int | None, expected: str) -> None:
    plan = MemoryPlan(
        arenas_bytes=[200_000_000, 68_000_000], instructions=40, live_bytes=260_000_000, live_at=12,
        live_operator="aten::add.out", largest_shape=[2048, 2048], measured_shape=[64, 64], needed_bytes=needed,
        buffers=[LiveBuffer(bytes=130_000_000, producer="aten::mul.out", last_user="output", first=3, last=39)],
        constant_bytes=5_000, payload_bytes={"XnnpackBackend": 1_500_000},
    )  # fmt: skip
    assert list(describe_plan(plan)) == [
        f"memory: 268 MB planned for the largest shape, 2048x2048; {expected}",
        "largest live set: 260 MB at instruction 12 of 40 (add): 130 MB from mul, an output (over 37 of 40 "
        "instructions)",
        "data of the program: 5 kB constants, 1.5 MB payload of XnnpackBackend",
    ]


def test_a_program_whose_sizes_no_machine_has_has_no_plan(tmp_path: Path) -> None:
    for size, has_plan in ((3, True), (2**31 - 1, False)):
        (pte := tmp_path / f"{size}.pte").write_bytes(build_program({"forward": Signature([Tensor([size] * 4)])}))
        assert (plan_case(pte, "forward", [[size] * 4]) is not None) == has_plan


@pytest.mark.torch
@pytest.mark.thorough
def test_a_dynamic_export_states_its_plan_and_what_each_shape_needs(tmp_path: Path) -> None:
    # given 2 portable operators on up to 1024 x 8 values, measured with 4 rows and with 64
    import torch

    class TwoSums(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return (x.cumsum(0) * x).cumsum(1)

    rows = torch.export.Dim("rows", min=1, max=1024)
    shapes = {"few": (torch.ones(4, 8),), "many": (torch.ones(64, 8),)}
    content = build_here(
        TwoSums(), shapes["many"], "fp32", tmp_path / "e", dynamic_shapes=({0: rows},), shapes=shapes
    )  # fmt: skip
    described = {"export_version": EXPORT_VERSION, "export_key": "k", "model": "m", "precision": "fp32", "seed": 0}
    (tmp_path / "e/export.json").write_text(json.dumps(content | described | {"versions": {}, "export_s": 0}))
    few, many = (export.memory for export in read_exports(tmp_path / "e"))
    # then both have the plan of 1024 rows, and what their rows need is in proportion
    assert few
    assert many
    assert few.arenas_bytes == many.arenas_bytes
    assert (few.largest_shape, few.measured_shape) == ([1024, 8], [4, 8])
    assert few.live_bytes == 1024 // 4 * (few.needed_bytes or 0) == 1024 // 64 * (many.needed_bytes or 0)
    # and the plan is that of ExecuTorch's own reader
    from executorch.exir._serialize import _deserialize_pte_binary

    program = _deserialize_pte_binary((tmp_path / "e/model.pte").read_bytes()).program
    [planned] = program.execution_plan
    assert few.arenas_bytes == [size for size in planned.non_const_buffer_sizes if size]
    assert few.instructions == len(planned.chains[0].instructions)
