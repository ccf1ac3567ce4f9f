"""A part of a sweep: its sessions are those of the whole sweep."""

from pathlib import Path

import pytest

from devices.errors import InputError
from tasks.measure.sweep_filter import SweepFilter
from tests.fixtures.plans import a_spec, planned


def test_the_sessions_of_a_part_are_those_of_the_whole_sweep_with_their_ids() -> None:
    # given parts that make up a sweep of two models by two recipes in three variants
    whole = a_spec()
    parts = [SweepFilter(models=["conv"]), SweepFilter(models=["linear"], variants=["sme1"])]
    parts += [
        SweepFilter(models=["linear"], precisions=[each], variants=["sme2_off", "sme2_on"]) for each in ("fp32", "fp16")
    ]
    # then together they have its sessions, each once (but the one that each start discards)
    ids = [each.session_id for part in parts for each in planned(part.apply(whole))[1:]]
    assert sorted(ids) == sorted(each.session_id for each in planned(whole)[1:])


def test_pte_files_are_chosen_as_is_and_recipes_leave_them_out(tmp_path: Path) -> None:
    (tmp_path / "a.pte").touch()
    spec = a_spec(models=["conv", {"name": "a", "pte": str(tmp_path / "a.pte")}])
    chosen = {precision: SweepFilter(precisions=[precision]).apply(spec).pairs for precision in ("fp16", "as_is")}
    assert {name: [(model.name, recipe) for model, recipe in pairs] for name, pairs in chosen.items()} == {
        "fp16": [("conv", "fp16")],
        "as_is": [("a", "as_is")],
    }


def test_a_part_does_not_measure_the_noise_of_the_whole_sweep() -> None:
    assert SweepFilter(models=["conv"]).apply(a_spec(noise_sessions=5)).noise_sessions == 0
    assert SweepFilter(devices=["phone"]).apply(a_spec(noise_sessions=5)).noise_sessions == 0


@pytest.mark.parametrize(
    ("only", "sentence"),
    [
        ({"models": ["cnov"]}, "--model cnov: the sweep smoke has no such model; it has linear, conv; did"),
        (
            {"precisions": ["int8_static"]},
            "--precision int8_static: the sweep smoke has no such precision; it has fp32",
        ),
        ({"variants": ["sme2"]}, "--variant sme2: the sweep smoke has no such variant; it has sme2_on, sme1, sme2_off"),
    ],
)
def test_what_the_sweep_does_not_have_is_named_with_what_it_has(only: dict[str, list[str]], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        SweepFilter.model_validate(only).apply(a_spec())
    assert str(refused.value).startswith(sentence)
