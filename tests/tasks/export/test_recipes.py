"""The recipes of a sweep: known ones, fp16 with exceptions, and your own."""

from pathlib import Path
from typing import Any

import pytest

from devices.errors import FarmError
from tasks.export.recipes import Int4Options, parse_recipe, recipe_name
from tasks.measure.sweep_file import read_sweep


def test_an_exception_is_written_as_text_or_as_a_list(tmp_path: Path) -> None:
    # given both forms, in any order of the operators
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("name: a\nmodels: [linear]\nprecisions: [fp32, fp16 except: [softmax, layer_norm]]\n")
    # then the name is the same
    assert read_sweep(sweep).precisions == ["fp32", "fp16 except layer_norm, softmax"]
    assert recipe_name("fp16 except softmax, layer_norm") == "fp16 except layer_norm, softmax"
    assert parse_recipe("fp16 except layer_norm, softmax").except_operators == ("layer_norm", "softmax")


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


def test_weights_at_4_bits_have_parameters_and_a_short_name() -> None:
    # given a mapping in a sweep file, then its name means the same
    name = recipe_name({"int4_dynamic": {"lm_head": 8, "group_size": 128, "embedding": 4}})
    assert name == "int4_dynamic g128 embedding4 head8"
    assert parse_recipe(name).int4 == Int4Options(128, 4, 8)
    # and what is the default has the name, and so the series, that it always had
    assert recipe_name({"int4_dynamic": {"group_size": 32}}) == "int4_dynamic"


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ({"group_size": 16}, "`group_size` must be one of 32, 64, 128, not 16"),
        ({"groupsize": 32}, "unknown key `groupsize`; use group_size, embedding, lm_head"),
        ({"kv_cache": 8}, "the runner has no operators for a quantized KV cache; leave it out"),
    ],
)
def test_parameters_that_do_not_exist_are_refused_in_one_sentence(written: dict[str, Any], sentence: str) -> None:
    with pytest.raises(FarmError, match=sentence):
        recipe_name({"int4_dynamic": written})


def test_an_unknown_name_with_parameters_is_refused() -> None:
    with pytest.raises(FarmError, match=r"unknown precision `int4_dynamic g33`; write `int4_dynamic: \{group_size"):
        parse_recipe("int4_dynamic g33")
