"""`etfarm kit`: the kit's results become bundles that pretend nothing, and a sweep becomes the kit's CSV files."""

import csv
import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.cli.main import main
from tasks.bundle.record import SessionRecord
from tasks.measure.spec import SweepSpec
from tasks.store.find import bundles_of
from tests.fixtures.kit import TRACE_LOG, KitFolder
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, MEAN, BundleMaker

SWEEP_ID = "kit-toy-cnn-2026-01-20"
ON = {CONVOLUTION_SME2: 1_000_000, MEAN: 300_000}
OFF = {CONVOLUTION: 3_000_000, MEAN: 300_000}
Etfarm = Callable[..., tuple[int, str]]


@pytest.fixture
def etfarm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Etfarm:
    """Run `etfarm` with these words; return its exit code and what it printed."""

    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["etfarm", *map(str, words), "--var", str(tmp_path / "var")])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out + printed.err

    return run


@pytest.fixture
def kit(tmp_path: Path) -> KitFolder:
    """Two experiments of three runs each, of which the first is cold."""
    kit = KitFolder(tmp_path / "kit")
    kit.timing("mac_sme2_on", [(9_000_000, ON), (2_000_000, ON), (2_200_000, ON)])
    kit.timing("mac_sme2_off", [(9_500_000, OFF), (4_000_000, OFF), (4_400_000, OFF)])
    return kit


def records(tmp_path: Path) -> dict[str, SessionRecord]:
    """The imported sessions by experiment."""
    found = {}
    for sweep in (tmp_path / "var" / "bundles").iterdir():
        for record in bundles_of(sweep.parent, sweep.name):
            assert record.imported
            found[record.imported.experiment] = record
    return found


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_results_of_the_kit_are_loaded_and_compared(etfarm: Etfarm, kit: KitFolder) -> None:
    # given a results folder of the kit, imported and loaded
    code, printed = etfarm("kit", "import", kit.write())
    assert code == 0, printed
    assert "2 bundles written" in printed
    assert "(2 succeeded), 0 already there" in printed
    assert etfarm("load")[1] == "2 loaded, 0 already in the warehouse, 0 refused\n"
    # then each experiment is a session whose latency leaves the cold run out
    query = "SELECT model, precision, variant, threads, median_ms, runs FROM session_latency ORDER BY variant"
    assert json.loads(etfarm("sql", query, "--format", "json")[1]) == [
        {"model": "toy_cnn", "precision": "fp16", "variant": variant, "threads": 1, "median_ms": median, "runs": 2}
        for variant, median in (("sme2_off", 4.2), ("sme2_on", 2.1))
    ]
    [speedup] = json.loads(etfarm("sql", "SELECT speedup FROM sme2_speedup", "--format", "json")[1])
    assert speedup == {"speedup": pytest.approx(2.0)}


def test_what_the_kit_does_not_record_stays_empty(etfarm: Etfarm, kit: KitFolder, tmp_path: Path) -> None:
    etfarm("kit", "import", kit.write())
    record = records(tmp_path)["mac_sme2_off"]
    # what is stated
    assert record.sweep.sweep_id == SWEEP_ID
    assert (record.device.facts.os, record.device.facts.platform) == ("macos", "macos-arm64")
    assert record.runner
    assert record.runner.versions == {"executorch": "abc123"}
    assert record.imported
    assert record.imported.source == "sme-executorch-profiling"
    assert record.imported.stated_by == ["my_run.json", "runs/mac/manifest.json"]
    assert record.imported.moment_is == "generated_at of the manifest"
    # what is not
    assert record.device.name.startswith("unknown-")
    assert record.device.facts.model is None
    assert record.conditions == {"before": None, "after": None}
    assert (record.model.seed, record.model.pte_sha256) == (None, None)
    assert record.runner.runner_sha256 == "unknown: executorch/cmake-out/mac-arm64/executor_runner"
    assert record.runner.provenance
    assert record.runner.provenance.endswith("runner executorch/cmake-out/mac-arm64-sme2-off/executor_runner")
    assert (record.stats, record.wall_s, record.exit_code) == (None, None, None)


def test_importing_twice_and_from_a_copy_doubles_nothing(etfarm: Etfarm, kit: KitFolder, tmp_path: Path) -> None:
    # given results without a manifest, whose night is that of their files
    folder = kit.write(manifest=False)
    etfarm("kit", "import", folder)
    # when they are imported again, and from a copy with other times
    assert "0 bundles written" in etfarm("kit", "import", folder)[1]
    copy = tmp_path / "copy"
    for path in [each for each in sorted(folder.rglob("*")) if each.is_file()]:
        target = copy / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
        os.utime(target, (1_700_000_000, 1_700_000_000))
    assert "(nothing new), 2 already there" in etfarm("kit", "import", copy)[1]
    # then the warehouse has each once
    assert etfarm("load")[1].startswith("2 loaded, 0 already")
    assert etfarm("load")[1].startswith("0 loaded, 2 already")


@pytest.mark.parametrize(
    ("log", "runs", "code", "reason"),
    [
        ("x\nCommand failed with exit code -11\n", 3, "runner_crashed", "the runner was killed by signal 11"),
        ("x\nCommand failed with exit code 1\n", 3, "runner_failed", "the runner exited with code 1"),
        ("Segmentation fault (core dumped)\n", 3, "runner_crashed", "the runner crashed: Segmentation fault"),
        ("", 100, "stale_etdump", "the ETDump contains 3 executions instead of 100: it is of another run"),
        ("executed successfully 3 time(s) in 80.0 ms", 3, "stale_etdump", "the log reports 80 ms, the ETDump 13.2 ms"),
        ("executed successfully 4 time(s) in 13.3 ms", 3, "stale_etdump", "the log reports 4 executions, the ETDump"),
    ],
)
def test_a_crash_that_the_kit_reports_as_success_is_a_failed_session(
    etfarm: Etfarm, tmp_path: Path, log: str, runs: int, code: str, reason: str
) -> None:
    # given the ETDump of an earlier run beside the log of a crashed one, which the manifest calls ok
    kit = KitFolder(tmp_path / "kit")
    kit.timing("mac_sme2_on", [(9_000_000, ON), (2_000_000, ON), (2_200_000, ON)], log=log, runs=runs)
    # when it is imported
    printed = etfarm("kit", "import", kit.write())[1]
    # then the session has failed with the reason, and the ETDump of the other run is not in its bundle
    record = records(tmp_path)["mac_sme2_on"]
    assert (record.status, record.reason_code) == ("failed", code)
    assert record.reason
    assert record.reason.startswith(reason)
    assert record.reason in printed
    assert list(record.files) == ["stdout.txt"]
    assert etfarm("load")[1].startswith("1 loaded")
    assert etfarm("sql", "SELECT count(*) AS n FROM session_latency", "--format", "csv")[1] == "n\n0\n"


def test_a_result_whose_operators_contradict_its_experiment_is_invalid(etfarm: Etfarm, tmp_path: Path) -> None:
    kit = KitFolder(tmp_path / "kit")
    kit.timing("mac_sme2_off", [(9_000_000, ON), (2_000_000, ON)])
    etfarm("kit", "import", kit.write())
    record = records(tmp_path)["mac_sme2_off"]
    assert (record.status, record.reason_code) == ("invalid", "variant")


def test_a_trace_of_the_kit_shows_selected_kernels_and_no_latency(etfarm: Etfarm, tmp_path: Path) -> None:
    kit = KitFolder(tmp_path / "kit")
    kit.trace("mac_sme2_on_trace")
    etfarm("kit", "import", kit.write())
    etfarm("load")
    query = "SELECT kernel, evidence, weight FROM kernel_use ORDER BY weight"
    printed = etfarm("sql", query, "--format", "csv")[1]
    assert "xnn_pf32_gemm_minmax_ukernel_1x32__neonsme2,selected,2" in printed
    # and exported again it is the kit's table
    assert etfarm("kit", "export", SWEEP_ID, "-o", tmp_path / "csv")[0] == 0
    [path] = (tmp_path / "csv").iterdir()
    assert path.name.endswith("_trace_t1_kernels.csv")
    first, second = rows(path)
    assert {key: value for key, value in first.items() if key != "model_id"} == {
        "kernel_name": "xnn_pf32_gemm_minmax_ukernel_1x32__neonsme2",
        "category": "gemm",
        "count": "2",
        "dtype": "pf32",
        "xnn_op": "gemm",
        "variant": "minmax",
        "ukernel_shape": "1x32",
        "arch_chain": "neonsme2",
        "has_sme": "1",
        "has_sme2": "1",
    }
    assert (second["arch_chain"], second["has_sme"]) == ("asm_aarch64_neonfma_cortex_a75", "0")
    assert TRACE_LOG.count("sme2") == int(first["count"])


def test_a_configuration_becomes_a_sweep_file(etfarm: Etfarm, kit: KitFolder, tmp_path: Path) -> None:
    # given experiments with an option that has no counterpart here
    etfarm("kit", "import", kit.write(cpu_affinity="0x80"))
    # then the sweep file is valid, and its comments name what was not converted
    text = (tmp_path / "var" / "imports" / "kit-toy-cnn.yaml").read_text(encoding="utf-8")
    spec = SweepSpec.model_validate(yaml.safe_load(text))
    assert ([model.name for model in spec.models], spec.precisions, spec.threads) == (["toy_cnn"], ["fp16"], [1])
    assert (spec.variants, spec.executions, spec.warmup_executions) == (["sme2_on", "sme2_off"], 5, 2)
    assert "# not converted: cpu_affinity 0x80 of mac_sme2_on" in text
    assert "#   mac_sme2_off t1 with mac_sme2_on t1" in text


def test_an_exported_sweep_has_the_figures_of_the_warehouse(etfarm: Etfarm, tmp_path: Path) -> None:
    # given a session of a warm-up run and three measured ones
    maker = BundleMaker(tmp_path / "var")
    runs = [(2_000_001, {CONVOLUTION: 1_500_000, MEAN: 300_000}), (2_000_005, {CONVOLUTION: 1_400_000, MEAN: 300_001})]
    folder = maker.session(runs)
    maker.session(status="failed", reason_code="device_lost", reason="phone: lost")
    # when its sweep is exported
    code, printed = etfarm("kit", "export", "smoke-2026-11-20", "-o", tmp_path / "csv")
    assert (code, printed) == (0, f"{tmp_path / 'csv'}: 2 files of smoke-2026-11-20\n")
    stem = f"toy_fp32_host_sme2_off_{folder.name}_t1"
    timeline = rows(tmp_path / "csv" / f"{stem}_exec_all_runs_timeline.csv")
    # then the runs are the measured ones, to the nanosecond
    executes = {row["run_index"]: row["duration_ms"] for row in timeline if row["name"] == "Method::execute"}
    assert executes == {"1": "2.000001", "2": "2.000005"}
    assert statistics.median(map(float, executes.values())) == pytest.approx(2.000003)
    # and every event has a backend, a share of its run, and a number that is the same in all runs
    by_name: dict[str, list[dict[str, str]]] = {}
    for row in timeline:
        by_name.setdefault(row["name"], []).append(row)
    assert {name: each[0]["delegate_backend"] for name, each in by_name.items()} == {
        CONVOLUTION: "XNNPACK",
        MEAN: "portable",
        "DELEGATE_CALL": "",
        "OPERATOR_CALL": "",
        "Method::execute": "",
    }
    assert all(len({row["node_id"] for row in each}) == 1 for each in by_name.values())
    assert float(by_name[CONVOLUTION][0]["pct_total"]) == pytest.approx(100 * 1_500_000 / 2_000_001, abs=1e-6)
    # and the statistics are per run
    stats = {row["name"]: row for row in rows(tmp_path / "csv" / f"{stem}_exec_ops_stats.csv")}
    assert stats["Convolution (NHWC, F32) IGEMM"]["total_ms"] == "1.450000"
    assert stats["Convolution (NHWC, F32) IGEMM"]["count"] == "1"
    assert float(stats["Method::execute"]["pct_total"]) == 100.0


def no_config(kit: KitFolder) -> Path:
    return kit.output


def unknown_precision(kit: KitFolder) -> Path:
    for path in sorted(kit.output.iterdir()):
        path.rename(path.with_name(path.name.replace("_fp16", "_q8")))
    kit.model = kit.model.replace("_fp16", "_q8")
    return kit.write()


def broken_config(kit: KitFolder) -> Path:
    (kit.write() / "my_run.json").write_text('{"model": 3, "experiments": [{"runs": "many"}]}', encoding="utf-8")
    return kit.root


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda kit: kit.root / "nothing", "nothing: no such folder; pass a results folder of the kit"),
        (lambda kit: (kit.root / "empty").mkdir() or kit.root / "empty", "contains no results of the kit"),
        (unknown_precision, "the precision of toy_cnn_xnnpack_q8 is not recorded; pass --precision, one of fp32, fp16"),
        (broken_config, "my_run.json: not a configuration of the kit"),
    ],
)
def test_a_folder_that_cannot_be_imported_is_answered_with_what_to_do(
    etfarm: Etfarm, kit: KitFolder, tmp_path: Path, prepare: Callable[[KitFolder], Any], sentence: str
) -> None:
    code, printed = etfarm("kit", "import", prepare(kit))
    assert (code, printed.count("\n")) == (2, 1), printed
    assert sentence in printed
    assert not (tmp_path / "var").exists()


def test_results_without_any_configuration_are_read_from_their_names(
    etfarm: Etfarm, kit: KitFolder, tmp_path: Path
) -> None:
    code, printed = etfarm("kit", "import", no_config(kit), "--device", "mac-m4")
    assert (code, "(2 succeeded)" in printed) == (0, True), printed
    record = records(tmp_path)["mac_sme2_on"]
    assert (record.device.name, record.model.name) == ("mac-m4", "toy_cnn")
    assert record.imported
    assert record.imported.moment_is == "modification time of the files"


def test_a_precision_that_the_user_states_is_used(etfarm: Etfarm, kit: KitFolder, tmp_path: Path) -> None:
    folder = unknown_precision(kit)
    assert "unknown precision; use one of fp32" in etfarm("kit", "import", folder, "--precision", "int4")[1]
    assert etfarm("kit", "import", folder, "--precision", "int8_static")[0] == 0
    assert records(tmp_path)["mac_sme2_on"].model.precision == "int8_static"


def test_an_unknown_sweep_is_answered_with_the_closest(etfarm: Etfarm, kit: KitFolder, tmp_path: Path) -> None:
    etfarm("kit", "import", kit.write())
    code, printed = etfarm("kit", "export", "kit-toy-cnn-2026-01-21", "-o", tmp_path / "csv")
    assert code == 2
    assert f"did you mean `{SWEEP_ID}`?" in printed
    assert not (tmp_path / "csv").exists()
