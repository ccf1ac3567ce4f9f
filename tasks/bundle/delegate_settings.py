"""What the farm sets in a delegate's own runtime so that a session measures what its cell states.

ExecuTorch's OpenVINO backend sets no property: OpenVINO would use as many threads as the machine has cores, and compute
a model of fp32 in bf16 on processors that can (measured: mobilenet_v2 then has 44 dB instead of 123 dB against eager
PyTorch). The farm's runner takes its properties as options of `OpenvinoRuntime`, and returns what is in force.
"""

import re
from collections.abc import Collection

from tasks.bundle.delegates import DELEGATES
from tasks.bundle.runner_stats import Stats
from tasks.bundle.runtime_options import Setting, returned_value

RUNTIME = "OpenvinoRuntime"
"""Takes the properties in the farm's runner; it executes nothing."""
THREADS, TYPE = "INFERENCE_NUM_THREADS", "INFERENCE_PRECISION_HINT"
# Otherwise OpenVINO uses at most one logical processor of each core, and returns fewer threads than were set. Where
# each core has one it returns NO.
ALL_PROCESSORS = "ENABLE_HYPER_THREADING"
_SAME, _AT_LEAST, _ANY = "same", "at least", "any"
# By the beginning of a recipe's name: the type to compute in. OpenVINO takes f32 on a processor without f16 or bf16.
_TYPES = {
    "fp32": ("f32", _SAME),
    "int8": ("f32", _SAME),
    "int4": ("f32", _SAME),
    "fp16": ("f16", _AT_LEAST),
    "bf16": ("bf16", _AT_LEAST),
}


def delegate_settings(backends: Collection[str], precision: str, threads: int) -> list[Setting]:
    """Return what to set for a program that calls these backends; nothing without OpenVINO.

    The type of a recipe of the user's and of a .pte file from elsewhere stays OpenVINO's default.
    """
    if DELEGATES["openvino"].backend not in backends:
        return []
    recipe = re.match("|".join(_TYPES), precision)
    computed, effect = _TYPES[recipe[0]] if recipe else ("default", _ANY)
    return [
        Setting("threads", str(threads), RUNTIME, THREADS, str(threads), effect=_SAME),
        Setting("threads", str(threads), RUNTIME, ALL_PROCESSORS, "YES", effect=_ANY),
        Setting("precision", precision, RUNTIME, TYPE, computed, effect=effect),
    ]


def delegate_contradiction(every: Collection[Setting], stats: Stats) -> str | None:
    """Return which setting is not in force, by what the runner returns; None if all are."""
    for each in every:
        value = returned_value(each, stats)
        allowed = {_SAME: {each.setting}, _AT_LEAST: {each.setting, "f32"}}.get(each.effect)
        if value == "none" or (allowed and value not in allowed):
            return f"{each.option} is not in force: OpenVINO returned {value} for {each.key}, not {each.setting}"
    return None
