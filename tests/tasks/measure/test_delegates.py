"""Delegates as an axis of a sweep: the cases that it has, and what a device measures of them."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from devices.errors import InputError
from devices.ondevice.facts import Facts
from flows import dispatch, sweep_dispatch
from flows.export_queue import ExportQueue
from tasks.bundle.cell import Use
from tasks.bundle.runtime import parse_runtime, without_delegate
from tasks.export.entry import ExportRequest, ModelEntry
from tasks.export.key import export_key
from tasks.measure.matrix_rules import describe_rules, why_skipped
from tasks.measure.needed_exports import leave_out_unneeded
from tasks.measure.prepare import (
    ExportSettings,
    ExportSnapshot,
    ExportStatus,
    missing_environments,
    quick_export_status,
)
from tasks.measure.sweep_file import read_sweep
from tasks.measure.sweep_filter import SweepFilter
from tasks.rows.record_rows import series_row
from tasks.store.workspace import Workspace
from tests.fixtures.plans import SME2, a_spec, ended, planned

FOUR = ["xnnpack", "portable", ["openvino", "xnnpack"], "openvino"]


def names(**changes: Any) -> list[str]:
    return [entry.name for entry, _ in a_spec(precisions=["fp32"], **changes).pairs]


def test_each_delegate_of_a_sweep_is_a_case_of_each_model_and_an_entry_may_state_its_own() -> None:
    assert names(models=["conv"], delegates=FOUR) == [
        "conv",
        "conv@delegate=portable",
        "conv@delegate=openvino+xnnpack",
        "conv@delegate=openvino",
    ]
    own = {"name": "own", "factory": "linear", "delegate": ["coreml", "xnnpack"]}
    plain = {"name": "plain", "factory": "linear", "delegate": "xnnpack"}
    assert names(models=[own, plain, "conv"], delegates=["portable"], executorch=["1.4.1"]) == [
        "own@delegate=coreml+xnnpack,export=1.4.1",
        "plain@export=1.4.1",
        "conv@delegate=portable,export=1.4.1",
    ]
    # and the roof is what XNNPACK reaches
    assert names(models=["conv"], delegates=["openvino"], roof=True)[-1] == "roof"


def test_a_pte_file_is_not_lowered_and_has_the_delegate_of_its_entry_alone(tmp_path: Path) -> None:
    (tmp_path / "a.pte").touch()
    entry: dict[str, Any] = {"name": "a", "pte": str(tmp_path / "a.pte")}
    assert names(models=[entry], delegates=FOUR) == ["a"]
    assert names(models=[entry | {"delegate": "coreml"}], delegates=FOUR) == ["a@delegate=coreml"]


def test_an_option_concerns_only_the_cases_of_its_delegate() -> None:
    # given an option of Core ML beside one of XNNPACK and one of how a program is loaded
    options = [{}, {"load": "mmap", "compute_unit": "cpu_only"}, {"weight_cache": True}]
    spec = a_spec(models=["conv"], delegates=[*FOUR[:2], "coreml", ["coreml", "xnnpack"], "my:own"], options=options)
    unit, cache = "compute_unit=cpu_only,load=mmap", "weight_cache=true"
    assert {parse_runtime(entry.name).delegate: spec.runtimes_of(entry) for entry, _ in spec.pairs} == {
        None: ["", "load=mmap", cache],
        "portable": ["", "load=mmap"],
        "coreml": ["", unit],
        "coreml+xnnpack": ["", unit, cache],
        "my:own": ["", unit, cache],
    }
    # and one that concerns no case is a mistake
    with pytest.raises(ValidationError, match="`compute_unit: all`: an option of coreml, which no model of the sweep"):
        a_spec(models=["conv"], options=[{"compute_unit": "all"}])


@pytest.mark.parametrize(
    ("delegates", "sentence"),
    [
        ("[xnnpack, xnnpack]", "duplicate entry `xnnpack`"),
        ("[[openvino], openvino]", "duplicate entry `openvino`"),
        ("[xnpack]", "unknown delegate `xnpack`"),
        ("[]", "`delegates`"),
    ],
)
def test_a_mistake_in_the_delegates_is_one_sentence_with_its_line(
    tmp_path: Path, delegates: str, sentence: str
) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(f"name: a\nmodels: [linear]\ndelegates: {delegates}\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_sweep(path)
    assert str(refused.value).startswith(f"{path}:3: ")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_sessions_series_and_export_keys_of_xnnpack_are_those_from_before_there_was_a_choice(tmp_path: Path) -> None:
    # given ids of a farm that had no delegates
    first = planned(a_spec())[0]
    assert (first.session_id, series_row(ended(first, "succeeded"))["series_id"]) == (
        "a800479896824d48",
        "116e2e807f80fd2d",
    )
    # then a sweep that lists XNNPACK among others has the same sessions, and no other content shares an id
    every = planned(a_spec(delegates=FOUR))
    plain = [each for each in every if each.cell.model == without_delegate(each.cell.model)]
    assert {each.session_id for each in plain[1:]} == {each.session_id for each in planned(a_spec())[1:]}
    assert len({each.session_id for each in every}) == len(every)
    series = {(each.cell.model, each.cell.precision, each.cell.variant) for each in every}
    ids = {series_row(ended(each, "succeeded"))["series_id"] for each in every}
    assert len(ids) == len(series)
    # and so it is with programs
    entry = ModelEntry.model_validate("linear")
    words = (None, "xnnpack", "portable", "openvino", "openvino+xnnpack")
    keys = [export_key(ExportRequest(entry.lowered(each), "fp32", tmp_path)) for each in words]
    assert keys[0] == keys[1]
    assert len(set(keys)) == len(keys) - 1


def test_a_delegate_whose_packages_another_version_lacks_is_skipped_for_that_version(tmp_path: Path) -> None:
    spec = a_spec(models=["conv"], precisions=["fp32"], delegates=["portable", "openvino"], executorch=["1.4.1"])
    settings = ExportSettings(tmp_path, 0, None, has_numerics=False)
    states = {entry.name: quick_export_status(entry, recipe, settings) for entry, recipe in spec.pairs}
    skipped = states.pop("conv@delegate=openvino,export=1.4.1")
    assert (skipped.state, skipped.note.partition(":")[0]) == (
        "skipped",
        "OpenVINO exports with the farm's own version of ExecuTorch alone",
    )
    # and the environment is installed for the others alone
    assert [each.state for each in states.values()] == ["to export"]
    assert len(missing_environments(spec, settings)) == 1


def test_delegates_of_a_model_are_interleaved_and_those_without_xnnpack_have_one_variant() -> None:
    spec = a_spec(models=["conv"], precisions=["fp32"], delegates=["xnnpack", "openvino"])
    order = [(each.cell.program[0], each.cell.variant) for each in planned(spec)[1:]]
    block = [("conv", "sme2_on"), ("conv", "sme1"), ("conv", "sme2_off"), ("conv@delegate=openvino", "sme2_off")]
    assert order == (block + block[::-1]) * 2
    assert all(before != after for before, after in pairwise(order[:4]))
    # and without `sme2_off` in the sweep it is the first that the device has
    only = planned(spec.model_copy(update={"variants": ["sme2_on", "sme1"]}))
    assert {each.cell.variant for each in only if "@" in each.cell.model} == {"sme2_on"}


def test_threads_and_modes_that_say_nothing_about_a_delegate_are_left_out_and_it_is_stated() -> None:
    delegates = ["portable", "coreml", "coreml+xnnpack", "my.parts:make"]
    spec = a_spec(models=["conv"], precisions=["fp32"], sessions=1, delegates=delegates, threads=[1, 2])
    spec = spec.model_copy(update={"modes": ["timing", "profile", "numerics"]})
    cells = {each.cell for each in planned(spec)}
    counts = Counter((cell.runtime.delegate, cell.mode) for cell in cells)
    assert counts == {
        ("portable", "timing"): 2,
        ("portable", "numerics"): 2,
        ("coreml", "timing"): 1,
        ("coreml", "numerics"): 1,
    } | {(each, mode): 6 for each in delegates[2:] for mode in ("timing", "profile", "numerics")}
    mac = SME2.model_copy(update={"platform": "macos-arm64"})
    assert describe_rules(spec, mac, [Use("sme2_off", "timing", None, delegates[-1])]) == [
        "portable, coreml: SME2 off only, since SME2 is switched in XNNPACK alone",
        "coreml: threads 1 only, since no other number changes it",
        "portable, coreml: without profile, which is evidence of XNNPACK's kernels",
        "coreml: never run on hardware",
    ]
    # and two lists that are skipped for one reason are one sentence
    here = describe_rules(a_spec(delegates=delegates[:3]), Facts(platform="linux-x86_64"), [])
    [skipped] = [each for each in here if each.startswith("skipped")]
    assert skipped.startswith("skipped: coreml: executorch's wheel has no library of CoreMLBackend for linux-x86_64")
    assert describe_rules(a_spec(threads=[1, 2]), SME2, []) == []
    # and nothing is certain about a device of an unknown platform
    assert describe_rules(a_spec(delegates=["xnnpack", "portable", "openvino"], variants=["sme2_off"]), SME2, []) == [
        "openvino: may be skipped; its platform is unknown until it answers"
    ]


def test_a_device_skips_a_delegate_whose_library_its_platform_lacks_unless_a_registered_runner_has_it() -> None:
    spec = a_spec(models=["conv"], precisions=["fp32"], delegates=["xnnpack", "openvino", "my.parts:make"])
    phone, here = Facts(platform="android-arm64"), Facts(platform="linux-x86_64")
    reasons = why_skipped(spec, phone, [Use("sme2_off", "timing")])
    assert list(reasons) == ["openvino", "my.parts:make"]
    assert reasons["openvino"].startswith("openvino: executorch's wheel has no library of OpenvinoBackend for android-")
    assert reasons["my.parts:make"] == (
        "my.parts:make: your own partitioner needs a registered runner for android-arm64; add one with "
        "`etfarm devices runner register --backend ID`"
    )
    registered = [Use("sme2_off", "timing", None, each) for each in ("openvino", "my.parts:make")]
    assert why_skipped(spec, phone, registered) == why_skipped(spec, Facts(), []) == {}
    assert list(why_skipped(spec, here, [])) == ["my.parts:make"]  # its runner for OpenVINO can be built
    # and what is skipped is not planned, which a dry run states
    assert describe_rules(spec, phone, []) == [f"skipped: {reason}" for reason in reasons.values()]
    measured = {each.cell.model for each in planned(spec, facts=phone, uses=[Use("sme2_off", "timing")])}
    assert measured == {"conv"}


def test_a_model_is_not_exported_for_a_delegate_that_no_device_of_the_sweep_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = a_spec(models=["conv"], precisions=["fp32"], delegates=["xnnpack", "portable", "openvino", "coreml"])
    ready = ExportStatus("ready")
    statuses = {(entry.name, recipe): ExportStatus("to export") for entry, recipe in spec.pairs}

    def left_out(*platforms: str | None, **more: ExportStatus) -> list[str | None]:
        exports = ExportSnapshot(statuses | {(f"conv@delegate={word}", "fp32"): each for word, each in more.items()})
        now = leave_out_unneeded(exports, spec, platforms, tmp_path).statuses
        return [parse_runtime(name).delegate for (name, _), each in now.items() if each.state == "not needed"]

    # then each device adds what it can run, an unknown one everything, and what is exported stays
    assert left_out("android-arm64") == ["openvino", "coreml"]
    assert left_out("android-arm64", "linux-x86_64") == ["coreml"]
    assert left_out("linux-x86_64", "macos-arm64") == left_out("android-arm64", None) == []
    assert left_out("android-arm64", openvino=ready) == ["coreml"]
    # and a sweep starts XNNPACK's and portable ones at once, others with their device, and waits for no more
    submitted = list[str]()
    monkeypatch.setattr(dispatch.export_step, "submit", lambda entry, *_: submitted.append(entry.name))
    exports = ExportQueue(statuses)
    steps = sweep_dispatch.ExportSteps(spec, Workspace(tmp_path), exports)
    assert submitted == ["conv", "conv@delegate=portable"]
    steps.start("linux-x86_64")
    steps.start("linux-x86_64")
    assert submitted[2:] == ["conv@delegate=openvino"]
    assert len(steps.close()) == 3
    now = exports.now()
    assert now.statuses["conv@delegate=coreml", "fp32"].state == "not needed"
    assert now.skipped == now.errors == {}


def test_a_part_of_a_sweep_may_be_one_delegate() -> None:
    own = {"name": "own", "factory": "linear", "delegate": "coreml"}
    spec = a_spec(models=["conv", own], precisions=["fp32"], delegates=["xnnpack", "openvino"], roof=True)
    parts = {each: SweepFilter(delegates=[each]).apply(spec) for each in ("xnnpack", "openvino", "coreml")}
    assert {each: [entry.name for entry, _ in part.pairs] for each, part in parts.items()} == {
        "xnnpack": ["conv", "roof"],
        "openvino": ["conv@delegate=openvino"],
        "coreml": ["own@delegate=coreml"],
    }
    with pytest.raises(InputError, match="--delegate mlx: the sweep smoke has no such delegate; it has xnnpack, openv"):
        SweepFilter(delegates=["mlx"]).apply(spec)
    with pytest.raises(InputError, match="none of these --model in these --precision and --delegate"):
        SweepFilter(models=["own"], delegates=["openvino"]).apply(spec)
