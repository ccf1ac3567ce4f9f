"""The recipes by which a model is converted before it is lowered: the `precisions` of a sweep.

To add one, add it here; `convert.py` changes only if it needs a new kind of quantization.
"""

import contextlib
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from devices.errors import FarmError
from devices.suggest import did_you_mean

Quantization = Literal["int8_static", "int8_dynamic", "int4_dynamic"]


@dataclass(frozen=True)
class Int4Options:
    group_size: int = 32
    """Number of weights of a row that share a scale."""
    embedding: int | None = None
    """Bits of embeddings: 8 with a scale for each row, 4 with one for each group; None: not quantized."""
    lm_head: int | str | None = None
    """Bits of the output layer: 8 with a scale for each row, or fp32; None: int4 like other linear layers."""


@dataclass(frozen=True)
class Recipe:
    """How a model is converted; the eager reference of the same precision is the converted model."""

    name: str
    """Recorded as `precision`."""
    float_type: Literal["float32", "float16", "bfloat16"] = "float32"
    quantization: Quantization | None = None
    """int8_static: weights per channel and activations, calibrated; int8_dynamic: linear layers with int8 weights per
    channel; int4_dynamic: linear layers with int4 weights per group. Dynamic: activations become int8 at run time."""
    int4: Int4Options | None = None
    """Options of int4_dynamic; None for other recipes."""
    except_operators: tuple[str, ...] = ()
    """ATen operators, such as layer_norm, that compute in fp32."""
    user_function: str | None = None
    """Your own recipe, `package.module:recipe`: a function (module, inputs) or
    (module, inputs, dynamic_shapes) -> ExportedProgram."""

    @property
    def is_in_place(self) -> bool:
        """Whether the module, not only its program, computes as converted: only then its perplexity can be computed."""
        return self.quantization in (None, "int4_dynamic") and not self.except_operators and self.user_function is None


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("fp32"),
        Recipe("fp16", "float16"),
        Recipe("bf16", "bfloat16"),
        Recipe("int8_static", quantization="int8_static"),
        Recipe("int8_dynamic", quantization="int8_dynamic"),
        Recipe("int4_dynamic", quantization="int4_dynamic", int4=Int4Options()),
    )
}
FORMS = {
    "fp32": "none",
    "fp16": "half precision; slower than fp32 on a processor that cannot compute in it, such as x86-64 without "
    "`avx512_fp16`",
    "bf16": "the upper half of fp32: its range with 8 bits of precision. XNNPACK computes linear layers, arithmetic by "
    "element and moves in it; convolutions and pooling stay portable. Skipped if nothing is delegated",
    "int8_static": "PT2E, calibrated: weights per channel, and activations",
    "int8_dynamic": "linear layers with int8 weights per channel; activations are quantized at run time",
    "int4_dynamic": "linear layers with int4 weights per group; activations are quantized at run time",
    "int4_dynamic: {group_size: 128}": "also `embedding: 8` or `4` bits, and `lm_head: 8` or `fp32`",
    "fp16 except: [layer_norm]": "the listed ATen operators compute in fp32",
    "package.module:recipe": "your function: it takes (module, inputs), and `dynamic_shapes` if it has a third "
    "parameter; it returns an ExportedProgram",
}
"""What each form of an entry of `precisions` converts, as docs/reference/values.md lists it."""
_USER_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_OPERATOR = re.compile(r"[a-z_][a-z0-9_]*")
_EXCEPT = " except "
_INT4 = "int4_dynamic"
HEAD = "lm_head"
"""Name of the output layer in models of transformers."""
# Keys of int4_dynamic in a sweep file: the values, and the prefix of a value in the name of the recipe.
_INT4_KEYS: dict[str, tuple[tuple[int | str, ...], str]] = {
    "group_size": ((32, 64, 128), "g"),
    "embedding": ((8, 4), "embedding"),
    "lm_head": ((8, "fp32"), "head"),
}
_UNSUPPORTED_KEY = "kv_cache"


def parse_recipe(name: str) -> Recipe:
    """Return the recipe of a name such as `fp16 except softmax` or `int4_dynamic g128`; FarmError with the forms."""
    base, separator, exceptions = name.partition(_EXCEPT)
    if separator:
        operators = tuple(sorted({each.strip() for each in exceptions.split(",")}))
        if base != "fp16":
            raise FarmError(f"precision `{name}`: only fp16 can have exceptions; write `fp16 except layer_norm`")
        for operator in operators:
            if not _OPERATOR.fullmatch(operator):
                problem = f"`{operator}` is not the name of an ATen operator, such as layer_norm"
                raise FarmError(f"precision `{name}`: {problem}")
        return replace(RECIPES["fp16"], name=f"fp16{_EXCEPT}{', '.join(operators)}", except_operators=operators)
    if name in RECIPES:
        return RECIPES[name]
    if base.startswith(f"{_INT4} "):
        options: dict[str, Any] = {}
        for part in name.split()[1:]:
            for key, (values, prefix) in _INT4_KEYS.items():
                options |= {key: value for value in values if f"{prefix}{value}" == part}  # noqa: B035 - at most one
        if _int4_name(options) != name:
            form = f"`{_INT4}: {{group_size: 128, embedding: 8, lm_head: 8}}`"
            raise FarmError(f"unknown precision `{name}`; write {form}")
        return replace(RECIPES[_INT4], name=name, int4=Int4Options(**options))
    if _USER_FUNCTION.fullmatch(name):
        return Recipe(name, user_function=name)
    raise FarmError(
        f"unknown precision `{name}`; use one of {', '.join(RECIPES)}, `fp16 except layer_norm`, or your own as "
        f"package.module:recipe{did_you_mean(name, RECIPES)}"
    )


def product_recipe(name: str) -> str:
    """Return the recipe that converts one matrix product as the recipe `name` converts those of a model.

    What a product does not have, such as a layer norm or an embedding, is left out. The macro `_product_recipe` is the
    same for SQL.
    """
    return re.sub(f"{_EXCEPT}.*| (embedding|head)\\w+", "", name)


def recipe_name(written: Any) -> str:
    """Return the recipe's name for a precision in a sweep file: a text, or a mapping as `fp16 except: [layer_norm]`.

    A text may be that of a mapping. Different spellings of one recipe have the same name. Raises FarmError, also for an
    unknown recipe.
    """
    if isinstance(written, str) and ": " in written:
        import yaml  # slow to import, and most recipes are names

        with contextlib.suppress(yaml.YAMLError):  # then it is an unknown recipe
            written = yaml.safe_load(written)
    if isinstance(written, dict) and len(written) == 1:
        [(key, value)] = written.items()
        if isinstance(key, str) and key.endswith(_EXCEPT.rstrip()) and isinstance(value, list) and value:
            return parse_recipe(f"{key} {', '.join(map(str, value))}").name
        if key == _INT4 and isinstance(value, dict):
            return _int4_name(value)
    if not isinstance(written, str):
        raise FarmError(
            "a precision is a name, such as fp16, or `fp16 except: [layer_norm]`, `int4_dynamic: {group_size: 128}`"
        )
    return parse_recipe(written).name


def _int4_name(written: dict[Any, Any]) -> str:
    """Return the name of int4_dynamic with these options, such as `int4_dynamic g128`; raises FarmError for others."""
    parts = [_INT4]
    for key, value in written.items():
        if key == _UNSUPPORTED_KEY:
            raise FarmError(f"{_INT4}: `{key}`: the runner has no operators for a quantized KV cache; leave it out")
        if key not in _INT4_KEYS:
            raise FarmError(f"{_INT4}: unknown key `{key}`; use {', '.join(_INT4_KEYS)}{did_you_mean(key, _INT4_KEYS)}")
        values, _ = _INT4_KEYS[key]
        if value not in values or isinstance(value, bool):
            raise FarmError(f"{_INT4}: `{key}` must be one of {', '.join(map(str, values))}, not {value}")
    for key, (_, prefix) in _INT4_KEYS.items():
        value = written.get(key)
        if value is not None and value != getattr(Int4Options, key):  # a default is not part of a name
            parts.append(f"{prefix}{value}")
    return " ".join(parts)
