"""Language models: what the methods of `generate` compute in eager PyTorch, and weights at 4 bits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.export.convert import quantize_int4
from tasks.export.entry import ModelEntry
from tasks.export.factory import Method, build_methods
from tasks.export.from_transformers import perplexity
from tasks.export.generate_options import GenerateOptions
from tasks.export.language_methods import language_methods
from tasks.export.recipes import Int4Options
from tasks.export.references import compute_references, list_cases, list_choices
from tests.fixtures.exports import exported_cases

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")

OPTIONS = GenerateOptions(prefill=[4, 8], chunks=[16], depth=[0, 16], decode=6)
VOCABULARY = 64


def library() -> Any:
    """Return transformers, which takes long to import."""
    return pytest.importorskip("transformers", reason="transformers is not installed (export extra)")


@pytest.fixture
def model() -> Any:
    return seeded(library().Qwen2Config)


def seeded(config: Any, **more: Any) -> Any:
    """A model of 2 layers with seeded weights."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    configured = config(**sizes, num_key_value_heads=2, vocab_size=VOCABULARY, **more)
    model = library().AutoModelForCausalLM.from_config(configured).eval()
    for weights in model.parameters():  # as they are initialized, all scores are nearly equal
        weights.data *= 8
    return model


def likeliest(model: Any, tokens: Any, count: int) -> list[int]:
    """What the model writes after `tokens` without a cache."""
    with torch.no_grad():
        for _ in range(count):
            scores = model(tokens[None], use_cache=False).logits[0, -1]
            tokens = torch.cat([tokens, scores.argmax()[None]])
    return [int(token) for token in tokens[-count:]]


def test_a_text_is_the_likeliest_behind_its_prompt_at_every_depth_and_begins_again(model: Any) -> None:
    # given a model and a prompt, and what it writes without a cache
    prompt = torch.randint(0, VOCABULARY, (OPTIONS.prompt_tokens,))
    expected = {depth: likeliest(model, prompt[: depth + 1], OPTIONS.decode) for depth in OPTIONS.depth}
    # when its methods write as many tokens, behind none and behind two prompts of 8
    methods: list[Method] = build_methods(language_methods(model, prompt, OPTIONS), "llm")
    with torch.no_grad():
        cases = list_cases(methods)
        outputs = compute_references({each.name: each.module for each in methods}, cases, "float32")
    # then the cases are those that llama-bench names, and the tokens are the same
    assert [case.name for case in cases] == ["pp4", "pp8", "pp8_d8", "tg6", "tg6_d16"]
    assert [outputs[name][0].tolist() for name in ("tg6", "tg6_d16")] == [expected[0], expected[16]]
    assert len(set(expected[16])) > 1
    # and the last chunk of a prompt gives the same scores as the prompt read at once
    with torch.no_grad():
        scores = model(prompt[None, :16], use_cache=False).logits[:, -1]
    torch.testing.assert_close(outputs["pp8_d8"][0], scores, rtol=0, atol=1e-5)
    # and one step more is the first of the same text
    decode = methods[3]
    with torch.no_grad():
        for _ in range(OPTIONS.decode + 1):
            tokens = decode.module(*decode.inputs)
    assert tokens.tolist() == expected[0]


def test_the_likeliest_tokens_are_listed_at_each_position_of_a_text(model: Any) -> None:
    # given the text that a model writes behind 16 tokens, and one whose second token is another
    prompt = torch.randint(0, VOCABULARY, (OPTIONS.prompt_tokens,))
    written = torch.tensor(likeliest(model, prompt, OPTIONS.decode))
    other = written.clone()
    other[1] = (other[1] + 1) % VOCABULARY
    with torch.no_grad():
        read = torch.cat([prompt, other[:-1]])
        scores = model(read[None], use_cache=False).logits[0, OPTIONS.prompt_tokens - 1 :]
    expected = scores.topk(4)
    # when both are read
    methods: list[Method] = build_methods(language_methods(model, prompt, OPTIONS), "llm")
    modules = {each.name: each.module for each in methods}
    prefill, decode = (next(case for case in list_cases(methods) if case.name == name) for name in ("pp8", "tg6_d16"))
    texts: dict[str, list[Any]] = {"eager": [written], "host": [other], "none": []}
    outputs = list_choices(texts, modules, decode, "float32")
    # then the first of the likeliest is what the model wrote, and the others are as far behind it as without a cache
    assert list(outputs) == ["eager", "host"]
    assert outputs["eager"][0][:, 0].tolist() == written.tolist()
    tokens, behind = outputs["host"]
    assert tokens.tolist() == expected.indices.tolist()
    distances = (expected.values[:, :1] - expected.values) / scores.square().mean(-1, keepdim=True).sqrt()
    torch.testing.assert_close(behind, distances, rtol=1e-3, atol=1e-5)
    assert behind[:, 1].min() > 0
    # and a prompt has none, nor a program that a recipe changed
    assert list_choices(texts, modules, prefill, "float32") == {}
    changed = {"tg6": torch.nn.Identity(), **{name: modules[name] for name in ("pp4", "pp8")}}
    assert list_choices(texts, changed, decode, "float32") == {}


@pytest.mark.thorough  # it imports another model
def test_beyond_a_sliding_window_a_model_goes_on_as_without_a_cache() -> None:
    # given a model that attends to 4 tokens in one of its layers, and a prompt of 17
    more: dict[str, Any] = {"head_dim": 8, "layer_types": ["sliding_attention", "full_attention"]}
    sliding = seeded(library().Gemma3TextConfig, sliding_window=4, **more)
    prompt = torch.randint(0, VOCABULARY, (OPTIONS.prompt_tokens,))
    text = likeliest(sliding, prompt, OPTIONS.decode)
    with torch.no_grad():
        scores, unlimited = (
            each(prompt[None, :16], use_cache=False).logits[:, -1]
            for each in (sliding, seeded(library().Gemma3TextConfig, sliding_window=64, **more))
        )
        # when it reads and writes far beyond the window
        methods: list[Method] = build_methods(language_methods(sliding, prompt, OPTIONS), "llm")
        outputs = compute_references({each.name: each.module for each in methods}, list_cases(methods), "float32")
    # then both are as without a cache, and the window shows
    torch.testing.assert_close(outputs["pp8_d8"][0], scores, rtol=1e-5, atol=1e-4)
    assert (scores - unlimited).abs().max() > 0.1
    assert outputs["tg6_d16"][0].tolist() == text


@pytest.mark.thorough
@pytest.mark.parametrize("bits", [8, 4])
def test_an_embedding_of_few_bits_is_near_the_one_that_it_replaces(model: Any, bits: int) -> None:
    ids = torch.arange(VOCABULARY)[None]
    expected = model.get_input_embeddings()(ids)
    quantize_int4(model, Int4Options(embedding=bits))
    embedded = model.get_input_embeddings()(ids)
    # within half a step of the largest weight of a row
    assert (embedded - expected).abs().max() <= expected.abs().max() / (2 ** (bits - 1) - 1)
    quantize_int4(model, Int4Options(embedding=bits))  # as another method that shares the module does
    assert torch.equal(model.get_input_embeddings()(ids), embedded)


def test_perplexity_is_that_of_every_token_behind_those_before_it(model: Any) -> None:
    tokens = torch.randint(0, VOCABULARY, (40,))
    with torch.no_grad():
        loss = model(tokens[None], labels=tokens[None]).loss
    assert perplexity(model, tokens) == pytest.approx(float(loss.exp()), rel=1e-5)


STEPS = 4


@pytest.mark.thorough
@pytest.mark.long
def test_both_texts_have_the_likeliest_tokens(tmp_path: Path) -> None:
    # given a Llama of one layer, exported at 4 bits
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 32}
    described: dict[str, Any] = {"name": "llama", "transformers": "LlamaConfig"}
    described |= {"config": sizes | {"num_attention_heads": 2}}
    described |= {"generate": {"prefill": [4], "depth": [4], "decode": STEPS}}
    prefill, written = exported_cases(ModelEntry.model_validate(described), "int4_dynamic", tmp_path)
    assert (prefill.model, written.model, prefill.case.choices) == ("llama@pp4", "llama@tg4_d4", {})
    assert list(written.case.choices) == ["eager", "host"]
    # of eager's text, the likeliest is what was written
    tokens, behind = written.case.choices["eager"]
    likeliest = np.fromfile(written.folder / tokens["file"], np.int64).reshape(STEPS, -1)
    text = np.fromfile(written.folder / written.outputs[0]["file"], np.int64)
    assert likeliest[:, 0].tolist() == text.tolist()
    assert (behind["dtype"], behind["shape"]) == ("float32", [STEPS, 4])
    # and their files are checked before the export is used again, as all others are
    assert {tokens["file"], behind["file"]} <= {entry["file"] for entry in written.case.tensors}
