"""Run-time options in a sweep file: each has one form in the name of a case, and a mistake is one sentence."""

from pathlib import Path
from typing import Any

import pytest

from devices.errors import InputError
from tasks.bundle.runtime import case_name, parse_runtime, without_options
from tasks.bundle.runtime_options import SETTINGS
from tasks.measure.run_options import RunOptions
from tasks.measure.sweep_file import read_sweep


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "{}"),
        ({"load": "mmap", "weight_cache": False}, "load=mmap,weight_cache=false"),
        ({"workspace": "per_model", "packed_cache": True}, "packed_cache=true,workspace=per_model"),
        ({"some_key": 3, "unchecked": True}, "some_key=3,unchecked=true"),
    ],
)
def test_options_stand_in_the_name_of_a_case_in_one_form(options: dict[str, Any], words: str) -> None:
    checked = RunOptions.model_validate(options)
    assert str(checked) == words
    # and the name of the case returns them, and its default
    name = case_name("net", "runner=1.5.0", *("=".join(word) for word in checked.words))
    assert parse_runtime(name).options == checked.words
    assert without_options(name) == "net@runner=1.5.0"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            "{laod: mmap}",
            "unknown option `laod`; use load, weight_cache, packed_cache, workspace, compute_unit, or add",
        ),
        ("{use_graph_runtime: true}", "or add `unchecked: true` to pass a key to XNNPACK that the farm cannot check"),
        ("{weight_cache_enabled: true, unchecked: true}", "write the option `weight_cache: true`, which sets it"),
        ("{save_weight_cache_on_disk: true}", "write the option `packed_cache: true`, which sets it"),
        ("{unchecked: true}", "`unchecked` is for keys that are not in the list of options"),
        ("{runner: 1, unchecked: true}", "`runner`: not a key and value of a backend"),
        ("{key: a/b, unchecked: true}", "`key`: not a key and value of a backend"),
        ("{key: null, unchecked: true}", "`key`: not a key and value of a backend"),
        (f"{{key: {'v' * 64}, unchecked: true}}", "of at most 63 characters"),
        ("{packed_cache: true, weight_cache: false}", "remove `weight_cache: false`"),
        ("{load: lazily}", "mmap_try_mlock"),
        ("{compute_unit: gpu}", "cpu_and_gpu"),
        ("{packed_cache: false}", "must be true, or the key must be removed"),
    ],
)
def test_a_mistake_in_the_options_is_one_sentence_with_its_line(tmp_path: Path, options: str, sentence: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(f"name: a\nmodels: [linear]\noptions:\n  - {{}}\n  - {options}\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_sweep(path)
    assert str(refused.value).startswith(f"{path}:5: `options.1")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_sweep_file_accepts_exactly_the_options_of_the_table() -> None:
    values = {(each.name, each.value) for each in SETTINGS}
    for name, value in values:
        written: Any = {"true": True, "false": False}.get(value, value)
        assert RunOptions.model_validate({name: written}).words == ((name, value),)
    assert {name for name, _ in values} | {"unchecked"} == set(RunOptions.model_fields)
