"""The names of operators and kernels tell whether SME or SME2 was used, where they can."""

import pytest

from tasks.bundle.cell import VARIANTS, Variant
from tasks.measure.session.check import variant_contradiction

WITH = [
    "Convolution (NHWC, PF32) IGEMM #1",
    "Fully Connected (NC, PF16) GEMM #1",
    "Batch Matrix Multiply (NC, PF32) GEMM",
]
WITH_INT8 = ["Convolution (NHWC, PQS8, QS8, QC8W) IGEMM #1", "Fully Connected (NC, PQS8, QC8W) GEMM #1"]
WITHOUT = [
    "Convolution (NHWC, F32) IGEMM #1",
    "Convolution (NHWC, F16) IGEMM #1",
    "Convolution (NHWC, QC8) IGEMM #1",
    "Fully Connected (NC, F32) GEMM #1",
    "Fully Connected (NC, QS8, QC8W) GEMM #1",
    "Batch Matrix Multiply (NC, F32) GEMM #1",
]
CANNOT_TELL = [
    "Fully Connected (NC, QP8, F32, QC8W) GEMM #1",
    "Fully Connected (NC, F16) GEMM #1",
    "Convolution (NHWC, F32) DWConv #1",
    "Transpose (ND, X32) #1",
    "Average Pooling (NHWC, F32) Unipass #1",
]


@pytest.mark.parametrize("name", WITH + WITH_INT8)
def test_an_operator_on_sme_contradicts_sme2_off_only(name: str) -> None:
    assert name in str(variant_contradiction("sme2_off", [name]))
    assert variant_contradiction("sme2_on", [name, *WITHOUT]) is None
    assert variant_contradiction("sme1", [name, *WITHOUT]) is None


@pytest.mark.parametrize("name", WITHOUT)
def test_an_operator_that_would_have_changed_contradicts_sme2_on_and_sme1(name: str) -> None:
    assert name in str(variant_contradiction("sme2_on", [name]))
    assert name in str(variant_contradiction("sme1", [name]))
    assert variant_contradiction("sme2_off", [name]) is None


@pytest.mark.parametrize("name", CANNOT_TELL)
def test_an_operator_that_reads_the_same_either_way_contradicts_nothing(name: str) -> None:
    assert variant_contradiction("sme2_on", [name]) is None
    assert variant_contradiction("sme2_off", [name]) is None


SME2 = [
    "kai_kernel_matmul_clamp_f32_f32p2vlx1_f32p2vlx1biasf32_sme2_mopa",
    "xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2",
]
SME1 = ["kai_run_matmul_clamp_f32_f32p2vlx1_f32p2vlx1b_2vlx2vl_sme_mopa", "xnn_pf32_gemm_minmax_ukernel_32x32__neonsme"]
NEITHER = ["kai_run_lhs_pack_f32p2vlx1_f32_sme", "xnn_f32_gemm_minmax_ukernel_6x8__neonfma", "memcpy"]


@pytest.mark.parametrize("kernel", SME2)
def test_an_sme2_kernel_contradicts_sme1_and_sme2_off(kernel: str) -> None:
    assert kernel in str(variant_contradiction("sme1", WITH, [kernel]))
    assert kernel in str(variant_contradiction("sme2_off", [], [kernel]))
    assert variant_contradiction("sme2_on", WITH, [kernel, *SME1]) is None


@pytest.mark.parametrize("kernel", SME1)
def test_a_run_with_kernels_of_sme_alone_contradicts_sme2_on_whatever_its_operators_are_called(kernel: str) -> None:
    assert kernel in str(variant_contradiction("sme2_on", WITH, [kernel, *NEITHER]))
    assert variant_contradiction("sme1", WITH, [kernel]) is None
    assert kernel in str(variant_contradiction("sme2_off", [], [kernel]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_kernels_that_pack_data_and_those_of_other_extensions_contradict_nothing(variant: Variant) -> None:
    assert variant_contradiction(variant, CANNOT_TELL, NEITHER) is None
