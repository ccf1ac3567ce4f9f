"""Sentences about an export: what its recipe converted, what is random, and what ExecuTorch computes wrong."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sql.schema import is_scalar_operator
from tasks.bundle.cell import XNNPACK
from tasks.bundle.delegates import backend_title
from tasks.bundle.sizes import size_text

_MAX_REASONS = 3
_BITS = {"fp16": 16, "bf16": 16, "int8_static": 8, "int8_dynamic": 8, "int4_dynamic": 4}
_NOTABLE_SHARE = 0.05
"""Share of a program's bytes that a complete conversion would save, from which on it is stated."""


def is_converted(layer: Mapping[str, Any]) -> bool:
    """Return whether the weights of a layer are not stored in fp32."""
    return bool(layer["type"] != "fp32")


def count_layers(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the numbers of layers and of their weights, of all and of converted ones; empty without layers."""
    layers = list(layers)
    converted = [layer for layer in layers if is_converted(layer)]
    if not layers:
        return {}
    return {
        "layer_count": len(layers),
        "converted_layers": len(converted),
        "layer_weights": sum(layer["weights"] for layer in layers),
        "converted_weights": sum(layer["weights"] for layer in converted),
    }


def converted_share(layers: Iterable[Mapping[str, Any]]) -> float:
    """Return the share of the weights that are not stored in fp32, from 0 to 1; 0 without layers."""
    layers = list(layers)
    converted: int = sum(layer["weights"] for layer in layers if is_converted(layer))
    return float(converted / max(1, sum(layer["weights"] for layer in layers)))


def describe_conversion(layers: Iterable[Mapping[str, Any]]) -> str | None:
    """Return how many layers and weights were converted, and why others were not; None if the recipe converts none."""
    layers = list(layers)
    if not any(is_converted(layer) or layer["reason"] for layer in layers):
        return None
    kinds = dict.fromkeys(layer["kind"] for layer in layers)
    counts = (_count([layer for layer in layers if layer["kind"] == kind], kind) for kind in kinds)
    weights: dict[str, int] = {}
    for layer in layers:
        if layer["reason"]:
            weights[layer["reason"]] = weights.get(layer["reason"], 0) + layer["weights"]
    reasons = sorted(weights, key=lambda reason: -weights[reason])
    more = [f"{len(reasons) - _MAX_REASONS} other reasons"] if len(reasons) > _MAX_REASONS else []
    portable = [layer for layer in layers if not layer.get("is_delegated", True) and layer["kind"] != "embedding"]
    counts_of = Counter(layer["kind"] for layer in portable)
    left = [f"not delegated: {', '.join(f'{number} {_plural(kind, number)}' for kind, number in counts_of.items())}"]
    share = f"{', '.join(counts)} converted ({_percent(converted_share(layers))} of the weights)"
    return "; ".join([share, *reasons[:_MAX_REASONS], *more, *(left if portable else [])])


def _count(layers: list[Mapping[str, Any]], kind: str) -> str:
    return f"{sum(map(is_converted, layers))} of {len(layers)} {_plural(kind, len(layers))}"


def _plural(kind: str, number: int) -> str:
    return kind if number == 1 else f"{kind}s"


def _percent(share: float) -> str:
    """Return a share as `0.5 %`, `100 %` or, below 0.1 %, with one digit."""
    percent = 100 * share
    return f"{percent:.1f}".removesuffix(".0") + " %" if percent >= 0.1 else f"{percent:.1g} %"


def converts(precision: str, kind: str) -> bool:
    base, _, options = precision.partition(" ")
    is_for_linear = base in ("int8_dynamic", "int4_dynamic")
    return not is_for_linear or kind == "linear layer" or (kind == "embedding" and kind in options)


def describe_size(precision: str, layers: Iterable[Mapping[str, Any]], pte_bytes: int) -> str | None:
    """Return the size of a program and that of a complete conversion; None if they are nearly equal or unknown."""
    bits = _BITS.get(precision.partition(" ")[0], 32)
    remaining = (each["weights"] for each in layers if not is_converted(each) and converts(precision, each["kind"]))
    saved_bytes = sum(remaining) * (32 - bits) // 8
    if saved_bytes < _NOTABLE_SHARE * pte_bytes:
        return None
    expected_bytes = pte_bytes - saved_bytes
    return f"{size_text(pte_bytes)}; with all these layers converted, about {size_text(expected_bytes)}"


def describe_weights(stored_bytes: Mapping[str, int], pte_bytes: int) -> str | None:
    """Return the bytes of a program by the type of its weights, the largest first; None if they are unknown."""
    if not stored_bytes:
        return None
    parts = sorted(stored_bytes.items(), key=lambda part: -part[1])
    rest = max(0, pte_bytes - sum(stored_bytes.values()))
    return ", ".join(f"{size_text(size)} {name}" for name, size in [*parts, ("other than weights", rest)])


def describe_type_changes(changes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each floating-point type of the model that the export does not keep."""
    return [
        f"{each['before']} becomes {each['after']}: {each['weights']} values of the module, {each['inputs']} of inputs"
        for each in changes
    ]


def describe_export(export: Any) -> list[str]:
    """Return what a user must know of an Export: what its recipe converted, what is portable, and what is left out."""
    size = describe_size(export.precision, export.layers, export.pte_bytes)
    sentences = [*filter(None, [describe_conversion(export.layers), size]), *describe_type_changes(export.type_changes)]
    method = export.program_method
    if method and method.calls and not method.delegate_calls:
        sentences.append(f"nothing is delegated: {len(method.calls)} calls of portable operators")
    if shares := describe_shares(export):
        sentences.append(shares)
    for each in export.left_out:
        where = f" in {each['method']}" if each["method"] else ""
        sentences.append(f"exported without {each['step']}{where}: {each['reason']}")
    return sentences


def describe_shares(export: Any) -> str | None:
    """Return what each backend took of the operators and of the multiply-accumulates, and what is portable.

    None if only XNNPACK may take a part, or no delegate may, or if the shares are unknown.
    """
    shares: list[dict[str, Any]] = export.delegates or []
    if {each["backend"] for each in shares} <= {XNNPACK}:
        return None
    operators = export.portable_operators + sum(each["operators"] for each in shares)

    def part(count: int, macs: int | None) -> str:
        counted = f"{count} of {operators} operators"
        if not export.macs or macs is None:
            return counted
        return f"{counted} and {_percent(macs / export.macs)} of the multiply-accumulates"

    parts = [
        f"{backend_title(each['backend'])} took {part(each['operators'], each['macs'])}"
        if each["operators"]
        else f"{backend_title(each['backend'])} took none"
        for each in shares
    ]
    if export.portable_operators:
        rest = part(export.portable_operators, export.portable_macs)
        parts.append(f"portable: {rest} ({_portable_names(export.portable)})")
    return "; ".join(parts)


def _portable_names(portable: Iterable[Mapping[str, Any]]) -> str:
    """Return the most frequent portable operators with their counts: `aten.atan.default x 2`."""
    called = [each for each in portable if not is_scalar_operator(each["operator"])]
    names = [f"{each['operator']} x {each['count']}" for each in called[:_MAX_REASONS]]
    more = [f"{len(called) - _MAX_REASONS} others"] if len(called) > _MAX_REASONS else []
    return ", ".join([*names, *more])


def random_sentence(draw: Mapping[str, str | None]) -> str:
    """Return what is random in a model, where, and what to do."""
    if draw["operator"] is None:
        return (
            "random in evaluation mode: two executions with the same inputs have different outputs, and no operator of "
            "PyTorch draws random numbers; make its forward compute the same values each time"
        )
    module = f" in {draw['module']}" if draw["module"] else ""
    line = f" ({draw['line']})" if draw["line"] else ""
    return (
        f"random in evaluation mode: {draw['operator']}{module}{line} draws other numbers in each execution; "
        "remove it, draw only while `self.training` is true, or pass the numbers as an input"
    )


def fault_sentence(fault: Mapping[str, Any], executorch: str | None) -> str:
    """Return what ExecuTorch (of a version) computes wrong, and what to do."""
    by = f"ExecuTorch {executorch or ''}".rstrip()
    if fault["operator"] is None:
        return f"{by} computes this program wrong on this machine; which operator it is was not found: {fault['cause']}"
    module = f" in {fault['module']}" if fault["module"] else ""
    line = f" ({fault['line']})" if fault["line"] else ""
    at = f"element {fault['element']} is" if fault["element"] else "the result is"
    return (
        f"{by} computes {fault['operator']}{module}{line} wrong in {fault['kernel']}: {at} {fault['actual']}, in eager "
        f"PyTorch {fault['expected']}; the program without the farm's passes is wrong, too: replace this operator in "
        "the model, and report it to ExecuTorch"
    )
