"""How pages name models, and the backend of a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.bundle.cell import backend_name, series_backend_name
from tasks.bundle.model_names import find_model, short_names


@pytest.mark.parametrize(
    "names",
    [
        {"./voice.py:make": "voice", "a/b/face.py:make@decode1": "face@decode1", "mobilenet_v2": "mobilenet_v2"},
        {"team.models:tiny": "team.models:tiny", "./enc.pte": "enc", "./model.py:ear": "model:ear"},
        # names that would be equal contain what differs
        {"x/net.py:small": "net:small", "x/net.py:large": "net:large"},
        {"a/net.py:make": "a/net.py:make", "b/net.py:make": "b/net.py:make"},
        {"./net.py:make": "net:make", "net": "net"},
    ],
)
def test_a_model_of_a_file_shows_as_the_file_and_what_differs(names: dict[str, str]) -> None:
    assert short_names(list(names)) == names


_NAMES = st.sampled_from(
    ["net", "a/net.py:make", "b/net.py:make", "net.py:make", "net:make", "net.pte", "net.py:make@a", "net@a"]
)


@given(st.sets(_NAMES))
def test_no_two_models_ever_show_alike(models: set[str]) -> None:
    text = short_names(models)
    assert text.keys() == models
    assert len(set(text.values())) == len(models)
    # then both names of each mean it, and no other word does
    assert [(find_model(model, text), find_model(text[model], text)) for model in models] == [
        (model, model) for model in models
    ]
    assert find_model("other", text) is None


@pytest.mark.parametrize(
    ("precision", "delegates", "text", "in_series"),
    [
        # the program decides, not the recipe's name
        ("as_is", ["VulkanBackend"], "vulkan", "vulkan"),
        ("module:recipe", ["XnnpackBackend", "CoreMLBackend"], "coreml+xnnpack", "coreml+xnnpack"),
        # series of XNNPACK and of portable operators keep the key that they had
        ("fp16", ["XnnpackBackend"], "xnnpack", "xnnpack"),
        ("fp16", [], "portable", "xnnpack"),
        ("as_is", ["XnnpackBackend"], "xnnpack", "unknown"),
        # a bundle of an older farm does not state its delegates
        ("fp16 except layer_norm", None, "xnnpack", "xnnpack"),
        ("as_is", None, "unknown", "unknown"),
    ],
)
def test_the_program_states_the_backend(precision: str, delegates: list[str] | None, text: str, in_series: str) -> None:
    assert (backend_name(precision, delegates), series_backend_name(precision, delegates)) == (text, in_series)
