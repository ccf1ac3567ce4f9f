"""The backend of a model, and the part of it that a series' key has."""

import pytest

from tasks.bundle.cell import backend_name, series_backend_name


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
def test_the_backend_comes_from_the_program(
    precision: str, delegates: list[str] | None, text: str, in_series: str
) -> None:
    assert (backend_name(precision, delegates), series_backend_name(precision, delegates)) == (text, in_series)
