"""Module, operator, line of the model, and work of each operator of a session: rows of `node_source`.

tasks/rows/alignment.py assigns operators of a delegate to nodes of XNNPACK's graph.
"""

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ValidationError

from devices.errors import InputError
from devices.untrusted import read_json
from tasks.bundle.names import SOURCES
from tasks.bundle.record import BundleError, SessionRecord
from tasks.bundle.values import Count, SmallCount, first_mistake
from tasks.etdump.columns import Etdump
from tasks.etdump.tree import TreeNode, build_runs, several_methods
from tasks.rows.alignment import align

_NOT_ALIGNED = "the operators of the delegate do not match the nodes of XNNPACK's graph one by one"
_NOT_REPORTED = "this backend does not state which operators of the model it runs"
_NOT_LISTED = "sources.json does not list the instruction"
_AMBIGUOUS = "several operators of the model match, in the order in which the delegate runs them"
_INSERTED = "inserted by the exporter, to change a layout or a type; not an operator of the model"
_LEFT_OUT = "did not run: XNNPACK fused it into another operator or removed it"
_EVENT_COLUMNS = ("module_path", "file_line", "source_operator", "fused_with", "certainty")


_Work = tuple[Count, Count]
"""Multiply-accumulates and bytes."""


class _Node(BaseModel, extra="forbid", frozen=True):
    kind: str
    sources: list[SmallCount]
    graph_nodes: list[str] = []
    work: _Work | None = None
    fused: list[SmallCount] = []
    clamp: list[SmallCount] = []
    """Activations that limit its output or run after it."""
    clamp_work: _Work | None = None
    """Of these, where they run after it."""


class _Instruction(BaseModel, extra="forbid", frozen=True):
    chain: SmallCount
    instruction: SmallCount
    sources: list[SmallCount]
    graph_nodes: list[str] = []
    work: _Work | None = None
    backend: str | None = None
    nodes: list[_Node] | None = None


class _File(BaseModel, extra="forbid", frozen=True):
    """sources.json, as tasks/export/sources.py describes it."""

    version: Literal[1]
    modules: list[tuple[str, str | None]]
    sources: list[tuple[SmallCount | None, str, str | None]]
    methods: dict[str, list[_Instruction]]


@dataclass(frozen=True)
class Source:
    """An operator of the exported model; None where the export states nothing."""

    module_path: str | None
    operator: str
    file_line: str | None


@dataclass(frozen=True, eq=False)
class Sources:
    """sources.json of one session, for the method that it ran."""

    sha256: str
    modules: tuple[tuple[str, str | None], ...]
    """Path and class of each module."""
    sources: tuple[Source, ...]
    instructions: dict[tuple[int, int], _Instruction]
    """By chain and instruction."""


def read_sources(folder: Path, record: SessionRecord) -> Sources | None:
    """Return the sources of a bundle, None if it has none; raises BundleError if the file does not match its schema."""
    if SOURCES not in record.files:
        return None
    try:
        return _parse((folder / SOURCES).read_bytes(), record.files[SOURCES].sha256, record.model.method)
    except (ValidationError, IndexError) as error:
        raise BundleError(f"{folder / SOURCES}: {_mistake(error)}; restore the bundle from a backup") from None


def check_sources(folder: Path) -> None:
    """Raise InputError if sources.json in the folder of an export cannot be loaded with the sessions that measure it.

    They would be refused with it, by each load, and stay in the store. A folder without the file is fine.
    """
    try:
        _parse((folder / SOURCES).read_bytes(), "", "")
    except FileNotFoundError:
        return
    except (ValidationError, IndexError) as error:
        raise InputError(f"{folder / SOURCES}: {_mistake(error)}; copy the export's folder again") from None


def _mistake(error: ValidationError | IndexError) -> str:
    cause = first_mistake(error) if isinstance(error, ValidationError) else "a module or source is not listed"
    return f"does not match its schema ({cause})"


@functools.lru_cache(maxsize=32)  # the sessions of a model share one content
def _parse(content: bytes, sha256: str, method: str) -> Sources | None:
    """Return the sources of a method, None if not listed; ValidationError, or IndexError for a wrong number."""
    file = read_json(_File, content)
    sources = tuple(
        Source(None if module is None else file.modules[module][0], operator, file_line)
        for module, operator, file_line in file.sources
    )
    for instruction in (each for listed in file.methods.values() for each in listed):
        nodes = instruction.nodes or []
        for index in (*instruction.sources, *(i for node in nodes for i in (*node.sources, *node.fused, *node.clamp))):
            sources[index]  # raises IndexError, which read_sources reports
    chosen = file.methods.get(method)
    if chosen is None:
        return None
    listed = {(instruction.chain, instruction.instruction): instruction for instruction in chosen}
    return Sources(sha256, tuple(file.modules), sources, listed)


def node_sources(sources: Sources, tree: Sequence[TreeNode]) -> Iterator[dict[str, Any]]:
    """Yield the rows of `node_source` for a tree, without keys: `node` is an index into the tree.

    `graph_nodes` are names of nodes in the exported graph, where it is certain which ones they are. Each portable and
    delegated operator has a row, and so has each node of XNNPACK's graph that did not run (`node` is None). The order
    of a delegate's operators in the tree is the order in which they ran.
    """
    inside: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for index, node in enumerate(tree):
        if node.kind == "delegated":
            inside[node.parent, node.chain_index, node.instruction_id].append(index)
        elif node.kind == "portable":
            listed = sources.instructions.get((node.chain_index, node.instruction_id))
            chosen = [sources.sources[i] for i in listed.sources] if listed else []
            names = {"graph_nodes": listed.graph_nodes if listed else []}
            work = _work_columns([listed.work] if listed else [])
            yield {**_instruction_key(node), "node": index, **names, **work, **_describe(chosen, _NOT_LISTED)}
    for operators in inside.values():
        yield from _delegate_rows(sources, tree, operators)


def event_sources(sources: Sources, dump: Etdump) -> dict[int, dict[str, str]]:
    """Return the source of each operator by row of `dump`, with the column names of operator_source; None is left out.

    Empty if the executions are of several methods, whose operators cannot be assigned by their order.
    """
    runs = build_runs(dump)
    if several_methods(dump, runs):
        return {}
    node_columns = {
        row["node"]: {column: row[column] for column in _EVENT_COLUMNS if row.get(column) is not None}
        for row in node_sources(sources, runs.tree)
        if row["node"] is not None
    }
    events = zip(np.flatnonzero(dump.execution >= 0).tolist(), runs.node.tolist(), strict=True)
    return {row: node_columns[node] for row, node in events if node in node_columns}


def _delegate_rows(sources: Sources, tree: Sequence[TreeNode], operators: list[int]) -> Iterator[dict[str, Any]]:
    """Yield a row for each operator of one delegate call, then for each node that did not run.

    `operators` are indexes into the tree, in the order in which they ran. An operator with one possible node gets its
    sources; with several, what their sources have in common; with none, it is unknown. For example, one `Convolution`
    may be either of two nodes XNNConv2d: its row states what both share, and neither counts as not executed. Its work
    is known if both have the same.
    """
    instruction = _instruction_key(tree[operators[0]])
    listed = sources.instructions.get((instruction["chain_index"], instruction["instruction_id"]))
    nodes = list(_with_clamps((listed.nodes if listed else None) or []))
    all_sources = [sources.sources[index] for index in listed.sources] if listed else []
    cause = _NOT_LISTED if listed is None else _NOT_REPORTED if listed.nodes is None else _NOT_ALIGNED
    aligned = align([tree[index].parts.operator for index in operators], [node.kind for node in nodes])
    may_have_run = {candidate for candidates in aligned for candidate in candidates}
    ran = {candidates[0] for candidates in aligned if len(candidates) == 1}

    def clamp_prefix(number: int) -> str | None:
        """Return what precedes the clamp of a node in `fused_with`; None if it ran separately, as the next node."""
        return None if number + 1 in ran else "possibly " if number + 1 in may_have_run else ""

    for index, candidates in zip(operators, aligned, strict=True):
        row: dict[str, Any] = {**instruction, "node": index}
        possible_nodes = [nodes[candidate] for candidate in candidates]
        row |= _work_columns([node.work for node in possible_nodes])
        if not candidates:
            yield {**row, **_unknown(all_sources, cause)}
        elif len(candidates) == 1:
            row["graph_nodes"] = possible_nodes[0].graph_nodes
            yield {**row, **_describe_node(sources, possible_nodes[0], clamp_prefix(candidates[0]))}
        else:
            possible_sources = [sources.sources[i] for node in possible_nodes for i in node.sources]
            has_inserted = not all(node.sources for node in possible_nodes)
            yield {**row, **_describe([*possible_sources, *([None] if has_inserted else [])], cause)}
    # Without any match, which nodes ran is unknown.
    for number, node in enumerate(nodes if any(aligned) else []):
        if number not in may_have_run and not isinstance(node, _Clamp):
            described = _describe_node(sources, node, clamp_prefix(number))
            yield {**instruction, **described, "node": None, "certainty": "not executed", "note": _LEFT_OUT}


class _Clamp(_Node, frozen=True):
    """The activation of the node before it, where it runs separately."""


def _with_clamps(nodes: Sequence[_Node]) -> Iterator[_Node]:
    """Yield each node, and right behind it the clamp that it may run as a separate operator."""
    for node in nodes:
        yield node
        if node.clamp:
            yield _Clamp(kind="XNNClamp", sources=node.clamp, work=node.clamp_work)


def _work_columns(works: Sequence[_Work | None]) -> dict[str, int | None]:
    """Return the work that all candidates have; None if they differ or it is unknown."""
    macs, bytes_moved = (set(works).pop() if len(set(works)) == 1 else None) or (None, None)
    return {"macs": macs, "bytes": bytes_moved}


def _instruction_key(node: TreeNode) -> dict[str, Any]:
    return {"chain_index": node.chain_index, "instruction_id": node.instruction_id}


def _describe_node(sources: Sources, node: _Node, clamp_prefix: str | None) -> dict[str, Any]:
    """Return the columns of a row that describe a node of XNNPACK's graph: its sources, and what was fused into it."""
    if not node.sources:
        return {"delegate_node": node.kind, "certainty": "inserted", "note": _INSERTED}
    columns = _describe([sources.sources[index] for index in node.sources], _NOT_ALIGNED)
    columns["delegate_node"] = node.kind
    fused = [("", index) for index in node.fused]
    fused += [(clamp_prefix, index) for index in node.clamp if clamp_prefix is not None]
    parts = [(prefix, sources.sources[index]) for prefix, index in fused]
    texts = [f"{prefix}{each.operator} of {each.module_path or 'the model'}" for prefix, each in parts]
    columns["fused_with"] = ", ".join(texts) or None
    return columns


def _describe(chosen: Sequence[Source | None], why: str) -> dict[str, Any]:
    """Return what the possible sources of an operator have in common; None among them is an inserted node."""
    distinct = [source for source in dict.fromkeys(chosen) if source is not None]
    if not distinct:
        return _unknown([], why)
    lines = {source.file_line for source in distinct}
    operators = list(dict.fromkeys(source.operator for source in distinct))
    is_one = len({source.module_path for source in distinct}) == len(operators) == 1 and None not in chosen
    return {
        "module_path": _shared_path(distinct),
        "source_operator": " or ".join(operators),
        "file_line": lines.pop() if len(lines) == 1 else None,
        "certainty": "known" if is_one else "ambiguous",
        "note": None if is_one else _AMBIGUOUS,
    }


def _unknown(around: Sequence[Source], why: str) -> dict[str, Any]:
    return {"module_path": _shared_path(around), "certainty": "unknown", "note": why}


def _shared_path(sources: Sequence[Source]) -> str | None:
    """Return the innermost module that contains all sources; None if the module of one is unknown."""
    paths = [source.module_path for source in sources]
    if not paths or None in paths:
        return None
    parts = [path.split(".") if path else [] for path in paths if path is not None]
    shared = 0
    while all(len(each) > shared and each[shared] == parts[0][shared] for each in parts):
        shared += 1
    return ".".join(parts[0][:shared])
