"""Names of operators, parsed and put into categories by one table."""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

from sql.schema import is_scalar_operator, seed_rows
from tasks.etdump.event_names import EventKind, OperatorName, parse_operator

CATEGORY = {(operator, kind): category for operator, kind, category in seed_rows("operator_category")}


def category_of(name: str) -> str | None:
    kind = EventKind.PORTABLE if name.startswith("native_call_") else EventKind.DELEGATED
    return CATEGORY.get((parse_operator(name, kind).operator, kind.name.lower()))


@pytest.mark.parametrize(
    ("name", "operator", "layout", "data_type", "microkernel"),
    [
        ("Convolution (NHWC, PF32) IGEMM #1", "Convolution", "NHWC", "PF32", "IGEMM"),
        ("Convolution (NHWC, PQS8, QS8, QC8W) IGEMM #12", "Convolution", "NHWC", "PQS8, QS8, QC8W", "IGEMM"),
        ("Fully Connected (NC, QP8, F32, QC8W) GEMM", "Fully Connected", "NC", "QP8, F32, QC8W", "GEMM"),
        ("Average Pooling (NHWC, F32) Average Pooling #1", "Average Pooling", "NHWC", "F32", "Average Pooling"),
        ("Transpose (ND, X32) #2", "Transpose", "ND", "X32", None),
        ("Static Reshape (NC) #1", "Static Reshape", "NC", None, None),
        ("Pack LH (X16) #1", "Pack LH", None, "X16", None),
        ("Batch Matrix Multiply (NC, BF16_F32) GEMM #1", "Batch Matrix Multiply", "NC", "BF16_F32", "GEMM"),
        ("Scaled Dot-Product Attention (NHTC, F32) #1", "Scaled Dot-Product Attention", "NHTC", "F32", None),
        ("(unnamed)", "(unnamed)", None, None, None),
        ("conv (NC, F32) GEMM #1 [estimate]", "conv [estimate]", "NC", "F32", "GEMM"),
        ("conv2d_1 [a/b] (x) (y)", "conv2d_1 [a/b] (x) (y)", None, None, None),
    ],
)
def test_a_delegated_name_is_parsed(
    name: str, operator: str, layout: str | None, data_type: str | None, microkernel: str | None
) -> None:
    assert parse_operator(name, EventKind.DELEGATED) == OperatorName(operator, layout, data_type, microkernel)


def test_a_portable_name_is_the_operators_without_prefix_and_overload_and_others_stay_as_they_are() -> None:
    for name, operator in {
        "native_call__to_dim_order_copy.out": "_to_dim_order_copy",
        "native_call_max.dim_max": "max",
        "native_call_linear": "linear",
    }.items():
        assert parse_operator(name, EventKind.PORTABLE) == OperatorName(operator)
    for kind in (EventKind.METHOD, EventKind.DELEGATE_CALL, EventKind.OPERATOR_CALL, EventKind.OTHER):
        assert parse_operator("Some (NC) thing #1", kind) == OperatorName("Some (NC) thing #1")


def test_an_operator_that_was_renamed_has_its_present_name_and_one_category() -> None:
    assert parse_operator("native_call_clone.out", EventKind.PORTABLE).operator == "_clone_dim_order"
    # then no present name was renamed again, and each has the category of its former name
    renames = {(kind, before): after for _since, kind, before, after in seed_rows("operator_rename")}
    for (kind, before), after in renames.items():
        assert (kind, after) not in renames
        assert CATEGORY[after, kind] == CATEGORY[before, kind]


NAMES = {
    "Convolution": """
        Convolution (NHWC, PF32) IGEMM #1 | Convolution (NHWC, F32) DWConv #1 | Convolution (NHWC, QC8) IGEMM #1
        Convolution (NHWC, PQS8, QS8, QC8W) IGEMM #1 | Deconvolution (NHWC, F32) IGEMM #1
        native_call_convolution.out
    """,
    "GEMM": """
        Fully Connected (NC, PF32) GEMM #1 | Fully Connected (NC, F16) GEMM #1
        Dynamic Fully Connected (NC, F32) GEMM #1 | Fully Connected (NC, QS8, QC8W) GEMM #1
        Fully Connected (NC, QP8, F32, QC8W) GEMM #1 | Batch Matrix Multiply (NC, PF32) GEMM #1
        native_call_addmm.out | native_call_mm.out | native_call_bmm.out | native_call_linear.out
    """,
    "Data Movement": """
        Transpose (ND, X32) #1 | Copy (NC, X32) #1 | Constant Pad (ND, X8) #1 | Slice (ND, X16) #1 | Concatenate (NC) #1
        Static Reshape (NC) #1 | Convert (NC) #1 | Convert (NC, F32, QP8) #1 | Depth To Space (NHWC, X8) #1
        native_call_expand_copy.out | native_call_permute_copy.out | native_call_view_copy.out | native_call_cat.out
        native_call__to_dim_order_copy.out | native_call_embedding.out | native_call_slice_copy.Tensor_out
        native_call_quantize_per_tensor.out | native_call_upsample_nearest2d.out
    """,
    "Elementwise": """
        Add (ND) #1 | Multiply (ND) #1 | Clamp (NC) #1 | HardSwish (NC) #1 | GELU (NC) #1 | ApproxGELU (NC) #1
        Sigmoid (NC) #1 | Unary Elementwise (NC) #1 | Binary Elementwise (ND) #1 | Square Root (NC) #1
        Reciprocal Square Root (NC) #1
        native_call_relu.out | native_call_add.out | native_call_gelu.out | native_call_where.self_out
    """,
    "Other": """
        Average Pooling (NHWC, F32) Average Pooling #1 | Max Pooling (NHWC, F32) #1 | ArgMax Pooling (NHWC, F32) #1
        Global Average Pooling (NWC, F32) #1 | Resize Bilinear (NHWC) #1 | Resize Bilinear (NHWC, F32) #1
        Softmax (NC, F32) #1 | Mean (ND) #1 | Sum (ND) #1
        native_call_mean.out | native_call_native_layer_norm.out | native_call__softmax.out
        native_call_max_pool2d_with_indices.out | native_call_upsample_bilinear2d.vec_out
    """,
}


def test_every_known_name_is_in_its_category_and_an_unknown_one_has_no_row() -> None:
    for category, listed in NAMES.items():
        names = re.split(r"\s*[|\n]\s*", listed.strip())
        assert {name: category_of(name) for name in names} == dict.fromkeys(names, category)
    assert category_of("Frobnicate (NC, F32) #1") is None
    rows = seed_rows("operator_category")
    assert [key for key, count in Counter((operator, kind) for operator, kind, _ in rows).items() if count > 1] == []
    assert {category for _, _, category in rows} == {*NAMES}


@pytest.mark.torch
def test_the_table_has_every_operator_that_the_wheel_can_name() -> None:
    package = importlib.util.find_spec("executorch")
    if package is None or not package.submodule_search_locations:
        pytest.skip("executorch is not installed (extra `export`)")
    libraries = [path for folder in package.submodule_search_locations for path in Path(folder, "lib").glob("lib*")]
    text = b"\0".join(path.read_bytes() for path in libraries if re.search("xnnpack|kernels", path.name))
    delegated = re.findall(rb"\0([A-Z][\w -]+ \((?:N[A-Z0-9]*|X\d+)(?:, \w+)*\))\0", text)
    portable = re.findall(rb"\0(native_call_\w+\.?\w*)\0", text)
    names = {name.decode() for name in (*delegated, *portable)}
    assert len(names) > 100, "the libraries name their operators in another way now"
    assert sorted(name for name in names if category_of(name) is None) == []


@pytest.mark.thorough
@pytest.mark.torch
def test_every_scalar_kernel_of_the_runtime_is_a_scalar_operator() -> None:
    pytest.importorskip("executorch", reason="its registry is in the extra `export`")
    from executorch.exir.passes import executorch_prim_ops_registry as registry

    in_graphs = {*registry._PYTHON_SYM_OPS_TO_EXECUTORCH_SYM_OPS, *registry._EXECUTORCH_SYM_OPS}
    assert len(in_graphs) > 40
    assert [str(each) for each in in_graphs if not is_scalar_operator(str(each))] == []


def test_an_operator_on_tensors_is_not_a_scalar_operator() -> None:
    for operator in ("aten.mul.Tensor", "aten.symeig.default", "dim_order_ops._to_dim_order_copy.default"):
        assert not is_scalar_operator(operator)
