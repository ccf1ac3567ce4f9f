"""`etfarm warehouse import-kit`: results of the profiling kit become bundles that state only what it recorded."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devices.untrusted import sanitize_line
from tasks.bundle.record import SessionRecord
from tasks.store.folder import read_records
from tests.fixtures.command import DataFolder, Etfarm
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
        for record in read_records(sweep.parent, sweep.name):
            assert record.imported
            found[record.imported.experiment] = record
    return found


def test_results_of_the_kit_are_loaded_and_compared(etfarm: Etfarm, kit: KitFolder, data: DataFolder) -> None:
    # given two experiments and a trace of the kit, imported and loaded
    kit.trace("mac_sme2_on_trace")
    code, printed = etfarm("warehouse", "import-kit", kit.write())
    assert (code, "3 bundles written" in printed, "0 already stored" in printed) == (0, True, True), printed
    assert etfarm("warehouse", "load")[1] == "3 loaded, 0 already in the warehouse, 0 refused\n"
    # then each experiment is a session whose latency leaves the cold run out
    rows = data.ask("SELECT model, precision, variant, threads, median_ms, runs FROM session_latency ORDER BY variant")
    assert rows == [("toy_cnn", "fp16", "sme2_off", 1, 4.2, 2), ("toy_cnn", "fp16", "sme2_on", 1, 2.1, 2)]
    assert data.ask("SELECT speedup FROM sme2_speedup") == [(pytest.approx(2.0),)]
    # and the trace has selected kernels, and no latency
    kernels = data.ask("SELECT kernel, evidence, weight FROM kernel_use ORDER BY weight DESC LIMIT 1")
    assert kernels == [("xnn_pf32_gemm_minmax_ukernel_1x32__neonsme2", "selected", 2)]


def test_what_the_kit_does_not_record_stays_empty(etfarm: Etfarm, kit: KitFolder, tmp_path: Path) -> None:
    etfarm("warehouse", "import-kit", kit.write())
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
    etfarm("warehouse", "import-kit", folder)
    # when they are imported again, and from a copy with other times
    assert "0 bundles written" in etfarm("warehouse", "import-kit", folder)[1]
    copy = shutil.copytree(folder, tmp_path / "copy")
    for path in copy.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert "(nothing new), 2 already stored" in etfarm("warehouse", "import-kit", copy)[1]


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
    printed = etfarm("warehouse", "import-kit", kit.write())[1]
    # then the session has failed with the reason, and the ETDump of the other run is not in its bundle
    record = records(tmp_path)["mac_sme2_on"]
    assert (record.status, record.reason_code) == ("failed", code)
    assert record.reason
    assert record.reason.startswith(reason)
    assert record.reason in printed
    assert list(record.files) == ["stdout.txt"]


def test_a_result_whose_operators_contradict_its_experiment_is_invalid(etfarm: Etfarm, tmp_path: Path) -> None:
    kit = KitFolder(tmp_path / "kit")
    kit.timing("mac_sme2_off", [(9_000_000, ON), (2_000_000, ON)])
    etfarm("warehouse", "import-kit", kit.write())
    record = records(tmp_path)["mac_sme2_off"]
    assert (record.status, record.reason_code) == ("invalid", "variant")


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
    code, printed = etfarm("warehouse", "import-kit", prepare(kit))
    assert (code, printed.count("\n")) == (2, 1), printed
    assert sentence in printed
    assert sorted((tmp_path / "var").iterdir()) == before


def test_results_without_any_configuration_are_read_from_their_names(
    etfarm: Etfarm, kit: KitFolder, tmp_path: Path
) -> None:
    code, printed = etfarm("warehouse", "import-kit", kit.output, "--device", "mac-m4")
    assert (code, "(2 succeeded)" in printed) == (0, True), printed
    record = records(tmp_path)["mac_sme2_on"]
    assert (record.device.name, record.model.name) == ("mac-m4", "toy_cnn")
    assert record.imported
    assert record.imported.moment_is == "modification time of the files"


def test_a_precision_that_the_user_states_is_used(etfarm: Etfarm, kit: KitFolder, tmp_path: Path) -> None:
    assert etfarm("warehouse", "import-kit", unknown_precision(kit), "--precision", "int8_static")[0] == 0
    assert records(tmp_path)["mac_sme2_on"].model.precision == "int8_static"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--precision", "int4"], "--precision int4: unknown precision; use one of fp32"),
        (["--device", "a\x1b/b"], "--device a\ufffd/b: a device's name consists of letters"),
    ],
)
def test_an_option_with_a_wrong_value_is_one_sentence(
    etfarm: Etfarm, kit: KitFolder, words: list[str], sentence: str
) -> None:
    code, printed = etfarm("warehouse", "import-kit", kit.write(), *words)
    assert (code, printed.startswith(f"etfarm: {sentence}")) == (2, True), printed


def replaced(path: Path, make: Callable[[Path], Any]) -> None:
    path.unlink()
    make(path)


def holes(size: int) -> Callable[[Path], None]:
    """Make a file of this size that uses no disk."""

    def make(path: Path) -> None:
        path.touch()
        os.truncate(path, size)

    return make


@pytest.mark.fault
@pytest.mark.parametrize(
    ("ending", "make", "cause"),
    [
        (".etdump", os.mkfifo, "is not a regular file; move it away"),
        ("_latency.log", os.mkfifo, "is not a regular file; move it away"),
        (".etdump", lambda path: path.symlink_to("/dev/zero"), "is a link; copy the file in its place"),
        (".etdump", holes(30 << 30), f"has {30 << 30} bytes; the limit is {256 << 20}"),
        ("_latency.log", holes(2 << 30), f"has {2 << 30} bytes; the limit is {16 << 20}"),
    ],
)
def test_a_file_that_cannot_be_read_leaves_only_its_result_out(
    etfarm: Etfarm, kit: KitFolder, tmp_path: Path, ending: str, make: Callable[[Path], Any], cause: str
) -> None:
    kit.write()
    path = kit.output / f"{kit.model}_mac_sme2_off_t1{ending}"
    replaced(path, make)
    code, printed = etfarm("warehouse", "import-kit", kit.root)
    assert (code, "1 bundles written" in printed) == (1, True), printed
    assert printed.endswith(f"left out: {path}: {cause}\n")
    assert list(records(tmp_path)) == ["mac_sme2_on"]


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("other_t1.log", "no configuration or manifest states its model; copy the kit's JSON beside it"),
        ("toy_cnn_xnnpack_fp16_mac_sme2_on_t0.log", "`_t0` in its name is not a number of threads; rename it"),
        (f"toy_fp16_mac_sme2_on_{'x' * 190}_t1.log", "not an experiment of the kit (`name`: 'mac_sme2_on_x"),
        ("toy_fp16_mac_sme2_on\x1b_t1.log", "its name has characters that cannot be shown; rename it"),
    ],
)
def test_an_unknown_result_is_left_out_and_named(
    etfarm: Etfarm, kit: KitFolder, tmp_path: Path, name: str, cause: str
) -> None:
    kit.write()
    (kit.output / name).touch()
    code, printed = etfarm("warehouse", "import-kit", kit.root)
    assert (code, "2 bundles written" in printed) == (1, True), printed
    assert printed.count("left out: ") == 1
    assert f"{sanitize_line(kit.output / name)}: {cause}" in printed
    # and without the others, nothing is imported
    for path in kit.output.glob(f"{kit.model}_*"):
        if path.name != name:
            path.unlink()
    code, printed = etfarm("warehouse", "import-kit", kit.root)
    assert (code, printed.count("\n"), cause in printed) == (2, 1, True), printed


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ('"runs": 3', '"runs": 0', "`experiments.0.runs`: Input should be greater than or equal to 1"),
        ('"runs": 3', '"runs": 2147483648', "`experiments.0.runs`: Input should be less than or equal to 2147483647"),
        ('"runs": 3', '"runs": "5"', "`experiments.0.runs`: Input should be a valid integer"),
        ('"runs": 3', f'"runs": {"9" * 5000}', "not valid JSON (Exceeds the limit"),
        ('"runs": 3', f'"runs": {"[" * 100_000}', "not valid JSON (maximum recursion depth exceeded"),
        ('"mac_sme2_on"', '"mac/sme2_on"', "`experiments.0.name`: 'mac/sme2_on' is not the name of a file or folder"),
        ('_fp16.pte"', '_fp16.pte\\nx: 1"', "`model`: must be a line of at most 1000 characters"),
        ('_fp16.pte"', f'{"x" * 100}.pte"', "`model`: must be the path of a .pte file whose name has 1 to 100 bytes"),
    ],
)
def test_a_configuration_with_a_wrong_value_is_refused_with_its_key(
    etfarm: Etfarm, kit: KitFolder, tmp_path: Path, old: str, new: str, cause: str
) -> None:
    # given a configuration in which a value is replaced
    config = kit.write(manifest=False) / "my_run.json"
    config.write_text(config.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    code, printed = etfarm("warehouse", "import-kit", kit.root)
    assert (code, printed.count("\n")) == (2, 1), printed
    assert printed.startswith(f"etfarm: {config}: not ")
    assert cause in printed
    assert printed.endswith("; correct it or move it away\n")
    assert not (tmp_path / "var" / "bundles").exists()


@pytest.mark.parametrize(
    ("moment", "night"),
    [
        ("9999-99-99", None),
        ("0001-01-01", None),
        ("9999-12-31T23:59:59-12:00", None),
        ("2023-09-30T23:59:59+00:00", None),
        ("2023-10-01T00:00:00+00:00", "2023-10-01"),
        ("2023-10-01T00:00:00+01:00", None),
        ("2099-12-31T23:59:59+00:00", None),
        ("2026-01-20", "2026-01-20"),
    ],
)
def test_a_manifest_states_a_time_in_which_something_was_measured(
    etfarm: Etfarm, kit: KitFolder, tmp_path: Path, moment: str, night: str | None
) -> None:
    manifest = kit.write() / "runs/mac/manifest.json"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("2026-01-20T10:00:00+00:00", moment))
    code, printed = etfarm("warehouse", "import-kit", kit.root)
    if night is None:
        form = "a time such as 2026-01-20T10:00:00+00:00, from 2023-10-01 on and not in the future"
        cause = f"not a configuration of the kit (`generated_at`: must be {form})"
        assert (code, printed) == (2, f"etfarm: {manifest}: {cause}; correct it or move it away\n")
    else:
        assert (code, records(tmp_path)["mac_sme2_on"].sweep.night) == (0, night)


def test_a_result_that_the_warehouse_would_refuse_is_a_failed_session(
    etfarm: Etfarm, kit: KitFolder, tmp_path: Path
) -> None:
    # given an ETDump whose executions take no time
    kit.timing("mac_sme2_on_x", [(9_000_000, ON), (0, {}), (0, {})])
    code, printed = etfarm("warehouse", "import-kit", kit.write())
    assert (code, "(2 succeeded, 1 failed)" in printed) == (0, True), printed
    # then its session has failed with the reason, without the ETDump
    record = records(tmp_path)["mac_sme2_on_x"]
    assert (record.status, record.reason_code, list(record.files)) == ("failed", "not_loadable", ["stdout.txt"])
    assert (record.reason or "").startswith("the warehouse would refuse it: model.etdump: ")
