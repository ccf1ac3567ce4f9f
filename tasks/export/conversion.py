"""What a recipe converted: sentences about the layers that an export lists."""

from collections.abc import Iterable, Mapping
from typing import Any

_MAX_REASONS = 3


def is_converted(layer: Mapping[str, Any]) -> bool:
    """Return whether the weights of a layer are not stored in fp32."""
    return bool(layer["type"] != "fp32")


def converted_share(layers: Iterable[Mapping[str, Any]]) -> float:
    """Return the share of the weights that are not stored in fp32, from 0 to 1; 0 without layers."""
    layers = list(layers)
    converted: int = sum(layer["weights"] for layer in layers if is_converted(layer))
    return float(converted / max(1, sum(layer["weights"] for layer in layers)))


def describe_conversion(layers: Iterable[Mapping[str, Any]]) -> str | None:
    """Return how many layers of each kind were converted, their share of the weights, and why others were not.

    None if the recipe converts no weights.
    """
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
    share = f"{', '.join(counts)} converted ({_percent(converted_share(layers))} of the weights)"
    return "; ".join([share, *reasons[:_MAX_REASONS], *more])


def _count(layers: list[Mapping[str, Any]], kind: str) -> str:
    return f"{sum(map(is_converted, layers))} of {len(layers)} {kind}{'s' if len(layers) > 1 else ''}"


def _percent(share: float) -> str:
    """Return a share as `0.5 %`, `100 %` or, below 0.1 %, with one digit."""
    percent = 100 * share
    return f"{percent:.1f}".removesuffix(".0") + " %" if percent >= 0.1 else f"{percent:.1g} %"
