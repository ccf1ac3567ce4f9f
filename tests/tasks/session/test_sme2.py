"""Operator names tell whether SME2 was used, where they can."""

import pytest

from tasks.session.sme2 import variant_contradiction

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
def test_an_sme2_operator_contradicts_sme2_off_and_proves_sme2_on(name: str) -> None:
    assert name in str(variant_contradiction("sme2_off", [name]))
    assert variant_contradiction("sme2_on", [name, *WITHOUT]) is None


@pytest.mark.parametrize("name", WITHOUT)
def test_an_operator_that_would_have_changed_contradicts_sme2_on(name: str) -> None:
    assert name in str(variant_contradiction("sme2_on", [name]))
    assert variant_contradiction("sme2_off", [name]) is None


@pytest.mark.parametrize("name", CANNOT_TELL)
def test_an_operator_that_reads_the_same_either_way_contradicts_nothing(name: str) -> None:
    assert variant_contradiction("sme2_on", [name]) is None
    assert variant_contradiction("sme2_off", [name]) is None
