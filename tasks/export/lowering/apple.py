"""How the partitioners of Core ML and MLX are made, and in which floating-point type Core ML computes.

Core ML's converter chooses the type: without a stated one, it would compute fp32 as fp16. A model in fp16 is traced in
fp32 and converted there, because coremltools 9.0 cannot convert layer norms of a module in half precision. So inputs
and outputs are fp32, and all that Core ML takes computes in fp16. A program contains the model as Core ML's package,
which the Mac compiles at the first load.
"""

import importlib
import logging
import platform
import sys
from typing import Any

from tasks.export.exported import NotApplicableError, NotHereError
from tasks.export.recipes import Recipe

_AT_RUN_TIME = "Core ML cannot quantize activations at run time; use int8_static"
COREML_LEFT = dict.fromkeys(
    ("aten.index_put.default", "aten.index_put_.default"),
    "left out of Core ML: coremltools 9.0 cannot convert a write of several rows of a cache",
)
"""Why operators stay portable that its partitioner would take."""
COREML_UNSUPPORTED = {"bf16": "it has no such type", "int8_dynamic": _AT_RUN_TIME, "int4_dynamic": _AT_RUN_TIME}


def make_coreml_partitioner(recipe: Recipe) -> Any:
    """Return executorch's CoreMLPartitioner for macOS 14 or later, which runners need.

    Raises NotApplicableError for fp16 with exceptions, since Core ML would compute these in fp16, too.
    """
    if recipe.except_operators:
        raise NotApplicableError(f"Core ML does not support {recipe.name}: it converts all operators or none; use fp16")
    coremltools: Any = importlib.import_module("coremltools")  # it has no types
    from executorch.backends.apple.coreml.compiler import CoreMLBackend
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner

    # executorch logs each program, which for a large model takes longer than its conversion.
    logging.getLogger("executorch.backends.apple.coreml").setLevel(logging.ERROR)
    types = coremltools.precision
    specs = CoreMLBackend.generate_compile_specs(
        compute_unit=coremltools.ComputeUnit.ALL,  # a session may state another one
        minimum_deployment_target=coremltools.target.macOS14,
        compute_precision=types.FLOAT16 if recipe.name == "fp16" else types.FLOAT32,
    )
    # Core ML keeps state itself only from macOS 15 on.
    return CoreMLPartitioner(
        compile_specs=specs, take_over_mutable_buffer=False, skip_ops_for_coreml_delegation=[*COREML_LEFT]
    )


def check_mlx() -> None:
    """Raise NotHereError on another machine than a Mac with Apple silicon; imports nothing, since torch takes seconds.

    The package of executorch for others lacks files of MLX's exporter, so that its import fails there.
    """
    if (sys.platform, platform.machine()) != ("darwin", "arm64"):
        problem = "MLX exports only on a Mac with Apple silicon, whose package of executorch has its files"
        remedy = "export there, and measure the .pte file with `delegate: mlx` in its entry"
        raise NotHereError(f"{problem}; {remedy}")


def make_mlx_partitioner() -> Any:
    return importlib.import_module("executorch.backends.mlx.partitioner").MLXPartitioner()
