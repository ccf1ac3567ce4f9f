"""A sweep file describes what is measured; a mistake in it is one sentence."""

from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from devices.errors import InputError
from tasks.measure.sweep_file import read_sweep
from tasks.measure.sweep_filter import SweepFilter
from tasks.measure.sweep_night import night_or_today, parse_night, sweep_night
from tests.fixtures.paths import DEPLOYMENTS
from tests.fixtures.plans import a_spec, planned


@pytest.mark.parametrize("path", [*sorted((DEPLOYMENTS / "sweeps").glob("*.yaml"))], ids=lambda path: path.stem)
def test_the_sweeps_that_come_with_the_farm_are_valid(path: Path) -> None:
    assert read_sweep(path).name == path.stem


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("name: a\nmodels: [linear]\nexecutoins: 3\n", 3, "`executoins`: unknown key; did you mean `executions`?"),
        ("name: A b\nmodels: [linear]\n", 1, "lower-case letters, digits"),
        ("name: a\nmodels: [linear]\nthreads: [1, 1]\n", 3, "duplicate entry `1`"),
        ("name: a\nmodels: [linear]\nmodes: [selected]\n", 3, "write `counts`"),
        ("name: a\nmodels: [linear]\nthreads: [all, 2]\n", 3, "the first entry must be a number; write `all` after it"),
        ("name: a\nmodels: [linear]\nlimits:\n  max_temp: 3\n", 4, "unknown key; "),
        ("name: a\nmodels: [linear]\nlimits:\n  max_die_c: .inf\n", 4, "`limits.max_die_c`: input should be a finite"),
        ("name: a\nmodels: [linear]\nseed: 9223372036854775808\n", 3, "`seed`: input should be less than "),
        ("name: a\nmodels: [linear]\nfinish_by: 22:30\n", 3, 'write "22:30" in quotes or a number in base 10'),
        ("name: a\nmodels:\n  - {factory: linear, accuracy: {}}\n", 3, "`accuracy` is empty; set one of min_snr_db"),
        ("name: a\nmodels: [linear]\nnoise_sessions: 3\n", 3, "noise_sessions must be 0 or at least 5"),
        ("name: a\nmodels: [linear]\nwarmup_executions: 20\nexecutions: 20\n", 1, "(20) must be more than"),
        ("name: a\nmodels: [linear]\ninterval_percent: 2\nsessions: 8\n", 1, "sessions (8) is the maximum"),
        ("name: a\nmodels:\n  - {factory: linear, accuracy: {top1: 1.1}}\n", 3, "less than or equal to 1"),
        ("name: a\nmodels:\n  - {factory: linear, accuracy: {snr: 9}}\n", 3, "min_snr_db"),
        ("name: a\nmodels: [linear, roof]\n", 2, "`roof` is not a model; remove it and write `roof: true`"),
        ("name: a\nmodels: [linear]\nroof: true\nmodes: [counts]\n", 1, "roof is measured in mode timing"),
        ('name: a\nmodels: [linear]\nfinish_by: "24:10"\n', 3, "`finish_by`: a time consists of hours and minutes"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(tmp_path: Path, text: str, line: int, sentence: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_sweep(path)
    assert str(refused.value).startswith(f"{path}:{line}: ")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


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


def test_the_roof_is_measured_like_a_model_in_few_sessions_and_not_by_emulated_devices_or_for_a_part() -> None:
    spec = a_spec(roof=True, sessions=9, modes=["timing", "profile"])
    sessions = [each.cell for each in planned(spec) if each.cell.model == "roof"]
    # then each precision and variant has the sessions that a verdict needs, all of them in timing
    assert Counter(sessions) == dict.fromkeys(sessions, 8)
    assert {cell.mode for cell in sessions} == {"timing"}
    assert len(set(sessions)) == 2 * 3
    excepted = a_spec(roof=True, precisions=["fp16", {"fp16 except": ["layer_norm"]}])
    assert [recipe for entry, recipe in excepted.pairs if entry.name == "roof"] == ["fp16"]
    for part in (spec.for_device(emulated=True), SweepFilter(models=["conv"]).apply(spec)):
        assert "roof" not in {each.cell.model for each in planned(part)}


def test_pte_files_are_chosen_as_is_and_recipes_leave_them_out(tmp_path: Path) -> None:
    (tmp_path / "a.pte").touch()
    spec = a_spec(models=["conv", {"name": "a", "pte": str(tmp_path / "a.pte")}])
    chosen = {precision: SweepFilter(precisions=[precision]).apply(spec).pairs for precision in ("fp16", "as_is")}
    assert {name: [(model.name, recipe) for model, recipe in pairs] for name, pairs in chosen.items()} == {
        "fp16": [("conv", "fp16")],
        "as_is": [("a", "as_is")],
    }


@pytest.mark.parametrize(
    ("only", "sentence"),
    [
        ({"models": ["cnov"]}, "--model cnov: the sweep smoke has no such model; it has linear, conv; did"),
        ({"precisions": ["int8_static"]}, "--precision int8_static: the sweep smoke has no such precision; it has"),
        ({"variants": ["sme2"]}, "--variant sme2: the sweep smoke has no such variant; it has sme2_on, sme1, sme2_off"),
    ],
)
def test_what_the_sweep_does_not_have_is_named_with_what_it_has(only: dict[str, list[str]], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        SweepFilter.model_validate(only).apply(a_spec())
    assert str(refused.value).startswith(sentence)


NIGHT = date(2026, 1, 2)


@pytest.mark.parametrize(
    ("there", "again", "number"),
    [
        ([], False, ""),
        ([], True, ""),
        (["smoke-2026-01-02"], False, ""),
        (["smoke-2026-01-02"], True, ".2"),
        (["smoke-2026-01-02", "smoke-2026-01-02.2"], False, ".2"),
        (["smoke-2026-01-02", "smoke-2026-01-02.10"], True, ".11"),
        (["smoke-2026-01-01", "smoke2-2026-01-02"], False, ""),
    ],
)
def test_the_newest_sweep_of_a_night_resumes_without_again(there: list[str], again: bool, number: str) -> None:
    assert sweep_night("smoke", NIGHT, there, again=again).sweep_id == f"smoke-2026-01-02{number}"


def test_a_night_in_the_future_is_refused() -> None:
    with pytest.raises(InputError, match=r"^the night 2026-01-03 is in the future \(today is 2026-01-02\); name today"):
        night_or_today(date(2026, 1, 3), today=NIGHT)


def test_a_night_before_executorch_is_refused_also_where_the_clock_of_the_machine_states_it() -> None:
    sentence = r"^the night 2023-09-30 is before 2023-10-01, the first release of ExecuTorch; name a later night"
    with pytest.raises(InputError, match=sentence):
        night_or_today(date(2023, 9, 30), today=NIGHT)
    with pytest.raises(InputError, match=sentence):
        sweep_night("smoke", date(2023, 9, 30), (), again=False)


@pytest.mark.parametrize("text", ["yesterday", "2026-02-30", "20260102", "2026-W01-5", ""])
def test_a_night_is_written_as_a_date_and_no_other_way(text: str) -> None:
    assert parse_night("2026-01-02") == NIGHT
    with pytest.raises(InputError, match="not a night; write a date such as 2026-11-01"):
        parse_night(text)
