"""The rows of one session before they get ids: every figure from its place in the bundle; without a warehouse."""

import json
from pathlib import Path
from typing import Any

from tasks.rows.kernels import kernel_names
from tasks.rows.rows import Rows, bundle_rows, loose_rows, read_session_id
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump
from tests.fixtures.warehouse import BundleMaker, counts_of, profile_of

COMMIT = {"author": "Ada", "id": "f" * 7, "subject": "Quantize"}
GEMM = "xnn_f32_gemm_minmax_ukernel_6x8__neonfma"
PACK = "kai_run_lhs_pack_f32p2vlx1_f32_sme"


def test_what_changes_a_session_is_in_its_row(maker: BundleMaker) -> None:
    stats = {"load_ns": 3, "peak_memory_bytes": 4096, "model_peak_memory_bytes": 5000, "threads_used": 2}
    stats |= {"sme2_hardware": True, "sme2_reported": False, "sme_hardware": False, "sme_reported": True}
    recorded: dict[str, Any] = {"started_at": "2026-11-20T03:00:00+02:00", "ended_at": "2026-11-20T03:00:09+02:00"}
    arm = {"purpose": "noise", "comparison": "c" * 16}
    source = {"commit": "f" * 40, "is_dirty": True, "author": "Ada", "branch": "main"}
    recorded |= {"arm": arm | {"side": "a"}, "sweep__source": source | {"commits": [COMMIT]}}
    rows = bundle_rows(maker.session([5, 6], stats=stats, repetition=3, **recorded))
    expected = {**stats, **arm, "arm": "a", "repetition": 3, "executions": 3, "warmup_executions": 1}
    expected |= {f"source_{name}": value for name, value in source.items()} | {"source_commits": json.dumps([COMMIT])}
    assert rows.session.items() >= expected.items()
    utc = ["2026-11-20 01:00:00", "2026-11-20 01:00:09"]
    assert [str(rows.session[name]) for name in ("started_at", "ended_at")] == utc
    assert rows.events == 3


def test_only_what_was_measured_for_its_time_belongs_to_a_series(maker: BundleMaker) -> None:
    cases: list[tuple[dict[str, Any], bool, bool]] = [
        ({}, True, True),
        ({"status": "failed"}, False, True),
        ({"mode": "numerics"}, False, False),
        ({"mode": "profile", "files": profile_of(memcpy=1)}, True, False),
        ({"sweep__on_demand": True}, True, False),
    ]
    for changes, has_runs, has_series in cases:
        rows = bundle_rows(maker.session([5], **changes))
        assert (rows.runs is not None, rows.series is not None) == (has_runs, has_series)
        assert (rows.session["etdump_sha256"] is not None) == has_runs
        assert rows.events == (2 if has_runs else 0)


SERIES: list[dict[str, Any]] = [
    {}, {"model__name": "another"}, {"model__seed": 1}, {"model__precision": "fp16"}, {"threads": 4},
    {"variant": "sme2_on"}, {"device__facts": {"model": "board", "build": "b2"}}, {"device__emulated": True},
    {"device__facts": {"model": "phone", "build": "b1"}},
]  # fmt: skip
SAME_SERIES: list[dict[str, Any]] = [
    {"device__name": "twin"}, {"model__pte_sha256": "p2"}, {"runner__runner_sha256": "r2"},
    {"device__facts": {"model": "board", "os_version": "b1"}},
]  # fmt: skip


def test_a_series_has_one_model_configuration_and_kind_of_device(maker: BundleMaker) -> None:
    def series(changes: dict[str, Any]) -> str:
        row = bundle_rows(maker.session([5], **changes)).series
        assert row is not None
        return str(row["series_id"])

    assert len({series(changes) for changes in SERIES}) == len(SERIES)
    assert {series(changes) for changes in SAME_SERIES} == {series({})}


def test_a_failed_export_is_in_the_series_of_its_delegate(maker: BundleMaker) -> None:
    case: dict[str, Any] = {"model__name": "toy@delegate=openvino"}
    measured = bundle_rows(maker.session([5], **case, model__delegate_calls=[(0, 0, "OpenvinoBackend")])).series
    failed = bundle_rows(maker.session(**case, status="failed", reason_code="export_failed", reason="no such operator"))
    assert failed.series == measured
    assert measured
    assert measured["backend"] == "openvino"


def kernels(rows: Rows) -> list[tuple[Any, ...]]:
    return [(row["evidence"], row["name"], row["library"], row["weight"]) for row in rows.details["kernel"]]


def test_kernels_come_from_the_evidence_of_their_mode(maker: BundleMaker) -> None:
    profile = bundle_rows(maker.session([5], mode="profile", files=profile_of(**{GEMM: 3, "memcpy": 2}, unresolved=4)))
    assert kernels(profile) == [
        ("executed", GEMM, "libxnnpack.so", 3),
        ("executed", "memcpy", "libxnnpack.so", 2),
        ("executed", None, "libxnnpack.so", 4),
    ]
    assert [row["operation"] for row in profile.details["kernel"]] == ["gemm", None, None]
    assert profile.details["kernel_profile"][0]["samples"] == 9
    # and an older profile has the number of samples without a name, not their libraries
    older = json.loads(profile_of(memcpy=2, unresolved=4)["kernel_profile.json"]) | {"unresolved_libraries": None}
    files = {"kernel_profile.json": json.dumps(older).encode()}
    assert kernels(bundle_rows(maker.session([5], mode="profile", files=files)))[1:] == [("executed", None, None, 4)]
    # and counted kernels have their calls and times, and those without a call are what the runner has
    counts = bundle_rows(
        maker.session([5], mode="counts", files=counts_of({GEMM: (6, 6000), PACK: (0, 0)}, executions=2))
    )
    assert [(row["evidence"], row["name"], row["weight"], row["ns"]) for row in counts.details["kernel"]] == [
        ("counted", GEMM, 6, 6000)
    ]
    [counted] = counts.details["kernel_counts"]
    assert (counted["executions"], counted["cost_ns_per_call"]) == (2, 12.5)
    assert [(each["name"], each["operation"]) for each in counted["compiled"]] == [(GEMM, "gemm"), (PACK, "lhs_pack")]
    # and the list of selected kernels of an older bundle counts each once
    listed = {"selected_kernels.json": json.dumps({"selected": [GEMM], "unnamed": 2}).encode()}
    selected = kernels(bundle_rows(maker.session([5], mode="selected", files=listed)))
    assert [row[:2] + row[3:] for row in selected] == [("selected", GEMM, 1), ("selected", None, 2)]
    # and the lines of all logs are added up
    line = f"Note (XNNPACK): Using gemm microkernel '{GEMM}'. (a, b.c:1)\n".encode()
    logs = {"stderr.txt": 2 * line, "stdout.txt": line, "other.txt": line}
    assert kernels(bundle_rows(maker.session([5], mode="trace", files=logs))) == [("selected", GEMM, None, 3)]


def test_a_session_is_checked_by_the_kernels_of_its_mode(tmp_path: Path) -> None:
    line = f"11-20 03:12:55.1 1 1 I XNNPACK : Using gemm microkernel '{GEMM}'".encode()
    for mode, name, content, names in (
        ("profile", "kernel_profile.json", profile_of(**{GEMM: 3}, unresolved=1)["kernel_profile.json"], [GEMM]),
        ("profile", "kernel_profile.json", b"{", []),
        ("counts", "kernel_counts.json", counts_of({GEMM: (3, 9), PACK: (0, 0)})["kernel_counts.json"], [GEMM]),
        ("counts", "kernel_counts.json", b"{", []),
        ("trace", "logcat.txt", line, [GEMM]),
        ("timing", "logcat.txt", line, []),
    ):
        (tmp_path / name).write_bytes(content)
        assert kernel_names(tmp_path, mode) == names


def test_a_loose_etdump_has_one_warm_up_and_an_id_of_its_content(tmp_path: Path) -> None:
    path, same = tmp_path / "a.etdump", tmp_path / "b.etdump"
    for each in (path, same):
        each.write_bytes(build_etdump([Run([Profile(METHOD, 0, 9)]), Run([Profile(METHOD, 0, 5)])]))
    rows = loose_rows(path)
    assert rows.is_loose
    assert (rows.session["executions"], rows.session["warmup_executions"]) == (2, 1)
    assert rows.session["session_id"] == read_session_id(path) == read_session_id(same)
    assert loose_rows(same).model["name"] == "b"
    # and an only execution is measured
    path.write_bytes(build_etdump([Run([Profile(METHOD, 0, 9)])]))
    assert loose_rows(path).session["warmup_executions"] == 0


def test_the_id_of_a_damaged_bundle_is_in_the_name_of_its_folder(tmp_path: Path) -> None:
    for name, session_id in (("0" * 16, "0" * 16), ("a" * 16 + "-2", "a" * 16), ("b" * 17, None), ("notes", None)):
        (tmp_path / name).mkdir()
        assert read_session_id(tmp_path / name) == session_id
