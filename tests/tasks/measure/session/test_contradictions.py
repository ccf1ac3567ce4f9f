"""What a run shows must not contradict its variant, as far as names tell, nor the calls of the program."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.bundle.cell import VARIANTS, Variant
from tasks.etdump.event_names import OperatorName
from tasks.etdump.tree import Runs, TreeNode
from tasks.export.program import Call, ProgramMethod
from tasks.measure.session.check import program_mismatch, variant_contradiction

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
def test_a_run_with_kernels_of_sme_alone_contradicts_sme2_on(kernel: str) -> None:
    assert kernel in str(variant_contradiction("sme2_on", WITH, [kernel, *NEITHER]))
    assert variant_contradiction("sme1", WITH, [kernel]) is None
    assert kernel in str(variant_contradiction("sme2_off", [], [kernel]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_kernels_that_pack_data_and_those_of_other_extensions_contradict_nothing(variant: Variant) -> None:
    assert variant_contradiction(variant, CANNOT_TELL, NEITHER) is None


NOTHING = np.zeros(0, np.int64)
METHOD = ProgramMethod("forward", (), (), (Call(0, 1, delegate="XnnpackBackend"), Call(0, 2, operator="aten::add.out")))
SHOWN = [
    ("delegate_call", "DELEGATE_CALL", 1),
    ("operator_call", "OPERATOR_CALL", 2),
    ("portable", "native_call_add.out", 2),
]


@pytest.mark.parametrize(
    ("shown", "cause"),
    [
        (SHOWN, None),
        (
            [("delegate_call", "DELEGATE_CALL", 2), *SHOWN],
            "the ETDump shows a call of a delegate, DELEGATE_CALL at instruction 2 of chain 0, where the program calls "
            "aten::add.out",
        ),
        (
            [*SHOWN, ("operator_call", "OPERATOR_CALL", 3)],
            "the ETDump shows a call of an operator, OPERATOR_CALL at instruction 3 of chain 0, where the program "
            "calls nothing",
        ),
        (
            [*SHOWN[:2], ("portable", "native_call_sub.out", 2)],
            "the ETDump shows operator native_call_sub.out at instruction 2 of chain 0, where the program calls "
            "aten::add.out",
        ),
        (
            SHOWN[:1],
            "the program calls aten::add.out at instruction 2 of chain 0, and the ETDump shows no call there",
        ),
    ],
    ids=["honest", "another kind", "a call too many", "another operator", "a call too few"],
)
def test_calls_that_differ_from_those_of_the_program_are_named(
    shown: list[tuple[str, str, int]], cause: str | None
) -> None:
    tree = tuple(TreeNode(0, kind, name, 0, place, OperatorName(name)) for kind, name, place in shown)
    runs = Runs(NOTHING, NOTHING, tree, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
    assert program_mismatch(runs, METHOD) == cause
    # and a program with branches may leave out calls
    left = program_mismatch(runs, replace(METHOD, has_branches=True))
    assert left == (None if shown == SHOWN[:1] else cause)
