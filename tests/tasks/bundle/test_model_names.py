"""How pages name models."""

from hypothesis import given
from hypothesis import strategies as st

from tasks.bundle.model_names import find_model, short_names


def test_a_model_of_a_file_shows_as_the_file_alone() -> None:
    models = [
        "./voice.py:make",
        "a/b/face.py:make@decode1",
        "mobilenet_v2",
        "team.models:tiny",
        "./enc.pte",
        "./model.py:ear",
    ]
    assert list(map(short_names(models).__getitem__, models)) == [
        "voice", "face@decode1", "mobilenet_v2", "team.models:tiny", "enc", "model:ear",
    ]  # fmt: skip


def test_names_that_would_be_equal_contain_what_differs() -> None:
    assert short_names(["x/net.py:small", "x/net.py:large"]) == {
        "x/net.py:small": "net:small",
        "x/net.py:large": "net:large",
    }
    assert short_names(["a/net.py:make", "b/net.py:make"]) == {
        "a/net.py:make": "a/net.py:make",
        "b/net.py:make": "b/net.py:make",
    }
    assert short_names(["./net.py:make", "net"]) == {"./net.py:make": "net:make", "net": "net"}


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
