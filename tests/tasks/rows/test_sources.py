"""Given sessions with sources.json: where each operator comes from, and where the time goes in the modules."""

import json
from pathlib import Path
from typing import Any

import pytest

from devices.errors import InputError
from tasks.bundle.record import BundleError
from tasks.rows.rows import bundle_rows
from tasks.rows.sources import check_sources, node_sources
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


Described = list[tuple[str | int | None, ...]]


def described(folder: Path, *columns: str) -> Described:
    """Return the name of each operator of a bundle, None for a node that did not run, and columns of its source."""
    rows = bundle_rows(folder)
    if rows.sources is None or rows.runs is None:
        return []
    tree = rows.runs.tree
    named = [(None if row["node"] is None else tree[row["node"]].name, row) for row in node_sources(rows.sources, tree)]
    return [
        (name, *(row.get(column) for column in columns)) for name, row in sorted(named, key=lambda each: each[0] or "~")
    ]


WHERE = ("source_operator", "module_path", "file_line", "certainty")


def test_each_operator_has_its_source_and_the_times_of_modules_add_up(maker: BundleMaker) -> None:
    # given a transpose that was inserted, two convolutions of which one runs as a fully connected operator, and a mean
    times = {TRANSPOSE: MS, CONVOLUTION: 2 * MS, LINEAR: 3 * MS, MEAN: MS}
    for _ in range(2):
        maker.session([(10 * MS, times)] * 3, files=sources(NODES))
    maker.load()
    columns = "operator, source_operator, fused_with, module_path, file_line, certainty"
    assert maker.ask(f"SELECT {columns} FROM operator_source ORDER BY operator") == [
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


SKIPPED = "not executed"
NOT_ALIGNED = "the operators of the delegate do not match the nodes of XNNPACK's graph one by one"
NOT_REPORTED = "this backend does not state which operators of the model it runs"
RELU, CONV = "aten.relu.default", "aten.convolution.default"
FUSED, NOTED = ("source_operator", "fused_with"), (*WHERE, "note")
Node = dict[str, Any]


def node(kind: str, *of: int, clamp: int | None = None) -> Node:
    """A node of XNNPACK's graph that stands for these sources."""
    return {"kind": f"XNN{kind}", "sources": of} | ({} if clamp is None else {"clamp": [clamp]})


# Nodes of the graph, names of the operators that ran, columns, and the rows.
ALIGNED: dict[str, tuple[list[Node] | None, list[str], tuple[str, ...], Described]] = {
    "an activation that ran separately is not fused": (
        [node("Add", 4, clamp=1)], [ADD, CLAMP], FUSED, [(ADD, "aten.add.Tensor", None), (CLAMP, RELU, None)],
    ),
    "an activation that may have run separately is possibly fused": (
        [node("Add", 4, clamp=1), node("Clamp", 3)], [ADD, CLAMP], FUSED,
        [(ADD, "aten.add.Tensor", f"possibly {RELU} of body.act"), (CLAMP, f"{RELU} or aten.mean.dim", None)],
    ),
    "a node without an event was not executed": (
        [node("Convert", 4), node("Conv2d", 0)], [CONVOLUTION], WHERE,
        [(CONVOLUTION, CONV, "body.conv", "net.py:7", "known"), (None, "aten.add.Tensor", "", "net.py:11", SKIPPED)],
    ),
    "what the order leaves open names what the candidates share": (
        [node("Conv2d", 0), node("DepthwiseConv2d", 1)], [CONVOLUTION], WHERE,
        [(CONVOLUTION, f"{CONV} or {RELU}", "body", None, "ambiguous")],
    ),
    "operators that do not match the nodes have the module around them": (
        [node("Add", 4)], [CONVOLUTION], NOTED, [(CONVOLUTION, None, "body", None, "unknown", NOT_ALIGNED)],
    ),
    "operators of a backend that states no nodes have the module around them": (
        None, [CONVOLUTION], NOTED, [(CONVOLUTION, None, "body", None, "unknown", NOT_REPORTED)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "operators", "columns", "rows"), ALIGNED.values(), ids=ALIGNED)
def test_operators_of_a_delegate_are_assigned_to_nodes_as_far_as_their_order_decides(
    maker: BundleMaker, nodes: list[Node] | None, operators: list[str], columns: tuple[str, ...], rows: Described
) -> None:
    folder = maker.session([(10 * MS, dict.fromkeys(operators, MS))], files=sources(nodes))
    assert described(folder, *columns) == rows


def test_the_work_of_an_operator_is_known_if_all_nodes_that_it_may_be_have_the_same(maker: BundleMaker) -> None:
    first, second, third = (node("Conv2d", 0) | {"work": work} for work in ([9, 40], [9, 40], [7, 40]))
    clamped = node("Add", 4, clamp=1) | {"work": [0, 12], "clamp_work": [0, 8]}

    def works(nodes: list[Node], *operators: str) -> Described:
        folder = maker.session([(10 * MS, dict.fromkeys(operators, MS))], files=sources(nodes))
        return [row for row in described(folder, "macs", "bytes") if row[0]]

    assert works([first, second], CONVOLUTION) == [(CONVOLUTION, 9, 40)]
    assert works([first, third], CONVOLUTION) == [(CONVOLUTION, None, None)]
    assert works([first, node("Conv2d", 0)], CONVOLUTION) == [(CONVOLUTION, None, None)]
    assert works([clamped], ADD, CLAMP) == [(ADD, 0, 12), (CLAMP, 0, 8)]
    assert works([clamped], LINEAR) == [(LINEAR, None, None)]


def test_one_name_may_be_another_operator_with_sme2(maker: BundleMaker) -> None:
    # given two convolutions: with SME2, the first has another name, and the number of the second moves up
    first, second = CONVOLUTION, CONVOLUTION.replace("#1", "#2")
    off = maker.session([(10 * MS, {first: MS, second: MS})], files=sources(NODES), variant="sme2_off")
    on = maker.session([(10 * MS, {CONVOLUTION_SME2: MS, first: MS})], files=sources(NODES), variant="sme2_on")
    assert (first, "net.py:7") in described(off, "file_line")
    assert (first, "net.py:9") in described(on, "file_line")


def test_the_method_of_the_session_is_used(maker: BundleMaker) -> None:
    other = [{"chain": 0, "instruction": 1, "sources": [4]}]
    mine = [{"chain": 0, "instruction": 1, "sources": [3]}]
    files = sources(None, forward=other, decode=mine)
    folder = maker.session([(10 * MS, {MEAN: MS})], files=files, model__method="decode")
    assert described(folder, *WHERE) == [(MEAN, "aten.mean.dim", "head", "net.py:12", "known")]
    folder = maker.session([(10 * MS, {MEAN: MS})], files=files, model__method="absent")
    assert described(folder, *WHERE) == []


def test_a_session_without_sources_has_no_rows_and_a_damaged_file_is_refused(maker: BundleMaker) -> None:
    assert described(maker.session([(10 * MS, {MEAN: MS})]), *WHERE) == []
    damaged = json.loads(sources(NODES)["sources.json"]) | {"sources": []}
    folder = maker.session([(10 * MS, {MEAN: MS})], files={"sources.json": json.dumps(damaged).encode()})
    with pytest.raises(BundleError, match=r"sources\.json: does not match its schema"):
        bundle_rows(folder)


def test_the_sources_of_a_strangers_export_are_refused_before_anything_is_measured(tmp_path: Path) -> None:
    check_sources(tmp_path)
    (content,) = sources(NODES).values()
    (tmp_path / "sources.json").write_bytes(content)
    check_sources(tmp_path)
    for damaged in (b"not json", b"{}", content.replace(b'"sources": [3]', b'"sources": [99]')):
        (tmp_path / "sources.json").write_bytes(damaged)
        with pytest.raises(InputError, match="copy the export's folder again"):
            check_sources(tmp_path)
