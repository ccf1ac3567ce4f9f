"""A .pte file that the user brings: its methods, its inputs by name or by seed, and what is refused."""

import re
import struct
import sys
import zipfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from devices.errors import FarmError, InputError
from tasks.export.entry import ModelEntry
from tasks.export.exported import Export
from tasks.export.lowering.trial import execute_on_host
from tasks.export.prebuilt import import_prebuilt
from tasks.export.program import read_program
from tests.fixtures.program_builder import INT64, Integer, Signature, Tensor, Unknown, build_program

THREE_INPUTS = Signature([Tensor((1, 4), INT64), Tensor((2,)), Tensor(())], [Tensor((2, 2))])
DYNAMIC = Signature([Tensor((4, 8), is_dynamic=True)], [Tensor((4, 8), is_dynamic=True)])


def imported(folder: Path, methods: dict[str, Signature], seed: int = 0, **entry: Any) -> tuple[Export, ...]:
    (folder / "lin.pte").write_bytes(build_program(methods))
    written = {"name": "lin", "pte": "lin.pte", **entry}
    return import_prebuilt(ModelEntry.model_validate(written, context={"folder": folder}), folder / "exports", seed)


def with_segments(program: bytes, segments: bytes, header_bytes: int = 32) -> bytes:
    """Return a program with the extended header, with its size, and with segments after it."""
    sizes = (len(program) + header_bytes, len(program) + header_bytes, len(segments))
    header = struct.pack("<4sIQQQ", b"eh00", header_bytes, *sizes)[:header_bytes]
    root = int.from_bytes(program[:4], "little") + header_bytes
    return root.to_bytes(4, "little") + program[4:8] + header + program[8:] + segments


def test_the_backend_of_each_delegate_call_is_read_from_the_program(tmp_path: Path) -> None:
    # given two chains, with calls of portable operators between those of two backends
    both = Signature(chains=[[None, "CoreMLBackend", None, "XnnpackBackend"], ["CoreMLBackend"]])
    mixed, portable = imported(tmp_path, {"mixed": both, "portable": Signature(chains=[[None]])})
    assert mixed.delegate_calls == ((0, 1, "CoreMLBackend"), (0, 3, "XnnpackBackend"), (1, 0, "CoreMLBackend"))
    assert portable.delegate_calls == ()
    [first, *_] = read_program(mixed.pte)[0].calls
    assert (first.chain, first.instruction, first.operator, first.delegate) == (0, 0, "aten::add.out", None)
    # and those of a file that is gone are unknown, which is not the same as none
    mixed.pte.unlink()
    assert replace(mixed).delegate_calls is None


@pytest.mark.parametrize(
    ("calls", "delegate", "refused"),
    [
        (["OpenvinoBackend"], "openvino", None),
        (["OpenvinoBackend", "XnnpackBackend"], ["openvino", "xnnpack"], None),
        (["VulkanBackend"], "my.parts:make", None),
        ([None], "portable", None),
        ([None], "xnnpack", None),
        (
            ["OpenvinoBackend", "XnnpackBackend"],
            "openvino",
            "calls OpenvinoBackend, XnnpackBackend, not .*xnnpack`",
        ),
        (["XnnpackBackend"], "openvino", "calls XnnpackBackend, not .*states; write `delegate: xnnpack`"),
        (["XnnpackBackend"], "portable", "write `delegate: xnnpack`"),
        (["XnnpackBackend"], "my.parts:make", "write `delegate: xnnpack`"),
        ([None], "coreml", "calls no backend, not what `delegate: coreml` states; write `delegate: portable`"),
        (["VulkanBackend"], "coreml", "name the partitioner that made it, as package.module:function"),
    ],
)
def test_the_delegate_that_an_entry_states_is_what_its_program_calls(
    tmp_path: Path, calls: list[str | None], delegate: Any, refused: str | None
) -> None:
    methods = {"forward": Signature(chains=[calls])}
    with pytest.raises(InputError, match=refused) if refused else nullcontext():
        imported(tmp_path, methods, delegate=delegate)


def test_weights_outside_the_program_belong_to_what_is_measured(tmp_path: Path) -> None:
    def content(weights: bytes) -> tuple[str, str]:
        (tmp_path / "lin.ptd").write_bytes(weights)
        (export,) = imported(tmp_path, {"forward": Signature()}, data=["lin.ptd"])
        assert (export.folder / export.data[0]["file"]).read_bytes() == weights
        return export.content

    assert content(b"one") == content(b"one") != content(b"two")


def test_missing_inputs_are_seeded(tmp_path: Path) -> None:
    def inputs(seed: int) -> list[bytes]:
        (export,) = imported(tmp_path, {"forward": THREE_INPUTS}, seed)
        return [(export.folder / entry["file"]).read_bytes() for entry in export.inputs]

    integers, floats, scalar = inputs(0)
    assert set(np.frombuffer(integers, np.int64)) <= {0, 1}
    assert (len(floats), len(scalar)) == (8, 4)
    assert inputs(0) == [integers, floats, scalar]
    assert inputs(1) != [integers, floats, scalar]


def test_inputs_and_expected_outputs_are_part_of_what_is_measured(tmp_path: Path) -> None:
    for name, value in (("in0.bin", 1.0), ("in1.bin", 2.0), ("ref.bin", 3.0)):
        np.full((2, 3), value, np.float32).tofile(tmp_path / name)
    entries: list[dict[str, Any]] = [{}, {"inputs": ["in0.bin"], "expected": ["ref.bin"]}, {"inputs": ["in1.bin"]}]
    seeded, first, second = (imported(tmp_path, {"forward": Signature()}, **more)[0] for more in entries)
    assert (first.model, first.precision, first.outputs[0]["shape"], second.outputs) == ("lin", "as_is", [2, 3], [])
    assert len({each.export_key for each in (seeded, first, second)}) == 3
    assert len({each.inputs_sha256 for each in (seeded, first, second)}) == 3
    assert len({each.pte_sha256 for each in (seeded, first, second)}) == 1


def test_every_method_is_a_case_of_its_largest_shapes_and_numbers_are_no_inputs(tmp_path: Path) -> None:
    cases = imported(tmp_path, {"prefill": THREE_INPUTS, "decode": DYNAMIC, "reset": Signature([Integer()], [])})
    assert [(each.model, [(entry["dtype"], entry["shape"]) for entry in each.inputs]) for each in cases] == [
        ("lin@prefill", [("int64", [1, 4]), ("float32", [2]), ("float32", [])]),
        ("lin@decode", [("float32", [4, 8])]),
        ("lin@reset", []),
    ]
    assert [each.case.is_dynamic for each in cases] == [False, True, False]


@pytest.mark.parametrize(
    ("methods", "entry", "sentence"),
    [
        ({"a": Signature(), "b": Signature()}, {"inputs": ["in.bin"]}, "has 2 methods, so `inputs` cannot belong"),
        ({"forward": Signature()}, {"inputs": ["in.bin"]}, r"in\.bin: has 3 bytes; the input needs 24 for float32"),
        ({"forward": THREE_INPUTS}, {"inputs": ["in.bin"]}, "lists 1 files; the method has 3 inputs"),
        ({"forward": Signature([Unknown()])}, {}, "input 0 of forward is neither a tensor nor a number"),
        ({}, {}, "the program has no methods"),
        ({"forward": Signature(outputs=[Tensor(has_memory=False)])}, {}, "output 0 of forward has no memory, .*; exp"),
        (
            {"forward": Signature(outputs=[Tensor((4,), is_dynamic=True)])},
            {"inputs": ["float.bin"], "expected": ["in.bin"]},
            r"in\.bin: has 3 bytes; output 0 of forward has at most 16 for float32 \[4\]; ",
        ),
        ({"forward": Signature()}, {"etrecord": "other.zip"}, r"other\.zip: not an ETRecord; "),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, methods: dict[str, Signature], entry: dict[str, Any], sentence: str
) -> None:
    (tmp_path / "in.bin").write_bytes(b"abc")
    (tmp_path / "float.bin").write_bytes(bytes(24))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a.txt", "")
    with pytest.raises(InputError, match=sentence):
        imported(tmp_path, methods, **entry)
    assert not (tmp_path / "exports").exists()


@pytest.mark.parametrize("header_bytes", [24, 32])
def test_a_truncated_program_is_refused_with_its_name(tmp_path: Path, header_bytes: int) -> None:
    # given a program whose header has the size of what follows; an old one without that of the segments
    path = tmp_path / "lin.pte"
    program = build_program({"forward": Signature()})
    complete = with_segments(program, bytes(100), header_bytes)
    declared = len(complete) if header_bytes == 32 else len(complete) - 100
    path.write_bytes(complete[:declared])
    assert read_program(path)
    path.write_bytes(complete[: declared - 1])
    with pytest.raises(InputError) as refused:
        read_program(path)
    assert str(refused.value) == f"{path}: truncated: {declared - 1} of {declared} bytes; copy or export it again"


def test_a_damaged_program_is_refused_wherever_it_is_damaged(tmp_path: Path) -> None:
    content = build_program({"forward": THREE_INPUTS, "reset": DYNAMIC})
    path, messages = tmp_path / "lin.pte", list[str]()
    for at in range(8, len(content), 5):  # all bytes of a number in turn
        path.write_bytes(content[:at] + bytes([0xFF if at % 2 else 0x7F]) + content[at + 1 :])
        try:
            read_program(path)
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 20
    assert all("damaged" in each or "no methods" in each for each in messages)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A stand-in for ExecuTorch's runtime on this machine: it has the backends and operators that a test gives it."""
    runtime = SimpleNamespace(
        backend_registry=SimpleNamespace(registered_backend_names=[], is_available=lambda _backend: True),
        operator_registry=SimpleNamespace(operator_names=set()),
    )
    for name in ("executorch", "executorch.kernels", "executorch.kernels.quantized", "executorch.runtime"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["executorch.runtime"].__dict__["Runtime"] = SimpleNamespace(get=lambda: runtime)
    return runtime


@pytest.fixture
def pte(tmp_path: Path) -> Path:
    """A program that calls a portable operator and XNNPACK."""
    path = tmp_path / "model.pte"
    path.write_bytes(build_program({"forward": Signature(chains=[[None, "XnnpackBackend"]])}))
    return path


def test_a_program_whose_backend_or_operator_is_missing_is_not_tried(runtime: SimpleNamespace, pte: Path) -> None:
    def outcome(backend: str, operator: str) -> str:
        runtime.backend_registry.registered_backend_names = [backend]
        runtime.operator_registry.operator_names = {operator}
        return execute_on_host(pte, [], None).outcome

    assert outcome("XnnpackBackend", "aten::add.out") == "succeeded"
    missing = "not tried here: this machine does not have the "
    with pytest.raises(FarmError, match=r"^ExecuTorch has no kernel for aten::add\.out; replace it"):
        outcome("XnnpackBackend", "aten::mul.out")
    assert outcome("CoreMLBackend", "aten::add.out") == f"{missing}backend XnnpackBackend"


def test_a_dynamic_program_is_measured_at_each_shape_of_the_entry(tmp_path: Path) -> None:
    cases = imported(tmp_path, {"forward": DYNAMIC}, shapes={"short": [[1, 8]], "long": [[4, 8]]})
    described = {case.model: (case.inputs[0]["shape"], case.case.is_dynamic) for case in cases}
    assert described == {"lin@short": ([1, 8], True), "lin@long": ([4, 8], True)}
    assert [(case.folder / case.inputs[0]["file"]).stat().st_size for case in cases] == [32, 128]


@pytest.mark.parametrize(
    ("method", "sizes", "mistake"),
    [
        (DYNAMIC, [[5, 8]], "input 0 has the sizes [5, 8]; the program accepts at most [4, 8]"),
        (DYNAMIC, [[0, 8]], "input 0 has the sizes [0, 8]; the program accepts at most [4, 8]"),
        (DYNAMIC, [[8]], "input 0 has the sizes [8]; the program accepts at most [4, 8]"),
        (Signature([Tensor((2,))]), [[1]], "input 0 has the sizes [1]; the program accepts [2]"),
        (DYNAMIC, [[4, 8], [4, 8]], "wrong lists 2 inputs; forward has 1"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(
    method: Signature, sizes: list[list[int]], mistake: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=re.escape(mistake)):
        imported(tmp_path, {"forward": method}, shapes={"wrong": sizes})


@pytest.mark.torch
def test_a_bundled_program_brings_its_inputs_and_right_outputs(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
    from executorch.exir import to_edge

    # given a bundled program with two methods, of which one has two test cases and one none
    model, inputs = torch.nn.Linear(4, 2), [torch.arange(4.0)[None], torch.ones(1, 4)]
    traced = torch.export.export(model, (inputs[0],))
    program = to_edge({"other": traced, "score": traced}).to_executorch()
    cases = [MethodTestCase(inputs=[each], expected_outputs=[model(each).detach()]) for each in inputs]
    bundled = serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, [MethodTestSuite("score", cases)]))
    (tmp_path / "lin.bpte").write_bytes(bundled)
    # then the method is measured with the first, and the other with seeded inputs
    entry = ModelEntry.model_validate("./lin.bpte", context={"folder": tmp_path})
    other, export = import_prebuilt(entry, tmp_path / "exports", 0)
    assert (other.model, other.outputs, export.model) == ("./lin.bpte@other", [], "./lin.bpte@score")
    values = [np.fromfile(export.folder / each["file"], np.float32) for each in (*export.inputs, *export.outputs)]
    assert values[0].tolist() == [0, 1, 2, 3]
    assert np.allclose(values[1], model(inputs[0]).detach())
    assert export.pte.read_bytes() == program.buffer
    # and one that is cut is refused
    (tmp_path / "lin.bpte").write_bytes(bundled[:200])
    with pytest.raises(InputError, match=r"lin\.bpte: the bundled program is damaged"):
        import_prebuilt(entry, tmp_path / "exports", 0)


@pytest.mark.torch
def test_a_test_case_of_a_bundled_program_has_the_sizes_that_it_was_written_with(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed (export extra)")
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes import MemoryPlanningPass

    # given a program that accepts one to four rows, and a test case of two
    model, rows = torch.nn.Linear(4, 2), torch.randn(2, 4)
    traced = torch.export.export(model, (rows,), dynamic_shapes=({0: torch.export.Dim("rows", max=4)},))
    program = to_edge({"score": traced}).to_executorch()
    case = MethodTestCase(inputs=[rows], expected_outputs=[model(rows).detach()])
    bundled = serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, [MethodTestSuite("score", [case])]))
    file, exports = tmp_path / "lin.bpte", tmp_path / "exports"
    file.write_bytes(bundled)
    entry = ModelEntry.model_validate("./lin.bpte", context={"folder": tmp_path})
    # then it is measured with two
    [export] = import_prebuilt(entry, exports, 0)
    assert [each["shape"] for each in export.inputs] == [[2, 4]]
    assert np.fromfile(export.folder / export.outputs[0]["file"], np.float32).size == 4
    # and a test case of another method, which would compare nothing, is refused with the name of the file
    before, _, after = bundled.rpartition(b"score")
    file.write_bytes(before + b"trial" + after)
    with pytest.raises(InputError, match=r"lin\.bpte: has test cases of `trial`, which its program lacks"):
        import_prebuilt(entry, exports, 0)
    # and so is a program whose outputs have no memory
    planning = MemoryPlanningPass(alloc_graph_output=False)
    without = to_edge({"score": traced}).to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
    bundled = serialize_from_bundled_program_to_flatbuffer(BundledProgram(without, [MethodTestSuite("score", [case])]))
    file.write_bytes(bundled)
    with pytest.raises(InputError, match=r"lin\.bpte: output 0 of score has no memory"):
        import_prebuilt(entry, exports, 0)
