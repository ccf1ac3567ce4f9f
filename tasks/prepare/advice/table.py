"""The known causes, the more specific first; tests/fixtures/advice_pairs.py has a module before and after each rewrite.

The rules are those of `executorch.backends.xnnpack.partition.config` in 1.5.1.
A rewrite that tests/benchmarks/advice.py measured as slower than the portable operator is not in the table.
"""

from tasks.prepare.advice.entry import Advice


def _entry(name: str, operators: str, cause: str, rewrite: str | None, reason: str = "", beside: str = "") -> Advice:
    return Advice(name, frozenset(operators.split()), cause, rewrite, reason, frozenset(beside.split()))


_ATTENTION = "expand_copy where logical_not any eq full_like mul scalar_tensor"
_NO_RULE = "no rule"

TABLE: tuple[Advice, ...] = (
    _entry(
        "attention",
        _ATTENTION,
        "scaled_dot_product_attention is decomposed with a check for rows without a key, which XNNPACK cannot run",
        "write the attention as torch.bmm on 3-D tensors, softmax(-1) and torch.bmm",
        _NO_RULE,
        beside="any logical_not",
    ),
    _entry(
        "conversion",
        "_to_dim_order_copy",
        "XNNPACK does not convert between data types, and every conversion ends a delegated part",
        "keep the block in one data type: leave out .float(), .to() and dtype=, or keep all of the block in fp32",
        "dtype conversion from torch.float16",
    ),
    _entry(
        "scalar",
        "_to_dim_order_copy",
        "a Python number in arithmetic becomes a tensor of another data type that is converted in every run",
        "register the number as a buffer of shape (1,) in the model's data type and compute with the buffer",
    ),
    _entry(
        "layer_norm",
        "native_layer_norm",
        "XNNPACK has no layer normalization",
        "write it as arithmetic: mean and variance as F.linear with a (1, channels) weight of 1 / channels, then "
        "torch.rsqrt; the number epsilon as a buffer",
    ),
    _entry("group_norm", "native_group_norm", "XNNPACK has no group normalization, and its arithmetic is slower", None),
    _entry(
        "instance_norm",
        "_native_batch_norm_legit",
        "XNNPACK has no instance normalization",
        "write it as arithmetic with mean((2, 3), keepdim=True) and torch.rsqrt",
    ),
    _entry(
        "batch_norm_rank",
        "_native_batch_norm_legit_no_training",
        "XNNPACK normalizes batches of at most 4 dimensions, and a reshape to 4 dimensions is slower",
        None,
        "Unsupported input rank",
    ),
    _entry(
        "mean_keepdim",
        "mean",
        "XNNPACK's mean keeps the dimensions that it averages",
        "call it with keepdim=True and drop the dimensions with reshape or flatten",
        "only supports keepdim=True",
    ),
    _entry(
        "mean_rank",
        "mean",
        "XNNPACK's mean takes only 4-D tensors",
        "average the last dimension by F.linear with a (1, n) weight of 1 / n; for other dimensions reshape to 4-D and "
        "call mean((2, 3), keepdim=True)",
        "got tensor of rank",
    ),
    _entry(
        "mean_channels",
        "mean",
        "XNNPACK's mean averages only the last two of four dimensions",
        "average the channels by F.conv2d with a (1, channels, 1, 1) weight of 1 / channels",
        "across the innermost dimensions",
    ),
    _entry(
        "sum",
        "sum",
        "XNNPACK has no sum over a dimension",
        "sum the last dimension by F.linear with a (1, n) weight of ones, the channels of an image by F.conv2d",
    ),
    _entry(
        "softmax_dim",
        "_softmax",
        "XNNPACK's softmax works on the last dimension",
        "transpose that dimension to the end, call softmax(-1) and transpose back",
        "dim must be the last dim",
    ),
    _entry("log_softmax", "_log_softmax", "XNNPACK has no log-softmax", "call softmax(-1).log(), or drop the log"),
    _entry(
        "gelu_fp16",
        "gelu",
        "XNNPACK's GELU takes fp32 only",
        "write the tanh form of GELU as arithmetic with its numbers as buffers, or keep the block in fp32",
        "GELU does not support fp16",
    ),
    _entry(
        "expand",
        "expand_copy",
        "torch.matmul on 4-D tensors, and expand, copy their inputs to the broadcast shape, which XNNPACK cannot do",
        "multiply 3-D tensors with torch.bmm, and leave out expand before arithmetic, which broadcasts",
    ),
    _entry(
        "upsample_nearest",
        "upsample_nearest2d",
        "XNNPACK resizes bilinearly only, and a transposed convolution that does the same is slower",
        None,
    ),
    _entry("select", "select_copy", "XNNPACK has no rule for x[:, i]", "take the slice x[:, i:i + 1] and reshape it"),
    _entry("squeeze", "squeeze_copy", "XNNPACK has no rule for squeeze", "call reshape"),
    _entry(
        "unsqueeze",
        "unsqueeze_copy",
        "XNNPACK adds a dimension only at the end",
        "call reshape",
        "trailing dimension",
    ),
    _entry(
        "split",
        "split_with_sizes_copy split_copy unbind_copy",
        "XNNPACK has no rule for an operator with several outputs",
        "take slices instead of split or chunk",
    ),
    _entry(
        "slice_step",
        "slice_copy",
        "XNNPACK slices with step 1 only",
        "subsample an image by F.avg_pool2d(x, 1, step)",
    ),
    _entry("repeat", "repeat", "XNNPACK has no rule for repeat, and a product that broadcasts is not faster", None),
    _entry(
        "roll",
        "fmod index_select arange add",
        "torch.roll is decomposed into index arithmetic, which XNNPACK cannot run",
        "write the roll as torch.cat of two slices",
        beside="fmod index_select",
    ),
    _entry("amax", "amax", "XNNPACK has no maximum over dimensions", "take it by F.max_pool2d over the whole image"),
    _entry(
        "average_padding",
        "avg_pool2d",
        "XNNPACK does not count padding in an average",
        "pad with F.pad before the pooling, or set count_include_pad=False",
        "zero-padding in the averaging",
    ),
    _entry(
        "average_ceil",
        "avg_pool2d",
        "XNNPACK averages whole windows only",
        "set ceil_mode=False, after F.pad where the size is not a multiple of the stride",
        "ceil mode is not supported",
    ),
    _entry(
        "adaptive_average",
        "_adaptive_avg_pool2d",
        "XNNPACK has no adaptive pooling to more than 1 x 1",
        "call F.avg_pool2d with the window that gives the same size, where the input's size is a multiple of it",
    ),
    _entry(
        "weight_input",
        "mm addmm linear convolution",
        "XNNPACK packs weights when it loads the model, so a weight that is computed or passed in is not supported",
        "multiply with torch.bmm, which takes two activations",
        "Expected weight to be a static param",
    ),
    _entry(
        "power", "pow", "XNNPACK raises to the power of 2 (an int) only", "multiply (x * x * x), or call torch.sqrt"
    ),
    _entry("elu", "elu", "XNNPACK has no rule for ELU", "write it as relu(x) + exp(-relu(-x)) - one, a buffer of 1"),
    _entry(
        "softplus",
        "log1p gt where",
        "softplus and mish are decomposed into log1p and a condition",
        "write softplus as relu(x) + log(one + exp(-abs(x))), with a buffer of 1",
        beside="log1p",
    ),
    _entry("erf", "erf", "XNNPACK has no error function", "call F.gelu instead of its formula"),
    _entry("reciprocal", "reciprocal", "XNNPACK has no reciprocal", "divide a buffer of 1 by it"),
    _entry("log2", "log2 log10", "XNNPACK has only the natural logarithm", "call log() and multiply by a buffer"),
    _entry(
        "rms_norm",
        "add mul sub div",
        "F.rms_norm and others are decomposed into arithmetic with a Python number, for which XNNPACK has no rule",
        "write it as arithmetic with buffers for its numbers, and the mean as F.linear with a weight of 1 / channels",
        _NO_RULE,
    ),
    _entry("alpha", "add sub", "XNNPACK adds without a factor", "write x + y * factor, with a buffer", "alpha != 1"),
    _entry(
        "condition",
        "gt ge lt le where",
        "XNNPACK has no comparisons and no conditions",
        "write a piecewise function with relu, leaky_relu, clamp, torch.maximum or torch.minimum",
        beside="where gt",
    ),
    _entry(
        "mask",
        "where scalar_tensor logical_not bitwise_not",
        "XNNPACK has no masks",
        "add a float mask (0 or -10000) that is a buffer or an input, instead of masked_fill or torch.where",
    ),
    _entry(
        "constant",
        "arange full full_like zeros ones",
        "a tensor of fixed values is made again in every run",
        "compute it once and register it as a buffer",
    ),
    _entry("embedding", "embedding", "XNNPACK has no table look-up", None),
    _entry("lookup", "index index_select gather scatter index_put", "XNNPACK has no indexing by a tensor", None),
    _entry("cumulative_sum", "cumsum", "XNNPACK has no cumulative sum", None),
    _entry("order", "argmax argmin topk sort max", "XNNPACK does not compute positions or orders", None),
    _entry("flip", "flip", "XNNPACK does not reverse dimensions", None),
    _entry(
        "integers",
        "add sub mul div abs unsqueeze_copy slice_copy cat view_copy permute_copy minimum maximum clamp",
        "XNNPACK computes with floating-point numbers only, and these are integers or booleans",
        None,
        "invalid dtype",
    ),
)
