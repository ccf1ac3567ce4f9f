"""`etfarm kit`: the kit's results become bundles that pretend nothing."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.bundle.record import SessionRecord
from tasks.store.find import bundles_of
from tests.fixtures.command import Etfarm
from tests.fixtures.kit import KitFolder
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, MEAN

SWEEP_ID = "kit-toy-cnn-2026-01-20"
ON = {CONVOLUTION_SME2: 1_000_000, MEAN: 300_000}
OFF = {CONVOLUTION: 3_000_000, MEAN: 300_000}


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
    copy = shutil.copytree(folder, tmp_path / "copy")
    for path in copy.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert "(nothing new), 2 already there" in etfarm("kit", "import", copy)[1]
    # then the warehouse has each once
    assert etfarm("load")[1].startswith("2 loaded, 0 already")
    assert etfarm("load")[1].startswith("0 loaded, 2 already")


@pytest.mark.parametrize(
    ("log", "runs", "code", "reason"),
    [
        ("x\nCommand failed with exit code -11\n", 3, "runner_crashed", "the runner was killed by signal 11"),
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
    before = sorted((tmp_path / "var").iterdir())
    code, printed = etfarm("kit", "import", prepare(kit))
    assert (code, printed.count("\n")) == (2, 1), printed
    assert sentence in printed
    assert sorted((tmp_path / "var").iterdir()) == before


def test_results_without_any_configuration_are_read_from_their_names(
    etfarm: Etfarm, kit: KitFolder, tmp_path: Path
) -> None:
    code, printed = etfarm("kit", "import", kit.output, "--device", "mac-m4")
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
