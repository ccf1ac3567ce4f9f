"""The precisions in which a model can be exported, and the recipe of each.

To add one, add its name and its recipe here; `lower.py` changes only if it needs a new kind of quantization.
The text of this file is part of every export key, so a change here exports every model again.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Precision = Literal["fp32", "fp16", "int8_static", "int8_dynamic"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


@dataclass(frozen=True)
class Recipe:
    """How a model is converted to a precision; the eager reference runs in `float_type`."""

    float_type: Literal["float32", "float16"]
    quantization: Literal["static", "dynamic"] | None = None
    """int8 weights per channel; static: activations too, calibrated on seeded data; dynamic: linear layers only."""
    backend: Literal["xnnpack"] = "xnnpack"
    """The backend that the model is lowered to; part of a series' key."""


RECIPES: dict[Precision, Recipe] = {
    "fp32": Recipe("float32"),
    "fp16": Recipe("float16"),
    "int8_static": Recipe("float32", "static"),
    "int8_dynamic": Recipe("float32", "dynamic"),
}
