"""How OpenVINO's partitioner is made, and in which type its libraries compute while this machine tries a program.

A program contains OpenVINO's graph and weights, nothing that was compiled for a processor: the runtime compiles it at
each load. By default, it then computes fp32 as bf16 where the processor can (AVX-512 with BF16, AMX): 47 dB of SNR
instead of 132 for three products of 64 x 64. The graph cannot state the type, only the runtime's settings can.
"""

import ctypes
import importlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from devices.errors import FarmError
from tasks.export.exported import NotHereError

_PACKAGE = "executorch.backends.openvino"
_AT_RUN_TIME = "its partitioner does not take activations that are quantized at run time; use int8_static"
UNSUPPORTED = {
    "bf16": "its programs have no inputs and outputs in bf16",
    "int8_dynamic": _AT_RUN_TIME,
    "int4_dynamic": _AT_RUN_TIME,
}
"""Of executorch 1.5.1 with openvino 2025.4.1, which does not convert weights that are stored in int8 either (`addmm`:
types of the inputs differ), but those that the program quantizes: the graph then stores them in int8."""
_LIMITS, _QUANTIZE, _DEQUANTIZE = (
    {"clamp", "hardtanh", "relu", "relu6"},
    {"quantize_per_tensor"},
    {"dequantize_per_tensor"},
)
_SETTINGS = """<ie><plugins><plugin name="CPU" location="libopenvino_intel_cpu_plugin.so"><properties>
<property key="INFERENCE_PRECISION_HINT" value="f32"/>
</properties></plugin></plugins></ie>
"""


def check_system() -> None:
    """Raise NotHereError on another system than Linux, for which executorch has no runtime of OpenVINO."""
    if sys.platform != "linux":
        remedy = "export there, and measure the .pte file with `delegate: openvino` in its entry"
        raise NotHereError(f"OpenVINO exports only on Linux; {remedy}")


def adapt_quantization(graph_module: Any) -> None:
    """Change what XNNPACK's quantizer made of a model so that OpenVINO's int8 kernels compute it accurately."""
    limit_before_quantizing(graph_module)
    halve_weights(graph_module)


def limit_before_quantizing(graph_module: Any) -> None:
    """Remove the quantization before a function that limits its input, such as relu6, and whose result is quantized.

    XNNPACK's quantizer has both. OpenVINO's int8 kernels fuse them and round many values up by a step: then outputs of
    mobilenet_v2 have an SNR of 21.4 dB against eager PyTorch, and without the first one 30.9.
    """
    for limit in list(graph_module.graph.nodes):
        if _base_name(limit) not in _LIMITS or not all(_base_name(user) in _QUANTIZE for user in limit.users):
            continue
        restored = limit.args[0]
        quantized = restored.args[0] if _base_name(restored) in _DEQUANTIZE else None
        if quantized is None or _base_name(quantized) not in _QUANTIZE:
            continue
        if len(restored.users) == len(quantized.users) == len(quantized.args[0].users) == 1:
            limit.replace_input_with(restored, quantized.args[0])
            graph_module.graph.erase_node(restored)
            graph_module.graph.erase_node(quantized)
    graph_module.recompile()


def halve_weights(graph_module: Any) -> None:
    """Double the scales of the weights, so that these are stored as -64 to 64 of the 256 values of int8.

    A processor without AVX-512 VNNI or AVX-VNNI adds two products of int8 in 16 bits, and limits the sum: 2 x 255 x 127
    is too much, 2 x 255 x 64 is not. For toy_cnn on such a processor, outputs have an SNR of 13.2 dB against eager
    PyTorch with all values, and 38.7 with these.
    """
    scales = {node.args[1].target for node in graph_module.graph.nodes if _base_name(node) == "quantize_per_channel"}
    for each in scales:
        graph_module.get_buffer(each).mul_(2)


def _base_name(node: Any) -> str:
    """Return the operator of a node: `hardtanh` also of the one in place; empty if it calls none."""
    return str(node.target).split(".")[1].rstrip("_") if node.op == "call_function" and "." in str(node.target) else ""


def make_partitioner() -> Any:
    """Return executorch's OpenvinoPartitioner for a CPU."""
    from executorch.exir.backend.backend_details import CompileSpec

    _hide_quantizer()
    module = importlib.import_module(f"{_PACKAGE}.partitioner")
    partitioner = module.OpenvinoPartitioner([CompileSpec("device", b"CPU")])
    supported = module.OperatorSupport([])._support_dict
    ask = partitioner.ops_to_not_decompose

    def ops_to_not_decompose(program: Any) -> tuple[list[Any], Any]:
        """Return what to keep whole; 1.5.1 also names operators that it does not take, and nothing executes these."""
        operators, check = ask(program)
        return [each for each in operators if f"torch.ops.{each}" in supported], check

    partitioner.ops_to_not_decompose = ops_to_not_decompose
    return partitioner


def _hide_quantizer() -> None:
    """Make the package importable without nncf, which its __init__.py imports for a quantizer that is not used here.

    No version of nncf can be installed beside both the farm's packages and an openvino that executorch accepts.
    """
    if _PACKAGE in sys.modules:
        return
    backends = importlib.import_module(_PACKAGE.rpartition(".")[0]).__path__
    package = ModuleType(_PACKAGE)
    package.__path__ = [os.fspath(Path(folder, "openvino")) for folder in backends]
    sys.modules[_PACKAGE] = package


def compute_in_fp32(folder: Path) -> None:
    """Let OpenVINO compute fp32 as such in this process, which must not have loaded it yet; `folder` must stay.

    OpenVINO reads plugins.xml beside its main library, at the path that was loaded. So that is a copy in `folder`, and
    the other libraries are links; what loads it later by name, as its Python package, gets this one.
    """
    spec = importlib.util.find_spec("openvino")
    libraries = Path(spec.origin).with_name("libs") if spec and spec.origin else None
    main = next(libraries.glob("libopenvino.so*"), None) if libraries else None
    if libraries is None or main is None:
        raise FarmError("the package openvino has no libs/libopenvino.so; install it again")
    for library in libraries.iterdir():
        (folder / library.name).symlink_to(library)
    (folder / main.name).unlink()
    shutil.copyfile(main, folder / main.name)
    (folder / "plugins.xml").write_text(_SETTINGS, encoding="utf-8")
    ctypes.CDLL(os.fspath(folder / main.name), mode=ctypes.RTLD_GLOBAL)
    os.environ["OPENVINO_LIB_PATH"] = os.fspath(next(folder.glob("libopenvino_c.so*")))
