"""The recipes of a sweep: known ones, fp16 with exceptions, and your own."""

from pathlib import Path
from typing import Any

import pytest

from devices.errors import FarmError
from tasks.measure.spec import read_sweep
from tasks.prepare.export.recipes import recipe_name, recipe_of


def test_an_exception_is_written_as_text_or_as_a_list(tmp_path: Path) -> None:
    # given both forms, in any order of the operators
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("name: a\nmodels: [linear]\nprecisions: [fp32, fp16 except: [softmax, layer_norm]]\n")
    # then the name is the same
    assert read_sweep(sweep).precisions == ["fp32", "fp16 except layer_norm, softmax"]
    assert recipe_name("fp16 except softmax, layer_norm") == "fp16 except layer_norm, softmax"
    assert recipe_of("fp16 except layer_norm, softmax").except_operators == ("layer_norm", "softmax")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("fp8", "unknown precision `fp8`; use one of fp32, fp16, int8_static"),
        ("int8_statik", "did you mean `int8_static`"),
        ("int8_static except conv2d", "only fp16 can have exceptions"),
        ("fp16 except LayerNorm", "`LayerNorm` is not the name of an ATen operator"),
        ({"fp16": ["layer_norm"]}, "a precision is a name, such as fp16, or"),
        (8, "a precision is a name, such as fp16, or"),
    ],
)
def test_an_unknown_recipe_is_refused_in_one_sentence(written: Any, sentence: str) -> None:
    with pytest.raises(FarmError, match=sentence):
        recipe_name(written)
