"""Bundles whose content nobody expects: each is refused in one sentence, and the others are loaded."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tasks.load.load import load_paths, refusals
from tasks.rows.rows import Rows, bundle_rows
from tests.fixtures.warehouse import BundleMaker, edit, profile_of

GOOD = json.loads(profile_of(xnn_f32_gemm=3)["kernel_profile.json"])
KERNEL = {"name": "xnn_f32_gemm", "library": "libxnnpack.so", "samples": 3}


def refusal(maker: BundleMaker, poisoned: Path, *good: Path) -> str:
    """Load all bundles; return the sentence for the only one that is refused. The good ones are loaded."""
    result = maker.load()
    [(path, sentence)] = result.refused
    assert (path, result.loaded) == (poisoned, len(good))
    loaded = maker.ask("SELECT session_id FROM session_overview ORDER BY ALL")
    assert [session_id for (session_id,) in loaded] == [folder.name for folder in good]
    return sentence


def check_refusals(maker: BundleMaker, causes: dict[Path, str]) -> None:
    """Require that a load would refuse these bundles and no others, each in one sentence with its cause."""
    refused = dict(refusals([maker.bundles], lambda _: set()))
    assert refused.keys() == causes.keys()
    for folder, cause in causes.items():
        sentence = refused[folder]
        assert sentence.startswith(str(folder))
        assert cause in sentence
        assert ("\n" in sentence, len(sentence) < 500) == (False, True)


@pytest.mark.fault
def test_poisoned_kernel_profiles_are_refused(maker: BundleMaker) -> None:
    # given a sound profile, and profiles that were poisoned when they were measured
    maker.session([5], mode="profile", files=profile_of(xnn_f32_gemm=1))
    contents = {
        "[" * 100_000: "recursion limit",
        '{"kernels": ' * 100_000: "recursion limit",
        json.dumps(GOOD | {"kernels": [KERNEL | {"name": "lone \ud800"}]}): "hex escape",
        json.dumps(GOOD | {"kernels": [KERNEL | {"samples": 2**70}]}): "`kernels.0.samples`",
        json.dumps(GOOD | {"kernels": [KERNEL | {"samples": -3}]}): "`kernels.0.samples`",
        json.dumps(GOOD).replace('"samples": 3', '"samples": 1e400'): "samples`",
        json.dumps(GOOD).replace('"rate_hz": 1000', '"rate_hz": 1e400'): "`rate_hz`",
        json.dumps(GOOD | {"threads": 2**40}): "`threads`",
        json.dumps(GOOD | {"samples": "9" * 5000}): "`samples`",
        json.dumps(GOOD | {"kernels": {"name": "x"}}): "`kernels`",
        json.dumps({key: value for key, value in GOOD.items() if key != "dropped"}): "`dropped`",
        json.dumps([GOOD]): "Input should be an object",
        "": "EOF",
        "\xff\xfe": "expected value",
    }
    causes = {
        maker.session([6], mode="profile", files={"kernel_profile.json": content.encode("latin-1")}): cause
        for content, cause in contents.items()
    }
    # then each is refused with the file and the key
    check_refusals(maker, causes)


def test_poisoned_lists_of_selected_kernels_are_refused(maker: BundleMaker) -> None:
    contents = ("[" * 100_000, '{"selected": [3], "unnamed": 0}', '{"selected": [], "unnamed": -1}')
    folders = [
        maker.session([6], mode="selected", files={"selected_kernels.json": content.encode()}) for content in contents
    ]
    check_refusals(maker, dict.fromkeys(folders, "/selected_kernels.json: not a list of selected kernels ("))


@pytest.mark.fault
def test_poisoned_statistics_are_refused(maker: BundleMaker) -> None:
    # given a sound bundle, and bundles with statistics that json.dumps could not write
    maker.session([5])
    contents = {
        '{"load_ns": "fast"}': "`stats.load_ns`",
        f'{{"load_ns": {2**70}}}': "`stats.load_ns`",
        '{"load_ns": 1.5}': "`stats.load_ns`",
        '{"load_ns": NaN}': "`stats.load_ns`",
        '{"load_ns": true}': "`stats.load_ns`",
        '{"peak_memory_bytes": [1]}': "`stats.peak_memory_bytes`",
        f'{{"threads_used": {2**40}}}': "`stats.threads_used`",
        '{"threads_used": "2"}': "`stats.threads_used`",
        '{"sme2_reported": "perhaps"}': "`stats.sme2_reported`",
        '{"sme2_hardware": 2}': "`stats.sme2_hardware`",
        '{"a": ' * 100_000: "recursion limit",
        '{"runner_version": "\\ud800"}': "hex escape",
    }
    causes = {}
    for stats, cause in contents.items():
        folder = maker.session([6])
        edit(folder, stats="here")
        record = folder / "session.json"
        record.write_text(record.read_text().replace('"here"', stats), encoding="utf-8")
        causes[folder] = cause
    # then each is refused with the key
    check_refusals(maker, causes)


@pytest.mark.fault
def test_values_that_fit_no_column_are_refused_before_the_warehouse_sees_them(maker: BundleMaker) -> None:
    # given a sound bundle, and bundles with such a value, written as if by another program
    maker.session([5])
    accuracy = {"output": 2**31, "max_abs_error": 0.0, "max_rel_error": 0.0, "nonfinite_mismatches": 0}
    values: list[dict[str, Any]] = [
        {"threads": 2**40},
        {"attempt": 2**31},
        {"exit_code": 2**40, "status": "failed"},
        {"model__seed": 2**64},
        {"model__pte_bytes": 2**63},
        {"model__delegated": [{"operator": "add", "count": 2**63}]},
        {"model__delegated": [{"operator": "add", "count": "many"}]},
        {"model__portable": [{"count": 1}]},
        {"device__facts": {"cores": 2**31}},
        {"device__facts": {"memory_bytes": 2**63}},
        {"accuracy": [accuracy]},
        {"conditions": {"before": {"free_disk_bytes": 2**63}, "after": None}},
        {"started_at": "yesterday"},
        {"ended_at": "0001-01-01T00:00:00+14:00"},
        {"sweep": {"sweep_id": "smoke-2026-11-20", "name": "smoke", "night": "2026-02-30"}},
    ]
    folders = []
    for changes in values:
        folders.append(maker.session([6]))
        edit(folders[-1], **changes)
    # then each is refused when it is read
    check_refusals(maker, dict.fromkeys(folders, "does not match its schema"))


@pytest.mark.fault
@pytest.mark.parametrize(("ahead", "is_refused"), [(timedelta(hours=23), False), (timedelta(hours=25), True)])
def test_sessions_of_the_future_are_refused_by_the_load(maker: BundleMaker, ahead: timedelta, is_refused: bool) -> None:
    # given a sound bundle, and one of a machine whose clock is about a day ahead
    good, moment = maker.session([5]), datetime.now(UTC) + ahead
    early = maker.session([6], started_at=moment.isoformat(), ended_at=moment.isoformat())
    # when they are loaded, then only a clock that is more than a day ahead is refused, with both times
    if not is_refused:
        assert maker.load().loaded == 2
        return
    sentence = refusal(maker, early, good)
    assert sentence.startswith(f"{early}: its session ended at {moment:%Y-%m-%d %H:%M} UTC, but now it is ")
    assert sentence.endswith(" UTC; set the clock that is wrong, then measure or load again")
    assert [path for path, _ in refusals([maker.bundles], lambda _: set())] == [early]


@pytest.mark.fault
def test_an_unforeseen_error_refuses_one_bundle_only(maker: BundleMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a bundle whose log makes the parser of logs fail
    good = maker.session([5], mode="trace", files={"stderr.txt": b"fine"})
    bad = maker.session([6], mode="trace", files={"stderr.txt": b"bad"})

    def fail_on_bad(log: Path) -> object:
        if log.read_bytes() == b"bad":
            raise ZeroDivisionError("division\nby zero")
        return Counter[str]()

    monkeypatch.setattr("tasks.rows.kernels.selected_kernels", fail_on_bad)
    # when both are loaded, then one is refused and the other is loaded
    assert refusal(maker, bad, good) == (
        f"{bad}: cannot be loaded (ZeroDivisionError: division by zero); report this error and measure again"
    )


@pytest.mark.fault
@pytest.mark.parametrize(
    ("value", "cause"), [(2**40, "value 1099511627776 can't be cast"), (2**70, "too large"), ("\ud800", "surrogates")]
)
def test_rows_that_the_warehouse_refuses_keep_no_other_out(
    maker: BundleMaker, monkeypatch: pytest.MonkeyPatch, value: object, cause: str
) -> None:
    # given a bundle whose rows do not fit, although they passed the check when they were read
    good, bad = maker.session([5]), maker.session([6])

    def read(folder: Path) -> Rows:
        rows = bundle_rows(folder)
        return replace(rows, session=rows.session | {"threads": value}) if folder == bad else rows

    monkeypatch.setattr("tasks.load.parse.bundle_rows", read)
    # when both are loaded in one transaction, then one is refused and the other is loaded
    sentence = refusal(maker, bad, good)
    assert sentence.startswith(f"{bad}: the warehouse refused its rows (")
    assert cause in sentence


@pytest.mark.fault
def test_a_nested_record_is_refused_while_sessions_are_forgotten(maker: BundleMaker) -> None:
    nested = maker.session([5])
    (nested / "session.json").write_text("[" * 100_000, encoding="utf-8")
    result = load_paths([maker.bundles], maker.warehouse, forgotten={"0" * 16})
    [(path, sentence)] = result.refused
    assert path == nested
    assert "recursion limit" in sentence


def test_a_damaged_session_can_be_forgotten_by_its_id(maker: BundleMaker) -> None:
    # given a bundle whose session.json cannot be read any more
    damaged = maker.session([5])
    (damaged / "session.json").write_text("{", encoding="utf-8")
    # when its id is forgotten, then a load leaves it out without naming it again
    result = load_paths([maker.bundles], maker.warehouse, forgotten={damaged.name})
    assert (result.loaded, result.forgotten, result.refused) == (0, 1, [])
