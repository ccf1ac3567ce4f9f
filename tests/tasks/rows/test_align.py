"""Given the operators that a delegate ran and the nodes of its graph: the nodes that each operator may be."""

import pytest

from tasks.rows.alignment import align

CONV, LINEAR, DEPTHWISE, PAD, ADD = (
    "XNNConv2d", "XNNFullyConnected", "XNNDepthwiseConv2d", "XNNStaticConstantPad", "XNNAdd",
)  # fmt: skip

CONVOLUTION = "Convolution"


@pytest.mark.parametrize(
    ("operators", "kinds", "expected"),
    [
        pytest.param([CONVOLUTION, "Fully Connected"], [CONV, LINEAR], [[0], [1]], id="one node each"),
        pytest.param(["Fully Connected", "Add"], [CONV, ADD], [[0], [1]], id="a 1x1 convolution"),
        pytest.param(
            ["Constant Pad", *[CONVOLUTION] * 2], [PAD, CONV, PAD, DEPTHWISE], [[0], [1], [3]], id="fused padding"
        ),
        pytest.param(["Add"], ["XNNConvert", ADD], [[1]], id="a conversion that was removed"),
        pytest.param(["Add", CONVOLUTION], [ADD, ADD, CONV], [[0, 1], [2]], id="one of two equal nodes was removed"),
        pytest.param(["Pack LH", "Fully Connected"], [LINEAR], [[], [0]], id="an operator that no node stands for"),
        pytest.param(["Add", "Add"], [ADD], [[], []], id="more operators than nodes"),
        pytest.param([CONVOLUTION, "Add"], [ADD, CONV], [[], []], id="another order"),
    ],
)
def test_an_operator_gets_the_nodes_that_the_order_allows(
    operators: list[str], kinds: list[str], expected: list[list[int]]
) -> None:
    assert align(operators, kinds) == expected
