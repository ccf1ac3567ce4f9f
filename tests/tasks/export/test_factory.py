"""What a factory returns: the set-up of a method is one of its program's methods."""

from typing import Any

import pytest

from devices.errors import FarmError
from tasks.export.factory import build_methods

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")


def described(setup: str) -> dict[str, Any]:
    inputs = (torch.ones(1, 4),)
    return {"module": torch.nn.Linear(4, 4), "inputs": inputs, "setup": {"method": setup, "inputs": inputs}}


def test_a_setup_is_a_method_with_the_inputs_of_one_or_several_executions() -> None:
    content = described("forward")
    inputs = content["inputs"]
    [one] = build_methods(content, "decoder")
    [two] = build_methods(content | {"setup": {"method": "forward", "inputs": [inputs] * 2}}, "decoder")
    assert [each.setup for each in (one, two)] == [("forward", [inputs]), ("forward", [inputs, inputs])]


@pytest.mark.parametrize("is_listed", [False, True])
def test_a_setup_that_is_not_a_method_is_refused(is_listed: bool) -> None:
    content = {"methods": {"forward": described("fill")}} if is_listed else described("fill")
    with pytest.raises(FarmError) as refused:
        build_methods(content, "decoder")
    assert str(refused.value) == "decoder: the setup of forward names fill; use one of its methods: forward"


@pytest.mark.parametrize("setup", [{"method": "forward"}, ["forward"], {"method": "forward", "inputs": (), "more": 1}])
def test_a_setup_of_another_form_is_refused(setup: object) -> None:
    with pytest.raises(FarmError, match="decoder: forward: `setup` must be a dict of `method` and `inputs`"):
        build_methods(described("forward") | {"setup": setup}, "decoder")
