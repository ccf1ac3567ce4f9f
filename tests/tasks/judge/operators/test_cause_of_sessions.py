"""A cause is named by module where the export states modules and they explain more, otherwise by operator."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.judge.operators.cause import find_cause
from tasks.judge.operators.cause_of_sessions import (
    build_group,
    cause_between,
    list_operators,
    sum_by_module,
    sum_by_operator,
)

LINEAR, NORM, ADD = "Fully Connected", "Layer Norm", "native_call_add.out"
Layers = Mapping[tuple[str, str | None], float]
"""Milliseconds of an operator in a module."""


def blocks(count: int) -> dict[tuple[str, str | None], float]:
    """The layers of a model of equal blocks: two linear layers of 1 ms and a norm of 0.2 ms in each."""
    of_block = {("attn.q", LINEAR): 1.0, ("mlp.up", LINEAR): 1.0, ("norm", NORM): 0.2}
    layers: dict[tuple[str, str | None], float] = {("Unattributed", "Unattributed"): 0.3}
    for number in range(count):
        layers |= {(operator, f"blocks.{number}.{module}"): ms for (module, operator), ms in of_block.items()}
    return layers


def sessions(layers: Layers, seed: int, count: int = 8) -> list[dict[str, Any]]:
    """Sessions with a scatter of 0.3 % in each layer; every layer is called once."""
    generator, operators = np.random.default_rng(seed), [operator for operator, _ in layers]
    common = {"operators": operators, "categories": operators, "modules": [module for _, module in layers]}
    common |= {"calls": [float(each != "Unattributed") for each in operators], "resolutions_ns": [0.0] * len(layers)}
    usual = [1e6 * ms for ms in layers.values()]
    return [
        {**common, "times_ns": [ns * np.exp(0.003 * generator.standard_normal()) for ns in usual]} for _ in range(count)
    ]


def cause(before: Layers, after: Layers) -> str:
    return cause_between(sessions(before, 1), sessions(after, 2)) or ""


def slower(factor: float, *places: str) -> dict[tuple[str, str | None], float]:
    """Four blocks, in which the modules with these endings are slower."""
    return {(name, at): ms * (factor if str(at).endswith(places) else 1) for (name, at), ms in blocks(4).items()}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (slower(1.3, "2.mlp.up"), r"`blocks\.2\.mlp\.up` \+0\.\d+ ms \(\+(29|30)\.\d %\)"),
        (slower(1.3, "1.attn.q", "2.mlp.up"), r"(`blocks\.\d\.(attn\.q|mlp\.up)` \+0\.\d+ ms [^,]*(, |$)){2}"),
        (slower(1.3, "attn.q", "mlp.up"), r"`Fully Connected` \+2\.\d+ ms \(\+(29|30)\.\d %\)"),
        (blocks(5), r"`blocks\.4` is new, \+2\.\d+ ms"),
        (blocks(3), r"`blocks\.3` is gone, -2\.\d+ ms"),
    ],
    ids=["one layer", "two layers", "all layers of a kind", "a block more", "a block less"],
)
def test_the_places_that_changed_are_named(after: Layers, expected: str) -> None:
    assert re.match(expected, cause(blocks(4), after))


def test_an_operator_that_is_new_gone_or_called_otherwise_comes_before_the_module_it_is_in() -> None:
    # given a delegate that lost a layer, which takes a portable operator now
    lost = {key: ms for key, ms in blocks(4).items() if key != (LINEAR, "blocks.2.mlp.up")}
    lost[ADD, "blocks.2.mlp.up"] = 4.0
    assert re.match(
        r"`native_call_add\.out` is new, \+4\.\d+ ms, `Fully Connected` -1\.0\d+ ms \(-12\.\d %, 8 -> 7 calls\)",
        cause(blocks(4), lost),
    )
    # and one that is called more often in modules that were there
    more = blocks(4) | {(NORM, "blocks.0.attn.q"): 0.2}
    assert re.match(r"`Layer Norm` \+0\.2\d+ ms \(\+2\d\.\d %, 4 -> 5 calls\)", cause(blocks(4), more))


def test_without_the_modules_of_both_sides_operators_are_named() -> None:
    unknown: Layers = {(operator, None): ms for operator, ms in {LINEAR: 8.0, NORM: 0.8}.items()}
    by_block: Layers = {(LINEAR, "blocks.0"): 10.0, (NORM, "blocks.0"): 0.8}
    assert sum_by_module(sessions(unknown, 1), sessions(by_block, 2)) is None
    assert re.match(r"`Fully Connected` \+2\.0\d+ ms", cause(unknown, by_block))


def test_an_operator_has_its_coarsest_resolution_in_any_session() -> None:
    rows = sessions({(LINEAR, "a"): 1.0}, 1, 3)
    for row, resolution_ns in zip(rows, (1.0, 500.0, 2.0), strict=True):
        row["resolutions_ns"] = [resolution_ns]
    (operator,) = list_operators(sum_by_operator(rows)).values()
    assert operator.resolution_ns == 500


PLACES = st.tuples(st.sampled_from([LINEAR, NORM, ADD]), st.sampled_from(["", "a", "a.b", "a.b.c", "d.e", "Inserted"]))
MODULES = st.dictionaries(PLACES, st.sampled_from([0.01, 0.2, 1.0, 5.0]), min_size=1)


@given(MODULES, MODULES)
def test_the_time_of_a_side_is_that_of_its_modules_and_that_of_its_operators(before: Layers, after: Layers) -> None:
    a, b = sessions(before, 1, 5), sessions(after, 2, 5)
    by_module = sum_by_module(a, b)
    assert by_module is not None
    changes = []
    for sides in (by_module, (sum_by_operator(a), sum_by_operator(b))):
        operators = list_operators([*sides[0], *sides[1]])
        groups = [build_group(side, operators, "") for side in sides]
        assert [group.times_ns.sum() for group in groups] == pytest.approx(
            [sum(sum(row["times_ns"]) for row in side) for side in (a, b)]
        )
        changes.append(find_cause(list(operators.values()), *groups).change_ms)
    # then both explain the same change
    assert changes[0] == pytest.approx(changes[1])
