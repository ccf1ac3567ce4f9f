"""Write sources.json: the module, operator and line of the model that each instruction of a program comes from.

An ETDump names instructions, and inside a delegate only XNNPACK's operators. The program and its ETRecord add their
sources: the debug handles of instructions, and of nodes in XNNPACK's graph, refer to nodes of the exported graph, which
have a module path and a stack trace. tasks/rows/sources.py aligns the events of a delegate with its nodes when a
session is loaded, because only a device shows which nodes XNNPACK ran.
"""

import functools
import json
import logging
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tasks.bundle.names import SOURCES
from tasks.export.lowering.work import Work, has_fixed_sizes, operator_work
from tasks.export.xnnpack_work import GraphWork, decompile_graph
from tasks.store.files import write_complete

logger = logging.getLogger(__name__)
_DEADLINE_S, _VERSION = 600.0, 1
_XNNPACK = "XnnpackBackend"
_QUANTIZES, _LIMITS = ("quantize", "dequantize", "choose_qparams"), ("relu", "hardtanh", "clamp")
_FRAME = re.compile(r'File "(?P<file>[^"<]+)", line (?P<line>\d+)')
_INSTALLED = re.compile(r".*/(?:site-packages|dist-packages|lib/python\d+\.\d+)/")
# XNNPACK's kind of node -> its operators, for a debug handle that covers several nodes: attention is one call in the
# model and nine nodes in a delegate. Other kinds have the name of their operator: XNNSigmoid, `sigmoid`.
_OPERATORS_BY_KIND = {
    "XNNBatchMatrixMultiply": ("bmm", "matmul"),
    "XNNConv2d": ("convolution",),
    "XNNDepthwiseConv2d": ("convolution",),
    "XNNFullyConnected": ("linear", "addmm", "mm"),
    "XNNMultiply": ("mul",),
    "XNNSoftmax": ("_softmax", "softmax"),
    "XNNStaticReshape": ("view", "unsqueeze", "squeeze", "reshape"),
    "XNNStaticSlice": ("slice",),
    "XNNStaticTranspose": ("permute", "transpose", "t_copy"),
    "XNNSubtract": ("sub",),
}


def write_sources(lowered: Any, folder: Path) -> None:
    """Write sources.json of a lowered ExecutorchProgramManager with ETRecord into `folder`; a failure is logged."""
    try:
        _write(describe_sources(lowered.executorch_program, lowered.get_etrecord()), folder)
    except Exception:  # private parts of executorch may change; only the names of modules are missing then
        logger.warning("sources.json cannot be written; results will not name modules", exc_info=True)


def write_prebuilt_sources(pte: Path, etrecord: Path, folder: Path) -> None:
    """Write sources.json of a .pte file and its ETRecord, in a subprocess with torch; a failure is logged."""
    command = [sys.executable, "-P", "-m", __name__, *map(os.fspath, (pte, etrecord, folder))]
    path = os.pathsep.join(filter(None, [os.fspath(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    try:
        ended = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            check=False,
        )
        cause = "" if ended.returncode == 0 else (ended.stderr.strip().splitlines() or ["unknown error"])[-1]
    except subprocess.TimeoutExpired:
        cause = f"not read within {_DEADLINE_S:g} s"
    if cause:
        logger.warning("%s: the ETRecord cannot be used (%s); results will not name modules", etrecord, cause)


def describe_sources(program: Any, etrecord: Any) -> dict[str, Any]:
    """Return the content of sources.json for a program (executorch's `Program`) and its ETRecord.

    `modules` are [path, class], `sources` [index of the module or null, operator, file line or null]. `methods` has the
    instructions of each method: {chain, instruction, sources, graph_nodes, work}, for a delegate {chain, instruction,
    backend, sources, nodes}. `nodes` are {kind, sources, graph_nodes, work, fused, clamp, clamp_work}; null for other
    backends than XNNPACK. `graph_nodes` are names of the ETRecord. All sources of instructions and nodes are indexes
    into `sources`; a node without any was inserted by the lowering. `work` is a `Work`, null if unknown. `clamp` are
    activations that became limits of the node's output: XNNPACK runs them separately where an operator has no limits.
    """
    import operator

    import torch

    entries = _Entries()
    edge = etrecord.edge_dialect_program
    programs = edge if isinstance(edge, Mapping) else {"forward": edge}
    handle_map = etrecord._debug_handle_map
    methods = {}
    for plan in program.execution_plan:
        if plan.name in programs:
            nodes_by_handle: dict[int, list[Any]] = defaultdict(list)  # those that compute, also in branches and loops
            for part in programs[plan.name].graph_module.modules():
                for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
                    computes = node.op == "call_function" and node.target is not operator.getitem
                    if computes and (handle := node.meta.get("debug_handle")):
                        nodes_by_handle[handle].append(node)
            handles = handle_map.get(plan.name, handle_map)
            methods[plan.name] = list(_describe_calls(program, plan, handles, nodes_by_handle, entries))
    modules = [(path, name) for path, (_, name) in entries.modules.items()]
    return {"version": _VERSION, "modules": modules, "sources": list(entries.sources), "methods": methods}


def _write(content: dict[str, Any], folder: Path) -> None:
    write_complete(folder / SOURCES, (json.dumps(content, separators=(",", ":")) + "\n").encode())


class _Entries:
    """The modules and sources of sources.json, each entered once."""

    def __init__(self) -> None:
        self.modules: dict[str, tuple[int, str | None]] = {}
        """Index and class by path."""
        self.sources: dict[tuple[int | None, str, str | None], int] = {}

    def enter(self, node: Any, called: str | None = None) -> int:
        """Return the index of a node's source. `called` replaces the node's operator.

        A node without a module, which quantization added, gets that of its users or, without any, of its inputs.
        """
        index = None
        # Enters all modules around the node; the last one is the innermost.
        for path, name in _stack_near(node, "users") or _stack_near(node, "all_input_nodes"):
            index = self.modules.setdefault(path, (len(self.modules), name))[0]
        source = (index, called or _operator_name(node), _file_line(node.meta.get("stack_trace")))
        return self.sources.setdefault(source, len(self.sources))

    def enter_all(self, nodes: list[Any]) -> list[int]:
        """Return the indexes of the nodes' sources, each once."""
        return list(dict.fromkeys(self.enter(node) for node in nodes))


def _describe_calls(
    program: Any, plan: Any, handles: Mapping[Any, Any], nodes_by_handle: dict[int, list[Any]], entries: _Entries
) -> Iterator[dict[str, Any]]:
    """Yield the kernel and delegate calls of a method in order, as in sources.json.

    `handles` are debug handles by instruction. Nodes with one handle may become several kernels: the sources of a
    kernel are those with its operator or, if the lowering chose another one, the first node with that operator.
    """
    for chain_index, chain in enumerate(plan.chains):
        for number, instruction in enumerate(chain.instructions):
            handle_or_list = handles.get(number, handles.get(str(number)))
            instruction_handles = handle_or_list if isinstance(handle_or_list, list) else [handle_or_list]
            position = {"chain": chain_index, "instruction": number}
            match type(instruction.instr_args).__name__:
                case "KernelCall":
                    nodes = [node for handle in instruction_handles for node in nodes_by_handle.get(handle, [])]
                    called = plan.operators[instruction.instr_args.op_index].name.replace("::", ".")
                    named = [node for node in nodes if _operator_name(node).startswith(f"{called}.")]
                    sources = entries.enter_all(named) if named else [entries.enter(node, called) for node in nodes[:1]]
                    names = [node.name for node in named or nodes[:1]]
                    work = _common_work(named or nodes, is_in_place=called.endswith("_"))
                    yield {**position, "sources": sources, "graph_nodes": names, "work": work}
                case "DelegateCall":
                    delegate = plan.delegates[instruction.instr_args.delegate_index]
                    inside = {each: nodes_by_handle[each] for each in instruction_handles if each in nodes_by_handle}
                    yield {**position, "backend": delegate.id, **_describe_delegate(program, delegate, inside, entries)}


def _common_work(nodes: list[Any], *, is_in_place: bool) -> Work | None:
    """Return the work of a kernel that is one of the nodes; None if these differ, or if it is unknown."""
    works = {operator_work(node, is_in_place=is_in_place) for node in nodes}
    return works.pop() if len(works) == 1 else None


def _describe_delegate(program: Any, delegate: Any, inside: dict[int, list[Any]], entries: _Entries) -> dict[str, Any]:
    """Return {sources, nodes} of a delegate call; `inside` are its nodes of the exported graph by debug handle."""
    computing = [node for nodes in inside.values() for node in nodes if not _has_operator(_QUANTIZES, node)]
    described: dict[str, Any] = {"sources": entries.enter_all(computing), "nodes": None}
    if delegate.id != _XNNPACK:
        return described
    graph = decompile_graph(bytes(program.backend_delegate_data[delegate.processed.index].data))
    fused = _find_fused(inside, {node["debug_handle"] for node in graph["xnodes"]})
    quantized = {
        value["xvalue_union"]["tensor_value"]["id_out"]
        for value in graph["xvalues"]
        if value["xvalue_union_type"] == "XNNQuantizedTensorValue"
    }
    has_sizes = all(has_fixed_sizes(node) for nodes in inside.values() for node in nodes)
    graph_work = GraphWork(graph) if has_sizes else None  # a graph has the largest sizes only
    described["nodes"] = []
    for xnn_node in graph["xnodes"]:
        kind, handle = xnn_node["xnode_union_type"], xnn_node["debug_handle"]
        if kind == "XNNConvert":  # quantizes, dequantizes or changes the floating-point type
            is_quantizing = xnn_node["xnode_union"]["output_id"] in quantized
            operators: tuple[str, ...] = ("quantize" if is_quantizing else "dequantize", "_to")
        else:
            operators = _OPERATORS_BY_KIND.get(kind, (kind.removeprefix("XNN").lower(),))
        # Of the nodes with its debug handle, those of its operators; if none matches, all that compute.
        nodes = inside.get(handle, [])
        computes = [each for each in nodes if not _has_operator(_QUANTIZES, each)] or nodes
        computed = [each for each in nodes if _has_operator(operators, each)] or computes
        node: dict[str, Any] = {"kind": kind, "sources": entries.enter_all(computed)}
        node["graph_nodes"] = [each.name for each in computed]
        node["work"] = graph_work and graph_work.of_node(xnn_node)
        if handle in fused and kind != "XNNConvert":  # fused operators are listed once
            with_node = fused.pop(handle)
            limits = [each for each in with_node if xnn_node.get("output_min_max") and _has_operator(_LIMITS, each)]
            for key, nodes in (("fused", [each for each in with_node if each not in limits]), ("clamp", limits)):
                if nodes:
                    node[key] = entries.enter_all(nodes)
            node |= {"clamp_work": graph_work.of_clamp(xnn_node)} if limits and graph_work else {}
        described["nodes"].append(node)
    return described


def _find_fused(inside: dict[int, list[Any]], present: set[int]) -> dict[int, list[Any]]:
    """Return operators without a node in XNNPACK's graph, by the handle of the node that computes their input.

    `present` are the handles of nodes in XNNPACK's graph. Activations become limits of the operator before them, and
    batch norms a part of its weights.
    """
    fused: dict[int, list[Any]] = defaultdict(list)
    handle_by_node = {node: handle for handle, nodes in inside.items() for node in nodes}
    for handle, nodes in inside.items():
        for node in nodes:
            if handle not in present and not _has_operator(_QUANTIZES, node):
                before = node
                while before is not None and handle_by_node.get(before) not in present:
                    before = next(iter(before.all_input_nodes), None)
                if before is not None:
                    fused[handle_by_node[before]].append(node)
    return fused


def _has_operator(names: tuple[str, ...], node: Any) -> bool:
    """Whether a node's operator, without its namespace, begins with one of the names."""
    return _operator_name(node).split(".")[1].startswith(names)


def _operator_name(node: Any) -> str:
    """Return a node's operator such as `aten.add.Tensor`; for a Python function, `torch.` and its name."""
    import torch

    operator = getattr(node.target, "_op", node.target)
    return str(operator) if isinstance(operator, torch._ops.OpOverload) else f"torch.{operator.__name__}"


def _stack_near(node: Any, side: str) -> list[tuple[str, str]]:
    """Return the modules around a node, else around the next with any along its first `side`: users or inputs."""
    while node is not None and node.op == "call_function":
        if stack := module_stack(node):
            return stack
        node = next(iter(getattr(node, side)), None)
    return []


def module_stack(node: Any) -> list[tuple[str, str]]:
    """Return (path, class) of the modules around a node, outermost first; empty for what an export added."""
    entries = (node.meta.get("nn_module_stack") or {}).values()
    stack = [
        (path, name if isinstance(name, str) else f"{name.__module__}.{name.__qualname__}") for path, name in entries
    ]
    # Quantization and decompositions add nodes whose only module is a wrapper of torch.export's.
    if not stack or stack[-1][1].startswith("torch.export."):
        return []
    return [(re.sub(r"@\d+", "", path), name) for path, name in stack]  # torch numbers repeated calls of a module


def _file_line(stack_trace: str | None) -> str | None:
    """Return the innermost line of the stack outside torch (otherwise inside it), as `file:line`."""
    frames = [(_short_path(frame["file"]), frame["line"]) for frame in _FRAME.finditer(stack_trace or "")]
    outside_torch = [frame for frame in frames if not frame[0].startswith("torch/")]
    return ":".join((outside_torch or frames)[-1]) if frames else None


@functools.cache
def _short_path(file: str) -> str:
    """Return a file relative to installed packages or to where modules are imported from, or with its last folder."""
    if installed := _INSTALLED.match(file):
        return file[installed.end() :]
    path, roots = Path(file), [Path(root) for root in (*sys.path, str(Path.cwd())) if root]
    inside = [path.relative_to(root) for root in roots if path.is_relative_to(root)]
    return min(inside, key=lambda each: len(each.parts)).as_posix() if inside else "/".join(path.parts[-2:])


if __name__ == "__main__":
    from executorch.devtools.etrecord import parse_etrecord
    from executorch.exir._serialize._program import deserialize_pte_binary

    _pte, _etrecord, _folder = map(Path, sys.argv[1:])
    _write(describe_sources(deserialize_pte_binary(_pte.read_bytes()).program, parse_etrecord(str(_etrecord))), _folder)
