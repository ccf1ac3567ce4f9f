"""Bundles whose content nobody expects: each is refused in one sentence, and the others are loaded."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tasks.load.load import load_paths, refusals
from tasks.rows.rows import Rows, bundle_rows
from tests.fixtures.warehouse import BundleMaker, counts_of, edit, profile_of

GOOD = json.loads(profile_of(xnn_f32_gemm=3)["kernel_profile.json"])
KERNEL = {"name": "xnn_f32_gemm", "library": "libxnnpack.so", "samples": 3}


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
def test_poisoned_kernel_profiles_and_lists_are_refused(maker: BundleMaker) -> None:
    # given a sound profile, and profiles that were poisoned when they were measured
    maker.session([5], mode="profile", files=profile_of(xnn_f32_gemm=1))
    profiles = {
        "[" * 100_000: "recursion limit",
        '{"kernels": ' * 100_000: "recursion limit",
        json.dumps(GOOD | {"kernels": [KERNEL | {"name": "lone \ud800"}]}): "hex escape",
        json.dumps(GOOD | {"kernels": [KERNEL | {"samples": 2**70}]}): "`kernels.0.samples`",
        json.dumps(GOOD | {"kernels": [KERNEL | {"samples": -3}]}): "`kernels.0.samples`",
        json.dumps(GOOD).replace('"rate_hz": 1000', '"rate_hz": 1e400'): "`rate_hz`",
        json.dumps(GOOD | {"threads": 2**40}): "`threads`",
        json.dumps(GOOD | {"samples": "9" * 5000}): "`samples`",
        json.dumps({key: value for key, value in GOOD.items() if key != "dropped"}): "`dropped`",
        json.dumps([GOOD]): "Input should be an object",
        "": "EOF",
        "\xff\xfe": "expected value",
    }
    counted = counts_of({"gemm": (3, 9)})["kernel_counts.json"].decode()
    lists = ("[" * 100_000, counted.replace(": 3,", ": -3,"), counted.replace("12.5", "NaN"))
    causes = {}
    for content, cause in (*profiles.items(), *dict.fromkeys(lists, "not a file of counted kernels (").items()):
        mode, name = ("counts", "kernel_counts") if "counted" in cause else ("profile", "kernel_profile")
        causes[maker.session([6], mode=mode, files={f"{name}.json": content.encode("latin-1")})] = cause
    other = counts_of({"gemm": (3, 9)}, executions=1)
    causes[maker.session([6], mode="counts", files=other)] = "counts 1 executions instead of 2"
    # then each is refused with the key
    check_refusals(maker, causes)


@pytest.mark.fault
def test_poisoned_statistics_and_values_that_fit_no_column_are_refused_before_the_warehouse_sees_them(
    maker: BundleMaker,
) -> None:
    # given a sound bundle, and bundles with values that json.dumps could not write, or as of another program
    maker.session([5])
    statistics = {
        '{"load_ns": "fast"}': "`stats.load_ns`",
        f'{{"load_ns": {2**70}}}': "`stats.load_ns`",
        '{"load_ns": NaN}': "`stats.load_ns`",
        '{"load_ns": true}': "`stats.load_ns`",
        f'{{"end_anonymous_bytes": {2**54}}}': "`stats.end_anonymous_bytes`",
        '{"peak_memory_bytes": [1]}': "`stats.peak_memory_bytes`",
        f'{{"threads_used": {2**40}}}': "`stats.threads_used`",
        '{"sme2_reported": "perhaps"}': "`stats.sme2_reported`",
        '{"a": ' * 100_000: "recursion limit",
        '{"runner_version": "\\ud800"}': "hex escape",
    }
    accuracy = {"output": 2**31, "max_abs_error": 0.0, "max_rel_error": 0.0, "nonfinite_mismatches": 0}
    values: list[dict[str, Any]] = [
        {"attempt": 2**31},
        {"exit_code": 2**40, "status": "failed"},
        {"model__seed": 2**64},
        {"model__delegated": [{"operator": "add", "count": 2**63}]},
        {"model__portable": [{"count": 1}]},
        {"device__facts": {"cores": 2**31}},
        {"accuracy": [accuracy]},
        {"conditions": {"before": {"free_disk_bytes": 2**63}, "after": None}},
        {"started_at": "yesterday"},
        {"ended_at": "0001-01-01T00:00:00+14:00"},
        {"sweep": {"sweep_id": "smoke-2026-11-20", "name": "smoke", "night": "2026-02-30"}},
    ]
    causes = {}
    for stats, cause in statistics.items():
        edit(folder := maker.session([6]), stats="here")
        record = folder / "session.json"
        record.write_text(record.read_text().replace('"here"', stats), encoding="utf-8")
        causes[folder] = cause
    for changes in values:
        edit(folder := maker.session([6]), **changes)
        causes[folder] = "does not match its schema"
    # then each is refused when it is read
    check_refusals(maker, causes)


@pytest.mark.fault
def test_a_bundle_that_nobody_foresaw_keeps_no_other_out(maker: BundleMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a sound bundle, those of a machine whose clock is less and more than a day ahead
    good = maker.session([5])
    moments = [datetime.now(UTC) + timedelta(hours=hours) for hours in (23, 25)]
    soon, early = (maker.session([6], started_at=moment.isoformat(), ended_at=moment.isoformat()) for moment in moments)
    causes = {early: f"its session ended at {moments[1]:%Y-%m-%d %H:%M} UTC, but now it is "}
    # one that makes its reader fail, and those whose rows do not fit although they passed the check
    broken = maker.session([5])
    causes[broken] = "cannot be loaded (ZeroDivisionError: division by zero)"
    rows: dict[Path, object] = {}
    for value, cause in (2**40, "value 1099511627776 can't be cast"), (2**70, "too large"), ("\ud800", "surrogates"):
        rows[folder := maker.session([6])] = value
        causes[folder] = cause

    def read(folder: Path) -> Rows:
        if folder == broken:
            raise ZeroDivisionError("division\nby zero")
        read = bundle_rows(folder)
        return replace(read, session=read.session | {"threads": rows[folder]}) if folder in rows else read

    monkeypatch.setattr("tasks.load.parse.bundle_rows", read)
    # when all are loaded in one transaction, then each of these is refused in a sentence and the others are loaded
    result = maker.load()
    refused = dict(result.refused)
    assert refused.keys() == causes.keys()
    for folder, cause in causes.items():
        assert cause in refused[folder]
        assert (refused[folder].startswith(f"{folder}: "), "\n" in refused[folder]) == (True, False)
    assert sum("the warehouse refused its rows (" in sentence for sentence in refused.values()) == 3
    loaded = maker.ask("SELECT session_id FROM session_overview ORDER BY ALL")
    assert loaded == [(good.name,), (soon.name,)]


@pytest.mark.fault
def test_a_damaged_session_can_be_forgotten_by_its_id(maker: BundleMaker) -> None:
    # given bundles whose session.json cannot be read any more
    nested, damaged = maker.session([5]), maker.session([5])
    (nested / "session.json").write_text("[" * 100_000, encoding="utf-8")
    (damaged / "session.json").write_text("{", encoding="utf-8")
    # when the id of one is forgotten, then a load leaves it out without naming it again
    result = load_paths([maker.bundles], maker.warehouse, forgotten={damaged.name})
    [(path, sentence)] = result.refused
    assert (path, result.loaded, result.forgotten) == (nested, 0, 1)
    assert "recursion limit" in sentence
