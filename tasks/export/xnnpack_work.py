"""Multiply-accumulates and bytes of each node of XNNPACK's graph, from the sizes and types that the graph states."""

import json
import re
import tempfile
from math import prod
from pathlib import Path
from typing import Any

from tasks.export.lowering.work import Work

_NO_VALUE = 2**32 - 1
_OUTPUTS = ("output_id", "output_value_id", "output_index_id")
_BITS = {
    "fp32": 32, "fp16": 16, "bf16": 16, "pfp32": 32, "int32": 32, "qint32": 32, "qcint32": 32, "qint8": 8, "quint8": 8,
    "qcint8": 8, "qdint8": 8, "qpint8": 8, "qcint4": 4, "qbint4": 4,
}  # fmt: skip
"""Of one element, by the name of XNNDatatype without its prefix."""
_SCALE_BYTES = {"PerChannelQuant": 4, "PerChannelGroupQuant": 2}


def decompile_graph(processed: bytes) -> dict[str, Any]:
    """Return XNNPACK's graph in a delegate's data, in the form of its schema.fbs; infinities and NaN become None."""
    import importlib.resources

    from executorch.backends.xnnpack.serialization.xnnpack_graph_serialize import XNNHeader
    from executorch.exir._serialize._flatbuffer import _flatc_decompile

    header = XNNHeader.from_bytes(processed[: XNNHeader.EXPECTED_LENGTH])
    with tempfile.TemporaryDirectory() as folder:
        schema = Path(folder, "schema.fbs")
        schema.write_bytes(
            importlib.resources.files("executorch.backends.xnnpack.serialization").joinpath("schema.fbs").read_bytes()
        )
        data = Path(folder, "graph.bin")
        data.write_bytes(processed[header.flatbuffer_offset : header.flatbuffer_offset + header.flatbuffer_size])
        _flatc_decompile(folder, str(schema), str(data), ["--raw-binary"])
        # Limits of activations may be infinite, which JSON cannot represent.
        text = re.sub(r": -?(?:inf|nan)\b", ": null", Path(folder, "graph.json").read_text(encoding="utf-8"))
        graph: dict[str, Any] = json.loads(text)
    return graph


class GraphWork:
    """The work of the nodes of a graph, which `decompile_graph` returned. Padding and layouts are not counted."""

    def __init__(self, graph: dict[str, Any]) -> None:
        self._sizes: dict[int, list[int]] = {}
        self._bytes: dict[int, int] = {}
        self._datatypes: dict[int, str] = {}
        self._constants = set[int]()
        for value in graph["xvalues"]:
            content = value["xvalue_union"]
            tensor = content.get("tensor_value", content)
            datatype = tensor["datatype"].removeprefix("xnn_datatype_")
            sizes, bits = tensor["dims"], _BITS[datatype]
            self._datatypes[tensor["id_out"]] = datatype
            if tensor["constant_buffer_idx"]:
                self._constants.add(tensor["id_out"])
            scales = content.get("quant_params", {}).get("num_scales", 0)
            scale_bytes = scales * _SCALE_BYTES.get(content.get("quant_params_type", ""), 0)
            self._sizes[tensor["id_out"]] = sizes
            self._bytes[tensor["id_out"]] = (prod(sizes) * bits + 7) // 8 + scale_bytes

    def of_node(self, node: dict[str, Any]) -> Work | None:
        """Return the work of a node; None of a kind whose products are not counted here."""
        fields = node["xnode_union"]
        inputs, outputs = self._operands(fields)
        is_fp16 = any(self._datatypes[each] == "fp16" for each in outputs)
        read = [self._read_bytes(each, is_fp16=is_fp16) for each in inputs]
        written = sum(self._bytes[each] for each in outputs)
        macs = self._macs(node["xnode_union_type"], fields)
        if node["xnode_union_type"] == "XNNStaticSlice":
            read = [written]
        return None if macs is None else (macs, sum(read) + written)

    def of_clamp(self, node: dict[str, Any]) -> Work:
        """Return the work of the limits of a node's output, where they run as an operator."""
        _, outputs = self._operands(node["xnode_union"])
        return 0, 2 * sum(self._bytes[each] for each in outputs)

    def _read_bytes(self, value: int, *, is_fp16: bool) -> int:
        """Return the bytes of an input; XNNPACK packs weights in fp32 of an operator in fp16 as fp16."""
        is_packed = is_fp16 and value in self._constants and self._datatypes[value] == "fp32"
        return self._bytes[value] // 2 if is_packed else self._bytes[value]

    def _operands(self, fields: dict[str, Any]) -> tuple[list[int], list[int]]:
        """Return the ids of the values that a node reads, each once, and of those that it writes."""
        ids = {name: value for name, value in fields.items() if name.endswith("_id") and value != _NO_VALUE}
        outputs = [ids.pop(name) for name in _OUTPUTS if name in ids]
        return list(dict.fromkeys(ids.values())), outputs

    def _macs(self, kind: str, fields: dict[str, Any]) -> int | None:
        match kind:
            case "XNNFullyConnected" | "XNNBatchMatrixMultiply":
                return prod(self._sizes[fields["output_id"]]) * self._sizes[fields["input1_id"]][-1]
            case "XNNConv2d" | "XNNDepthwiseConv2d":
                products = fields["kernel_height"] * fields["kernel_width"] * fields["group_input_channels"]
                return prod(self._sizes[fields["output_id"]]) * int(products)
            case "XNNConvTranspose2d":
                products = fields["kernel_height"] * fields["kernel_width"] * fields["group_output_channels"]
                return prod(self._sizes[fields["input1_id"]]) * int(products)
            case "XNNScaledDotProductAttention":
                return None
            case _:
                return 0
