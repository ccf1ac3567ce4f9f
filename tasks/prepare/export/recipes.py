"""The recipes by which a model is converted before it is lowered: the `precisions` of a sweep.

To add one, add it here; `convert.py` changes only if it needs a new kind of quantization. The text of this file is
part of every export key, so a change here exports every model again.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from devices.errors import FarmError
from devices.suggest import did_you_mean

Quantization = Literal["int8_static", "int8_dynamic", "int4_dynamic"]


@dataclass(frozen=True)
class Recipe:
    """How a model is converted; the eager reference of the same precision is the converted model."""

    name: str
    """Recorded as `precision`."""
    float_type: Literal["float32", "float16"] = "float32"
    quantization: Quantization | None = None
    """int8_static: weights per channel and activations, calibrated; int8_dynamic: linear layers with int8 weights per
    channel; int4_dynamic: linear layers with int4 weights per group of 32. Dynamic: activations become int8 at run
    time."""
    except_operators: tuple[str, ...] = ()
    """ATen operators, such as layer_norm, that compute in fp32."""
    own: str | None = None
    """Your own recipe, `package.module:recipe`: a function (module, inputs) or
    (module, inputs, dynamic_shapes) -> ExportedProgram."""


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("fp32"),
        Recipe("fp16", "float16"),
        Recipe("int8_static", quantization="int8_static"),
        Recipe("int8_dynamic", quantization="int8_dynamic"),
        Recipe("int4_dynamic", quantization="int4_dynamic"),
    )
}
_OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_OPERATOR = re.compile(r"[a-z_][a-z0-9_]*")
_EXCEPT = " except "


def recipe_of(name: str) -> Recipe:
    """Return the recipe that a name stands for: a known one, `fp16 except layer_norm, softmax`, or your own.

    Raises FarmError with what would be right.
    """
    base, separator, operators = name.partition(_EXCEPT)
    if separator:
        return _mixed(name, base, tuple(each.strip() for each in operators.split(",")))
    if name in RECIPES:
        return RECIPES[name]
    if _OWN.fullmatch(name):
        return Recipe(name, own=name)
    raise FarmError(
        f"unknown precision `{name}`; use one of {', '.join(RECIPES)}, `fp16 except layer_norm`, or your own as "
        f"package.module:recipe{did_you_mean(name, RECIPES)}"
    )


def recipe_name(written: Any) -> str:
    """Return the name of what a sweep file contains: a text, or a mapping such as `fp16 except: [layer_norm]`.

    Raises FarmError, also for an unknown recipe.
    """
    if isinstance(written, dict) and len(written) == 1:
        [(key, operators)] = written.items()
        if isinstance(key, str) and key.endswith(_EXCEPT.rstrip()) and isinstance(operators, list) and operators:
            return recipe_of(f"{key} {', '.join(map(str, operators))}").name
    if not isinstance(written, str):
        raise FarmError("a precision is a name, such as fp16, or `fp16 except: [layer_norm]`")
    return recipe_of(written).name


def _mixed(name: str, base: str, operators: tuple[str, ...]) -> Recipe:
    if base != "fp16":
        raise FarmError(f"precision `{name}`: only fp16 can have exceptions; write `fp16 except layer_norm`")
    for operator in operators:
        if not _OPERATOR.fullmatch(operator):
            raise FarmError(f"precision `{name}`: `{operator}` is not the name of an ATen operator, such as layer_norm")
    ordered = tuple(sorted(set(operators)))
    return replace(RECIPES["fp16"], name=f"fp16{_EXCEPT}{', '.join(ordered)}", except_operators=ordered)
