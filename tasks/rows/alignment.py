"""Which node of XNNPACK's graph each operator of a delegate is.

XNNPACK runs the nodes of a graph in their order. It leaves out nodes that it fuses or removes, and the names of its
operators contain only the kind of a node: a 1x1 convolution runs as a fully connected operator. An operator is assigned
to a node only if every alignment of the two sequences that keeps their order gives it the same node.
"""

from collections.abc import Sequence

_UNARY = (
    "Abs", "Ceiling", "Clamp", "Convert", "Copy", "Cos", "ELU", "Exp", "Floor", "Gelu", "Hardswish", "LeakyReLU", "Log",
    "Negate", "ReciprocalSquareRoot", "Sigmoid", "Sin", "Square", "SquareRoot", "Tanh",
)  # fmt: skip
# Operators that are called like their nodes, apart from spaces.
_ALIKE = (
    "Abs", "Add", "Batch Matrix Multiply", "Ceiling", "Clamp", "Convert", "ELU", "Exp", "Floor", "LeakyReLU", "Log",
    "Maximum", "Minimum", "Multiply", "Negate", "PReLU", "Reciprocal Square Root", "Sigmoid", "Softmax", "Square",
    "Square Root", "Static Reshape", "Subtract",
)  # fmt: skip
_CONCATENATES = tuple(f"Concatenate{inputs}" for inputs in range(2, 6))
# By the name of an operator: the kinds of nodes, without their prefix XNN, that run as it.
_NODE_KINDS: dict[str, tuple[str, ...]] = {name: (name.replace(" ", ""),) for name in _ALIKE} | {
    "ApproxGELU": ("Gelu",),
    "ArgMax Pooling": ("ArgMaxPooling2d",),
    "Average Pooling": ("AvgPooling2d", "GlobalAvgPooling2d"),
    "Concatenate": _CONCATENATES,
    "Constant Pad": ("StaticConstantPad",),
    "Convolution": ("Conv2d", "DepthwiseConv2d"),
    "Copy": ("Copy", "StaticReshape", *_CONCATENATES),
    "Cosine": ("Cos",),
    "Deconvolution": ("ConvTranspose2d",),
    "Divide": ("Div",),
    "Dynamic Fully Connected": ("BatchMatrixMultiply", "FullyConnected"),
    "Fully Connected": ("BatchMatrixMultiply", "Conv2d", "FullyConnected"),
    "GELU": ("Gelu",),
    "Global Average Pooling": ("GlobalAvgPooling2d",),
    "HardSwish": ("Hardswish",),
    "Invalid Unary Op": _UNARY,  # how XNNPACK names unary operators that it computes by a table
    "Leaky ReLU": ("LeakyReLU",),
    "Max Pooling": ("MaxPooling2d",),
    "Mean": ("GlobalAvgPooling2d",),
    "Reduce": ("GlobalAvgPooling2d",),
    "Resize Bilinear": ("StaticResizeBilinear2D",),
    "Scaled Dot-Product Attention": ("ScaledDotProductAttention",),
    "Sine": ("Sin",),
    "Slice": ("StaticSlice",),
    "TanH": ("Tanh",),
    "Transpose": ("StaticTranspose",),
    "Unary Elementwise": _UNARY,
}


def align(operators: Sequence[str], kinds: Sequence[str]) -> list[list[int]]:
    """Return for each operator, in the order in which they ran, the indexes of the nodes that it may be.

    `kinds` are those of the graph's nodes, such as `XNNConv2d`. One index means that the operator is that node; several
    that the order leaves them open; none that no node runs as such an operator, or that the sequences do not match.
    """
    indexes = [index for index, operator in enumerate(operators) if operator in _NODE_KINDS]
    node_kinds = [_NODE_KINDS[operators[index]] for index in indexes]
    nodes = [kind.removeprefix("XNN") for kind in kinds]
    first = _embed(node_kinds, nodes)
    last = _embed(node_kinds[::-1], nodes[::-1])
    candidates: list[list[int]] = [[] for _ in operators]
    if first is None or last is None:
        return candidates
    for index, names, low, high in zip(indexes, node_kinds, first, reversed(last), strict=True):
        candidates[index] = [node for node in range(low, len(nodes) - high) if nodes[node] in names]
    return candidates


def _embed(operators: Sequence[tuple[str, ...]], nodes: Sequence[str]) -> list[int] | None:
    """Return the earliest node for each operator, in order and each node once; None if there are not enough."""
    embedding, node = [], 0
    for names in operators:
        while node < len(nodes) and nodes[node] not in names:
            node += 1
        if node == len(nodes):
            return None
        embedding.append(node)
        node += 1
    return embedding
