"""What an entry of a sweep's `models` means, and what is refused in one sentence."""

from pathlib import Path
from typing import Any

import pytest

from devices.errors import FarmError, InputError
from tasks.export.recipes import Int4Options, parse_recipe, recipe_name
from tasks.measure.sweep_file import SweepSpec, read_sweep


def read_models(folder: Path, lines: str) -> SweepSpec:
    (folder / "sweep.yaml").write_text(f"name: a\nmodels:\n{lines}")
    return read_sweep(folder / "sweep.yaml")


@pytest.fixture
def sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model of our own and a program, which is not the working directory."""
    folder = tmp_path / "sweeps"
    (folder / "weights").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "model.py").write_text("def make():\n    pass\n")
    for name in ("lin.pte", "in0.bin", "ref.bin", "weights/config.json"):
        (folder / name).write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return folder


def test_files_are_found_beside_the_sweep(sweeps: Path) -> None:
    spec = read_models(
        sweeps,
        "  - ./model.py:make\n  - ./lin.pte\n  - {name: bert, transformers: ./weights}\n"
        "  - {name: lin, pte: lin.pte, inputs: [in0.bin], expected: [ref.bin]}\n",
    )
    assert [model.name for model in spec.models] == ["./model.py:make", "./lin.pte", "bert", "lin"]
    assert [model.factory for model in spec.models] == [f"{sweeps}/model.py:make", None, None, None]
    assert [model.pte for model in spec.models] == [None, sweeps / "lin.pte", None, sweeps / "lin.pte"]
    assert spec.models[2].transformers == str(sweeps / "weights")
    assert (spec.models[3].inputs, spec.models[3].expected) == ([sweeps / "in0.bin"], [sweeps / "ref.bin"])


def test_a_prebuilt_program_is_measured_once_and_not_by_each_recipe(sweeps: Path) -> None:
    spec = read_models(sweeps, "  - linear\n  - ./lin.pte\nprecisions: [fp32, fp16]\n")
    pairs = [(model.name, recipe) for model, recipe in spec.pairs]
    assert pairs == [("linear", "fp32"), ("linear", "fp16"), ("./lin.pte", "as_is")]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("- ./absent.py:make", r"sweep\.yaml:3: .*absent\.py: no such file; correct the path, which starts at the"),
        ("- ./absent.pte", r"sweep\.yaml:3: .*absent\.pte: no such file; correct the path, which starts at the"),
        ("- mobilenet_v3", r"sweep\.yaml:3: .*unknown model `mobilenet_v3`.*did you mean `mobilenet_v2`"),
        ("- {name: a, factory: linear, samples: ./absent}", r"absent: no such folder of samples; correct the path"),
        ("- {name: a, factory: linear, samples: ./empty}", r"empty: no samples; put a file for each sample there"),
        (
            "- {name: a, pte: lin.pte, samples: ./weights}",
            r"a \.pte file does not contain; bring the model by `factory`",
        ),
        (
            "- {name: a, transformers: GPT2Config, generate: {prefill: [32]}, samples: ./weights}",
            r"`samples` does not belong to `generate`; judge the model by a `prompt` and a `text`",
        ),
        (
            "- {name: a, transformers: BertConfig, samples: ./weights, accuracy: {score: 1}}",
            r"`score` of `accuracy` needs a model with `factory`",
        ),
        ("- {name: a, factory: linear, keep_samples: true}", r"`keep_samples` needs `samples`"),
        ("- {name: a, factory: linear, accuracy: {score: 0.9}}", r"`score` and `samples_below` of `accuracy` need"),
        ("- {name: a, pte: lin.pte, factory: linear}", r"a model has exactly one of factory, pte, transformers"),
        ("- {name: a, factory: linear, inputs: [in0.bin]}", r"`inputs` belongs to models with `pte`"),
        ("- {name: a, pte: lin.pte, expected: [ref.bin]}", r"`expected` needs `inputs`"),
        ("- {name: a@b, pte: lin.pte}", r"the name `a@b` must consist of letters, digits"),
        ("- {name: a, pte: lin.pte, input: [in0.bin]}", r"unknown key; .*did you mean `inputs`"),
        ("- {name: a, transformers: ./absent}", r"absent: no folder with config\.json"),
        ("- linear\n  - {name: linear, pte: lin.pte}", r"duplicate model `linear`; remove one or set another `name`"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(sweeps: Path, line: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as refused:
        read_models(sweeps, f"  {line}\n")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("generate", "sentence"),
    [
        ("prefill: [32], depth: [40]", r"depth 40 is not a multiple of a prefill; use one of \[32\], or add it there"),
        ("prefill: [32], decode: 64, cache: {length: 40}", "cache of 40 tokens is too short; these cases need 64"),
        ("prefill: [32], chunks: [32]", r"a prompt of 32 tokens is not several times a prefill of \[32\]"),
        ("prefill: [32], chunks: [64], cache: {length: 63}", "a cache of 63 tokens is too short"),
        ("prefill: [32], prompt: no.txt", "no.txt: no such file"),
    ],
)
def test_a_generation_that_cannot_be_measured_is_refused(sweeps: Path, generate: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_models(sweeps, f"  - {{name: llm, transformers: LlamaConfig, generate: {{{generate}}}}}\n")


def test_a_cache_is_filled_by_the_longest_prompt_that_fits(sweeps: Path) -> None:
    generate = "{prefill: [32, 64], depth: [0, 96, 128], decode: 8}"
    (entry,) = read_models(sweeps, f"  - {{name: llm, transformers: LlamaConfig, generate: {generate}}}\n").models
    assert entry.generate is not None
    assert (entry.generate.cache_length, entry.generate.chunk(96), entry.generate.chunk(128)) == (136, 32, 64)


def test_an_exception_is_written_as_text_or_as_a_list(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("name: a\nmodels: [linear]\nprecisions: [fp32, fp16 except: [softmax, layer_norm]]\n")
    assert read_sweep(sweep).precisions == ["fp32", "fp16 except layer_norm, softmax"]
    assert recipe_name("fp16 except softmax, layer_norm") == "fp16 except layer_norm, softmax"
    assert parse_recipe("fp16 except layer_norm, softmax").except_operators == ("layer_norm", "softmax")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("fp8", "unknown precision `fp8`; use one of fp32, fp16, bf16, int8_static"),
        ("int8_static except conv2d", "only fp16 can have exceptions"),
        ("fp16 except LayerNorm", "`LayerNorm` is not the name of an ATen operator"),
        (8, "a precision is a name, such as fp16, or"),
        ({"int4_dynamic": {"group_size": 16}}, "`group_size` must be one of 32, 64, 128, not 16"),
        ({"int4_dynamic": {"groupsize": 32}}, "unknown key `groupsize`; use group_size, embedding, lm_head"),
        ({"int4_dynamic": {"kv_cache": 8}}, "the runner has no operators for a quantized KV cache; leave it out"),
        ("int4_dynamic g33", r"unknown precision `int4_dynamic g33`; write `int4_dynamic: \{group_size"),
    ],
)
def test_an_unknown_recipe_is_refused_in_one_sentence(written: Any, sentence: str) -> None:
    with pytest.raises(FarmError, match=sentence):
        recipe_name(written)


def test_weights_at_4_bits_have_parameters_and_a_short_name() -> None:
    name = recipe_name({"int4_dynamic": {"lm_head": 8, "group_size": 128, "embedding": 4}})
    assert name == "int4_dynamic g128 embedding4 head8"
    assert parse_recipe(name).int4 == Int4Options(128, 4, 8)
    # and what is the default has the name, and so the series, that it always had
    assert recipe_name({"int4_dynamic": {"group_size": 32}}) == "int4_dynamic"
