"""A delegate is written in one form, and a mistake in it is one sentence."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tasks.bundle.cell import XNNPACK
from tasks.bundle.delegates import DELEGATES, StatedDelegate, delegate_names, needed_backends, unproven_notes
from tasks.bundle.runtime import case_name, parse_runtime

_STATED: TypeAdapter[str] = TypeAdapter(StatedDelegate)
OWN = "my_npu.parts:make"


@pytest.mark.parametrize(
    ("written", "word", "backends"),
    [
        ("xnnpack", "xnnpack", set()),
        (["xnnpack"], "xnnpack", set()),
        ("portable", "portable", set()),
        (["openvino", "xnnpack"], "openvino+xnnpack", {"OpenvinoBackend"}),
        ("coreml+mlx", "coreml+mlx", {"CoreMLBackend", "MLXBackend"}),
        (OWN, OWN, None),
        (["openvino", OWN], f"openvino+{OWN}", None),
    ],
)
def test_a_delegate_is_a_word_of_a_case_and_names_the_backends_that_its_runner_needs(
    written: Any, word: str, backends: set[str] | None
) -> None:
    assert _STATED.validate_python(written) == word
    assert needed_backends(word) == backends
    # and the name of a case returns it
    assert parse_runtime(case_name("net", f"delegate={word}", "tg64")).delegate == word


def test_xnnpack_is_the_default_and_portable_is_none_at_all() -> None:
    assert delegate_names(None) == delegate_names("xnnpack") == ("xnnpack",)
    assert delegate_names("portable") == ()
    assert DELEGATES["xnnpack"].backend == XNNPACK


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("opnvino", "unknown delegate `opnvino`; use one of xnnpack, openvino, coreml, mlx, portable, your own "),
        ("opnvino", "did you mean `openvino`?"),
        (["openvino", "portable"], "`portable` stands alone"),
        (["openvino", "openvino"], "each once, by priority: [openvino, xnnpack]"),
        ([], "at least one"),
        ([{"openvino": 1}], "unknown delegate `{'openvino': 1}`"),
        (None, "unknown delegate `None`"),
        ("parts/make.py:make", "your own partitioner as package.module:function"),
        ("./parts.py:make", "`./parts.py:make`: a partitioner is named by its module; use `parts:make`"),
        ("my..parts:make", "unknown delegate `my..parts:make`"),
        ("_parts:make", "unknown delegate `_parts:make`"),
    ],
)
def test_a_mistake_in_a_delegate_is_one_sentence(written: Any, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        _STATED.validate_python(written)
    assert sentence in refused.value.errors()[0]["msg"]


def test_what_was_never_run_on_hardware_is_labelled_so() -> None:
    assert unproven_notes(["coreml", "xnnpack", "my.own:make", "mlx", "openvino"]) == [
        "coreml: never run on hardware",
        "mlx: never run on hardware",
    ]
    # and on a platform what was executed on another one alone
    assert unproven_notes(["openvino", "xnnpack"], "linux-aarch64") == [
        "openvino: never run on hardware of linux-aarch64"
    ]
    assert unproven_notes(["openvino"], "linux-x86_64") == unproven_notes(["openvino"], "simulated") == []
