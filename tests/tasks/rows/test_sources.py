"""Given sessions with sources.json: where each operator comes from, and where the time goes in the modules."""

import json
from typing import Any

import pytest

from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, LINEAR, MEAN, TRANSPOSE, BundleMaker

MS = 1_000_000
CLAMP = "Clamp (NC) #1"
ADD = "Add (ND) #1"
SOURCES = [
    (1, "aten.convolution.default", "net.py:7"),
    (2, "aten.relu.default", "net.py:8"),
    (1, "aten.convolution.default", "net.py:9"),
    (3, "aten.mean.dim", "net.py:12"),
    (0, "aten.add.Tensor", "net.py:11"),
]
MODULES = [("", "net.Net"), ("body.conv", "torch.nn.Conv2d"), ("body.act", "torch.nn.ReLU"), ("head", "net.Head")]
# A convolution with an activation, one that may run as a fully connected operator, and one inserted node.
NODES: list[dict[str, Any]] = [
    {"kind": "XNNStaticTranspose", "sources": []},
    {"kind": "XNNConv2d", "sources": [0], "clamp": [1]},
    {"kind": "XNNConv2d", "sources": [2]},
]


def sources(nodes: list[dict[str, Any]] | None, **methods: Any) -> dict[str, bytes]:
    delegate = {"chain": 0, "instruction": 0, "backend": "XnnpackBackend", "sources": [0, 1, 2], "nodes": nodes}
    forward = [delegate, *({"chain": 0, "instruction": number, "sources": [3]} for number in (3, 4))]
    content = {"version": 1, "modules": MODULES, "sources": SOURCES, "methods": methods or {"forward": forward}}
    return {"sources.json": json.dumps(content).encode()}


def listed(maker: BundleMaker, columns: str = "operator, source_operator, module_path, file_line, certainty") -> Any:
    return maker.ask(f"SELECT {columns} FROM operator_source ORDER BY operator NULLS LAST")


def test_each_operator_has_its_source_and_the_times_of_modules_add_up(maker: BundleMaker) -> None:
    # given a transpose that was inserted, two convolutions of which one runs as a fully connected operator, and a mean
    times = {TRANSPOSE: MS, CONVOLUTION: 2 * MS, LINEAR: 3 * MS, MEAN: MS}
    maker.session([(10 * MS, times)] * 3, files=sources(NODES))
    maker.session([(10 * MS, times)] * 3, files=sources(NODES))
    maker.load()
    # then operators are named as in the model
    assert listed(maker, "operator, source_operator, fused_with, module_path, file_line, certainty") == [
        (CONVOLUTION, "aten.convolution.default", "aten.relu.default of body.act", "body.conv", "net.py:7", "known"),
        (LINEAR, "aten.convolution.default", None, "body.conv", "net.py:9", "known"),
        (TRANSPOSE, None, None, None, None, "inserted"),
        (MEAN, "aten.mean.dim", None, "head", "net.py:12", "known"),
    ]
    # and the modules contain all of Method::execute
    columns = "module_path, kind, depth, parent, module_class, own_share, share"
    assert maker.ask(f"SELECT {columns} FROM module_time ORDER BY module_path") == [
        ("", "module", 0, None, "net.Net", 0.0, 1.0),
        ("Inserted", "inserted", 1, "", None, 0.1, 0.1),
        ("Unattributed", "unattributed", 1, "", None, 0.3, 0.3),
        ("body", "module", 1, "", None, 0.0, 0.5),
        ("body.conv", "module", 2, "body", "torch.nn.Conv2d", 0.5, 0.5),
        ("head", "module", 1, "", "net.Head", 0.1, 0.1),
    ]
    assert maker.ask("SELECT count(*) FROM source_map") == [(1,)]


def test_an_activation_that_ran_separately_is_not_stated_as_fused(maker: BundleMaker) -> None:
    nodes = [{"kind": "XNNAdd", "sources": [4], "clamp": [1]}]
    maker.session([(10 * MS, {ADD: MS, CLAMP: MS})], files=sources(nodes))
    maker.load()
    assert listed(maker, "operator, source_operator, fused_with") == [
        (ADD, "aten.add.Tensor", None),
        (CLAMP, "aten.relu.default", None),
    ]


def test_an_activation_that_may_have_run_separately_is_stated_as_possibly_fused(maker: BundleMaker) -> None:
    # given one Clamp, which is the activation of the addition or the one after it
    nodes = [{"kind": "XNNAdd", "sources": [4], "clamp": [1]}, {"kind": "XNNClamp", "sources": [3]}]
    maker.session([(10 * MS, {ADD: MS, CLAMP: MS})], files=sources(nodes))
    maker.load()
    assert listed(maker, "operator, source_operator, fused_with") == [
        (ADD, "aten.add.Tensor", "possibly aten.relu.default of body.act"),
        (CLAMP, "aten.relu.default or aten.mean.dim", None),
    ]


def test_a_node_without_an_event_is_listed_as_not_executed(maker: BundleMaker) -> None:
    nodes = [{"kind": "XNNConvert", "sources": [4]}, {"kind": "XNNConv2d", "sources": [0]}]
    maker.session([(10 * MS, {CONVOLUTION: MS})], files=sources(nodes))
    maker.load()
    assert listed(maker) == [
        (CONVOLUTION, "aten.convolution.default", "body.conv", "net.py:7", "known"),
        (None, "aten.add.Tensor", "", "net.py:11", "not executed"),
    ]


def test_what_the_order_leaves_open_names_only_what_the_candidates_share(maker: BundleMaker) -> None:
    nodes = [{"kind": "XNNConv2d", "sources": [0]}, {"kind": "XNNDepthwiseConv2d", "sources": [1]}]
    maker.session([(10 * MS, {CONVOLUTION: MS})], files=sources(nodes))
    maker.load()
    assert listed(maker)[0] == (
        CONVOLUTION, "aten.convolution.default or aten.relu.default", "body", None, "ambiguous",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "note"),
    [
        ([{"kind": "XNNAdd", "sources": [4]}], "do not match the nodes"),
        (None, "does not state which operators"),
    ],
)
def test_a_delegate_that_cannot_be_told_apart_names_the_module_around_it(
    maker: BundleMaker, nodes: list[dict[str, Any]] | None, note: str
) -> None:
    maker.session([(10 * MS, {CONVOLUTION: MS})], files=sources(nodes))
    maker.load()
    [(module_path, operator, certainty, found)] = listed(maker, "module_path, source_operator, certainty, note")
    assert (module_path, operator, certainty) == ("body", None, "unknown")
    assert note in found


def test_one_name_may_be_another_operator_with_sme2(maker: BundleMaker) -> None:
    # given two convolutions: with SME2, the first has another name, and the number of the second moves up
    first, second = CONVOLUTION, CONVOLUTION.replace("#1", "#2")
    maker.session([(10 * MS, {first: MS, second: MS})], files=sources(NODES), variant="sme2_off")
    maker.session([(10 * MS, {CONVOLUTION_SME2: MS, first: MS})], files=sources(NODES), variant="sme2_on")
    maker.load()
    lines = dict(maker.ask(f"SELECT variant, file_line FROM operator_source WHERE operator = '{CONVOLUTION}'"))
    assert lines == {"sme2_off": "net.py:7", "sme2_on": "net.py:9"}


def test_the_method_of_the_session_is_used(maker: BundleMaker) -> None:
    other = [{"chain": 0, "instruction": 1, "sources": [4]}]
    mine = [{"chain": 0, "instruction": 1, "sources": [3]}]
    maker.session([(10 * MS, {MEAN: MS})], files=sources(None, forward=other, decode=mine), model__method="decode")
    maker.session([(10 * MS, {MEAN: MS})], files=sources(None, forward=other), model__method="absent", model__seed=1)
    maker.load()
    assert listed(maker) == [(MEAN, "aten.mean.dim", "head", "net.py:12", "known")]


def test_a_session_without_sources_has_no_rows_and_a_damaged_file_is_refused(maker: BundleMaker) -> None:
    maker.session([(10 * MS, {MEAN: MS})])
    damaged = json.loads(sources(NODES)["sources.json"]) | {"sources": []}
    maker.session([(10 * MS, {MEAN: MS})], files={"sources.json": json.dumps(damaged).encode()})
    result = maker.load()
    assert result.loaded == 1
    assert "sources.json: does not match its schema" in result.refused[0][1]
    assert listed(maker) == []
    assert maker.ask("SELECT count(*) FROM module_time") == [(0,)]
