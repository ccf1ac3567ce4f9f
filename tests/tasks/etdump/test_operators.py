"""The parts of the names that XNNPACK and ExecuTorch give to operators."""

import pytest

from tasks.etdump.event_names import EventKind, OperatorName, parse_operator

DELEGATED = {
    "Convolution (NHWC, PQS8, QS8, QC8W) IGEMM #1": ("Convolution", "NHWC", "PQS8, QS8, QC8W", "IGEMM"),
    "Transpose (ND, X32) #2": ("Transpose", "ND", "X32", None),
    "Convert (F32, QS8)": ("Convert", None, "F32, QS8", None),
    "Softmax": ("Softmax", None, None, None),
    "what (is) this": ("what", None, "is", "this"),
    "an (open bracket": ("an (open bracket", None, None, None),
}


@pytest.mark.parametrize("name", DELEGATED)
def test_the_name_of_a_delegated_operator_has_layout_types_and_kernel(name: str) -> None:
    assert parse_operator(name, EventKind.DELEGATED) == OperatorName(*DELEGATED[name])


def test_a_portable_operator_is_named_without_its_overload() -> None:
    assert parse_operator("native_call_mean.out", EventKind.PORTABLE) == OperatorName("mean")
    # and a name of another kind is not taken apart
    assert parse_operator("Transpose (ND, X32) #2", EventKind.OTHER) == OperatorName("Transpose (ND, X32) #2")
