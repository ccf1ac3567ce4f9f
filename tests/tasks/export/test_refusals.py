"""Every refusal names what was refused and what to do: errors of torch and executorch, sizes, transformers, files."""

import re
from pathlib import Path
from typing import Any

import pytest

from devices.errors import FarmError, InputError
from tasks.export.entry import ModelEntry, parse_entry
from tasks.export.exported import ExportError, first_line
from tasks.export.process.refusals import FAILS_IN_EAGER, TABLE, find_refusal
from tasks.export.program import read_program
from tasks.export.tracing.sizes import check_example
from tests.fixtures.exports import exported_cases

# For each entry of the table: an error as torch 2.13.0 or executorch 1.5.1 raises it, and what its sentence contains.
ERRORS = {
    "specialized size": (
        "Constraints violated (t)! For more information, run with X.\n  - You marked t as dynamic but your code "
        "specialized it to be a constant (12). If you're using\ndimension 1 of the input `x`",
        "size 12 of the dynamic dimension `t` (dimension 1 of the input `x`), since",
    ),
    "size of one": ("You marked t as dynamic but your code specialized it to be a constant (1). If", "larger size"),
    "size of one without a Dim": (
        "- Received user-specified dim hint Dim.DYNAMIC(min=None, max=None), but export 0/1 specialized due to hint of "
        "1 for dimension inputs['x'].shape[0].",
        "the size 1 in dimension 0 of the input `x`",
    ),
    "constrained size": (
        "Constraints violated (b)! For more\n  - Not all values of b = L['a'].size()[0] satisfy the guard b % 2.\n"
        "Suggested fixes:\n  _b = Dim('_b')\n  b = 2*_b\n\nThe error",
        "Not all values of b = a.shape[0] satisfy the guard b % 2.; change `dynamic_shapes`: _b = Dim('_b'), b = 2*_b",
    ),
    "number from a tensor": ("Could not extract specialized integer from data-dependent expression", "depends on data"),
    "control flow": ("Dynamic control flow is not supported", "torch.cond"),
    "linear in a branch": (
        "Node a with op <EdgeOpOverload: aten.linear.default>: schema = x was not decomposed or delegated.",
        "`x @ layer.weight.T + layer.bias`",
    ),
    "not decomposed": (
        "Node a with op <EdgeOpOverload: aten.silu.default>: schema = x was not decomposed or delegated.",
        "aten.silu.default",
    ),
    "not in Core ATen": ("Operator torch._ops.aten.histc.default is not in Core ATen opset", "aten.histc.default"),
    "mixed types": (
        "These operators are taking Tensor inputs with mismatched dtypes\nOperator: <EdgeOpOverload: aten.abs.default>",
        "aten.abs.default with these types",
    ),
    "quantized weights": ("Missing out variants: {'torchao::choose_qparams_affine'}", "quantized by torchao already"),
    "no kernel": ("Missing out variants: {'aten::alias'}", "no kernel for aten::alias"),
    "unknown operator": ("Operator: <EdgeOpOverload: aten.abs.default>: schema", "aten.abs.default"),
    "3-D convolution": (
        "aten::convolution.out: Expect input tensor to be 3-D or 4-D, but got, 5.",
        "no 3-D convolution",
    ),
    "mixed weights": ("mat1 and mat2 must have the same dtype, but got Float and Half", "`.half()`"),
    "output type": ("Found <class 'model.Boxes'> in output, which is not a known type.", "returns a model.Boxes"),
    "number of inputs": (
        "Net.forward() takes 2 positional arguments but 3 were given",
        "Net.forward() takes 2 positional arguments but 3 were given: the inputs do not fit",
    ),
    "sparse": ("Could not run 'aten::view' with arguments from the 'SparseCPU' backend", "`.to_dense()`"),
    "complex": ("expected Float but got ComplexFloat", "real and imaginary parts"),
    "script": ("Exporting a ScriptModule is not supported.", "before torch.jit.script"),
    "compiled": ("'OptimizedModule' object is not supported", "before torch.compile"),
    "download": ("<urlopen error [Errno 111]> URLError", "load it by its path"),
    "number quantized": (
        "An error occurred when running the 'ChannelsLastTaggedReshapePass' pass\nIndexError: invalid index of a 0-dim "
        "tensor.",
        "`x.flatten().mean(0, keepdim=True)`",
    ),
    "OpenVINO refuses": (
        "OpConversionFailure: Check 'is_conversion_successful' failed at src/frontends/pytorch/src/frontend.cpp:180:\n"
        "Model wasn't fully converted. Failed operations detailed log:\n-- aten.addmm.default with a message:\n"
        "Exception happened\n\nSummary:\n-- Conversion is failed for: aten.addmm.default, aten.convolution.default\n",
        "OpenVINO cannot convert aten.addmm.default, aten.convolution.default; use another recipe",
    ),
    "failed pass": (
        "An error occurred when running the 'FuseOps' pass after: []\nKeyError: 'a'",
        "the pass FuseOps of executorch fails on this model (KeyError: 'a')",
    ),
    "missing file": ("[Errno 2] No such file or directory: 'weights.pt'", "`Path(__file__).parent / ...`"),
}


@pytest.mark.parametrize("name", [each.name for each in TABLE])
def test_each_known_error_is_a_cause_and_a_remedy(name: str) -> None:
    text, content = ERRORS[name]
    error = RuntimeError(text)
    entry = next(each for each in TABLE if each.pattern.search(f"RuntimeError: {text}"))
    assert entry.name == name  # and not an earlier entry
    sentence = find_refusal(error, first_line(error))
    assert sentence is not None
    cause, _, remedy = sentence.partition("; ")
    assert content in sentence
    assert cause
    assert remedy
    assert "{" not in sentence.replace("{'aten", "")
    assert re.fullmatch(r"(pytorch/(executorch|pytorch)#\d+)?", entry.issue)


@pytest.mark.parametrize("text", ["no weights yet", "make() takes 1 positional argument but 2 were given"])
def test_an_unknown_error_keeps_its_text(text: str) -> None:
    assert find_refusal(TypeError(text), f"TypeError: {text}") is None


def test_a_model_that_fails_in_eager_pytorch_is_said_to_do_so() -> None:
    error = RuntimeError("mat1 and mat2 shapes cannot be multiplied (8x64 and 67x43)")
    assert find_refusal(error, first_line(error)) is None
    error.add_note(FAILS_IN_EAGER)
    sentence = find_refusal(error, first_line(error))
    assert sentence is not None
    assert sentence.startswith(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x64 and 67x43); the model fails"
    )


MODELS = """import torch
from pathlib import Path

Dim = torch.export.Dim

def missing():
    return torch.load("absent.pt"), (torch.ones(1),)

def sorting():
    class Sorting(torch.nn.Module):
        def forward(self, values):
            return values.sort(1)
    return Sorting(), (torch.rand(2, 4),)

def sized(dim, rows):
    inputs = (torch.ones(3, 8),)
    shapes = {"more": (torch.ones(rows, 8),)}
    return {"module": torch.nn.Linear(8, 4), "inputs": inputs, "dynamic_shapes": ({0: dim},), "shapes": shapes}

def beyond():
    return sized(Dim("rows", min=1, max=4), 5)

def largest():
    return sized(Dim("rows", min=1, max=4), 4)

def example():
    return sized(Dim("rows", min=4, max=8), 5)

class Added(torch.nn.Module):
    def forward(self, values, others):
        if others.shape[0] > 2:
            values = values * 2
        return values + torch.ones(1, 3)

def specialized():
    values = torch.ones(2, 3), torch.ones(3, 2)
    shapes = {"values": {1: Dim("columns", max=8)}, "others": {0: Dim("rows", max=8)}}
    return {"module": Added(), "inputs": values, "dynamic_shapes": shapes}

def limited():
    values = torch.ones(2, 3), torch.ones(3, 2)
    return {"module": Added(), "inputs": values, "dynamic_shapes": (None, {0: Dim("rows", max=8)})}

def fixed():
    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.recurrent = torch.nn.GRU(8, 4, batch_first=True)
        def forward(self, values):
            return self.recurrent(values)[0]
    shapes = {"dynamic_shapes": ({0: Dim("rows", max=8)},), "shapes": {"more": (torch.ones(5, 3, 8),)}}
    return {"module": Last(), "inputs": (torch.ones(2, 3, 8),), **shapes}

def unlimited():
    return sized(Dim.DYNAMIC, 4)

def spectrum():
    class Spectrum(torch.nn.Module):
        def forward(self, values):
            return torch.fft.rfft(values).abs()
    return Spectrum(), (torch.rand(2, 4),)
"""


def refusal(factory: str, exports: Path) -> str:
    with pytest.raises(ExportError) as refused:
        exported_cases(f"./model.py:{factory}", "fp32", exports)
    return str(refused.value).partition("; the full log is ")[0]


@pytest.mark.torch
def test_what_is_missing_or_not_supported_has_the_users_line(exports: Path) -> None:
    missing = refusal("missing", exports)
    assert 'model.py, line 7: `return torch.load("absent.pt"), (torch.ones(1),)`: No such file or directory' in missing
    kernel = refusal("sorting", exports)
    assert "model.py, line 12: `return values.sort(1)`: ExecuTorch has no kernel for aten::sort.values; " in kernel
    assert ".rfft(values).abs()`: ExecuTorch does not support aten.abs.default with" in refusal("spectrum", exports)


@pytest.mark.torch
def test_a_size_beyond_the_memory_of_a_program_is_refused_with_its_input_and_dim(exports: Path) -> None:
    beyond = (
        'input `input` has the size 5 in dimension 0 in the shape `more`; its maximum is 4: write Dim("rows", max=5)'
    )
    assert beyond in refusal("beyond", exports)
    unlimited = refusal("unlimited", exports)
    assert "the size 4 in dimension 0" in unlimited
    assert 'memory for the 3 of the example inputs: write Dim("size", max=4)' in unlimited
    [export] = exported_cases("./model.py:largest", "fp32", exports)
    assert export.trial == "succeeded"


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("example", 'has the size 3 in dimension 0 in the example inputs; its minimum is 4: write Dim("rows", min=3)'),
        (
            "specialized",
            "model.py, line 33: `return values + torch.ones(1, 3)`: the model works only with the size 3 of the "
            "dynamic dimension `columns` (dimension 1 of the input `values`)",
        ),
        ("limited", "model.py, line 31: `if others.shape[0] > 2:`: the sizes that `dynamic_shapes` allows do not fit"),
    ],
)
def test_a_dynamic_size_that_the_model_restricts_is_named_with_its_line(
    name: str, sentence: str, exports: Path
) -> None:
    assert sentence in refusal(name, exports)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("times", "size", "sentence"),
    [
        (1, 9, 'its maximum is 8: write Dim("rows", max=9)'),
        (1, 2, 'its minimum is 3: write Dim("rows", min=2)'),
        (1, 1, "its minimum is 3: use an example with the size 3 or more"),  # torch.export refuses 1 with any Dim
        (2, 18, "its maximum is 16: change the range of `rows`"),
    ],
)
def test_an_example_that_its_dim_does_not_allow_has_a_remedy_that_works(times: int, size: int, sentence: str) -> None:
    import torch

    rows = torch.export.Dim("rows", min=3, max=8)
    with pytest.raises(FarmError, match=re.escape(sentence)):
        check_example(["values"], (torch.ones(size, 8),), ({0: 2 * rows if times == 2 else rows},))


@pytest.mark.torch
def test_a_dynamic_size_that_executorch_fixes_is_refused(exports: Path) -> None:
    fixed = "executorch fixes the dynamic dimension 0 of the input `values` to 2 when it lowers the model; export each"
    assert fixed in refusal("fixed", exports)


GENERATE = {"generate": {"prefill": [8]}}


@pytest.mark.torch
@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"transformers": "T5Config"}, r"T5Config is an encoder and a decoder.*\(T5Model\(config\)\.get_encoder\(\)"),
        ({"transformers": "CLIPConfig"}, "measure its networks, such as CLIPTextConfig and CLIPVisionConfig"),
        ({"transformers": "T5Config"} | GENERATE, "no AutoModelForCausalLM for T5Config; leave `gen"),
        ({"transformers": "BertConfig"} | GENERATE, "BertConfig is an encoder, which writes no text"),
    ],
)
def test_a_transformer_that_is_not_one_network_names_what_to_measure(entry: dict[str, Any], sentence: str) -> None:
    from tasks.export.from_transformers import build_transformers_model

    encoder = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    small: dict[str, dict[str, Any]] = {
        "T5Config": {"d_model": 16, "num_layers": 1, "d_ff": 16, "num_heads": 2, "vocab_size": 32},
        "BertConfig": encoder,
        "CLIPConfig": {"text_config": encoder | {"vocab_size": 32}, "vision_config": encoder | {"patch_size": 112}},
    }
    config = small[entry["transformers"]]
    with pytest.raises(FarmError, match=sentence):
        build_transformers_model(ModelEntry.model_validate({"name": "a", "config": config} | entry))


def test_a_file_without_a_function_names_those_that_it_has(exports: Path) -> None:
    with pytest.raises(InputError) as refused:
        parse_entry("./model.py")
    assert str(refused.value).startswith("`./model.py` names no function; write `./model.py:missing` or `./model.py:so")
    Path("model.py").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"write `\./model\.py:make`, and define it there"):
        parse_entry("./model.py")
    with pytest.raises(InputError, match=r"model\.py: the file is empty; define a function make in it"):
        parse_entry("./model.py:make")


def test_a_folder_with_spaces_gives_a_name_without(exports: Path) -> None:
    entry = parse_entry(f"../{exports.parent.name}/model.py:sorting")
    assert entry.name == "../it_s_here/model.py:sorting"
    assert entry.factory is not None
    assert Path(entry.factory.rpartition(":")[0]).samefile("model.py")


def test_an_empty_program_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "model.pte").touch()
    with pytest.raises(InputError, match=r"model\.pte: the file is empty; copy or export it again"):
        read_program(tmp_path / "model.pte")
