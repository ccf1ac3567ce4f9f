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

ON = {CONVOLUTION_SME2: 1_000_000, MEAN: 300_000}
OFF = {CONVOLUTION: 3_000_000, MEAN: 300_000}
NO_TIMES = ("9999-99-99", "9999-12-31T23:59:59-12:00", "2023-10-01T00:00:00+01:00", "2099-12-31T23:59:59+00:00")
TIME = "a time such as 2026-01-20T10:00:00+00:00, from 2023-10-01 on and not in the future"


@pytest.fixture
def kit(tmp_path: Path) -> KitFolder:
    """Two experiments of three runs each, of which the first is cold."""
    kit = KitFolder(tmp_path / "kit")
    kit.timing("mac_sme2_on", [(9_000_000, ON), (2_000_000, ON), (2_200_000, ON)])
    kit.timing("mac_sme2_off", [(9_500_000, OFF), (4_000_000, OFF), (4_400_000, OFF)])
    return kit


@pytest.fixture
def import_kit(etfarm: Etfarm) -> Etfarm:
    return lambda *words: etfarm("warehouse", "import-kit", *words)


def records(data: DataFolder) -> dict[str, SessionRecord]:
    """The imported sessions by experiment."""
    found = (record for sweep in data.bundles.iterdir() for record in read_records(data.bundles, sweep.name))
    return {record.imported.experiment: record for record in found if record.imported}


def with_model(kit: KitFolder, name: str) -> KitFolder:
    """The kit with another name of its model."""
    for path in sorted(kit.output.iterdir()):
        path.rename(path.with_name(path.name.replace(kit.model, name)))
    kit.model = name
    return kit


def test_what_the_kit_records_is_loaded_and_nothing_else(etfarm: Etfarm, kit: KitFolder, data: DataFolder) -> None:
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
    record = records(data)["mac_sme2_off"]
    assert record.runner
    assert record.imported
    assert record.sweep.sweep_id == "kit-toy-cnn-2026-01-20"
    assert (record.device.facts.os, record.device.facts.platform) == ("macos", "macos-arm64")
    assert record.runner.versions == {"executorch": "abc123"}
    assert record.imported.stated_by == ["my_run.json", "runs/mac/manifest.json"]
    assert record.imported.moment_is == "generated_at of the manifest"
    # and what it does not state stays empty
    assert (record.device.name.startswith("unknown-"), record.device.facts.model) == (True, None)
    assert record.conditions == {"before": None, "after": None}
    assert record.runner.runner_sha256 == "unknown: executorch/cmake-out/mac-arm64/executor_runner"
    unknown = (record.model.seed, record.model.pte_sha256, record.stats, record.wall_s, record.exit_code)
    assert unknown == (None,) * 5


def test_importing_twice_and_from_a_copy_doubles_nothing(import_kit: Etfarm, kit: KitFolder, tmp_path: Path) -> None:
    # given results without a manifest, whose night is that of their files
    folder = kit.write(manifest=False)
    import_kit(folder)
    # when they are imported again, and from a copy with other times
    assert "0 bundles written" in import_kit(folder)[1]
    copy = shutil.copytree(folder, tmp_path / "copy")
    for path in copy.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert "(nothing new), 2 already stored" in import_kit(copy)[1]


def test_a_success_of_the_kit_may_be_failed_or_invalid(import_kit: Etfarm, data: DataFolder, tmp_path: Path) -> None:
    kit, ran = KitFolder(tmp_path / "kit"), [(9_000_000, ON), (2_000_000, ON), (2_200_000, ON)]
    cases = {
        # given ETDumps of an earlier run beside the log of a crashed one
        "mac_sme2_on_a": ("x\nCommand failed with exit code -11\n", 3, "runner_crashed", "the runner was killed by"),
        "mac_sme2_on_b": ("", 100, "stale_etdump", "the ETDump contains 3 executions instead of 100"),
        "mac_sme2_on_c": ("executed successfully 3 time(s) in 80.0 ms", 3, "stale_etdump", "the log reports 80 ms"),
        "mac_sme2_on_d": ("executed successfully 4 time(s) in 13.3 ms", 3, "stale_etdump", "the log reports 4 "),
    }
    for name, (log, runs, _, _) in cases.items():
        kit.timing(name, ran, log=log, runs=runs)
    # given executions that take no time, and operators of the other variant
    kit.timing("mac_sme2_on_e", [(9_000_000, ON), (0, {}), (0, {})])
    kit.timing("mac_sme2_off", ran)
    cases["mac_sme2_on_e"] = ("", 3, "not_loadable", "the warehouse would refuse it: model.etdump: ")
    code, printed = import_kit(kit.write())
    assert (code, "(1 invalid, 5 failed)" in printed) == (0, True), printed
    # then the session has failed with the reason, and the ETDump of the other run is not in its bundle
    for name, (_, _, reason_code, reason) in cases.items():
        record = records(data)[name]
        assert (record.status, record.reason_code, list(record.files)) == ("failed", reason_code, ["stdout.txt"])
        assert (record.reason or "").startswith(reason)
        assert (record.reason or "") in printed
    assert (records(data)["mac_sme2_off"].status, records(data)["mac_sme2_off"].reason_code) == ("invalid", "variant")


@pytest.mark.parametrize(
    ("folder", "words", "sentence"),
    [
        (lambda kit: kit.root / "nothing", [], "nothing: no such folder; pass a results folder of the kit"),
        (lambda kit: kit.root / "runs", ["--precision", "int4"], "--precision int4: unknown precision; use one of fp"),
        (lambda kit: kit.write(), ["--device", "a\x1b/b"], "--device a\ufffd/b: a device's name consists of letters"),
        (lambda kit: with_model(kit, "toy_q8").write(), [], "the precision of toy_q8 is not recorded; pass --"),
    ],
)
def test_a_folder_that_cannot_be_imported_is_answered_with_what_to_do(
    import_kit: Etfarm, kit: KitFolder, tmp_path: Path, folder: Any, words: list[str], sentence: str
) -> None:
    before = sorted((tmp_path / "var").iterdir())
    code, printed = import_kit(folder(kit), *words)
    assert (code, printed.count("\n"), sentence in printed) == (2, 1, True), printed
    assert sorted((tmp_path / "var").iterdir()) == before


def test_names_and_options_suffice_without_a_configuration(
    import_kit: Etfarm, kit: KitFolder, data: DataFolder
) -> None:
    words = (with_model(kit, "toy_cnn_q8").output, "--device", "mac-m4", "--precision", "int8_static")
    code, printed = import_kit(*words)
    assert (code, "(2 succeeded)" in printed) == (0, True), printed
    record = records(data)["mac_sme2_on"]
    assert (record.device.name, record.model.name, record.model.precision) == ("mac-m4", "toy_cnn", "int8_static")
    assert record.imported
    assert record.imported.moment_is == "modification time of the files"


def holes(path: Path) -> None:
    """Make a large file that uses no disk."""
    path.touch()
    os.truncate(path, 30 << 30)


@pytest.mark.fault
def test_what_cannot_be_read_is_left_out_and_named(import_kit: Etfarm, kit: KitFolder, data: DataFolder) -> None:
    large = f"has {30 << 30} bytes; the limit is "
    causes: dict[str, tuple[Callable[[Path], Any], str]] = {
        "pipe_t1.etdump": (os.mkfifo, "is not a regular file; move it away"),
        "link_t1.etdump": (lambda path: path.symlink_to("/dev/zero"), "is a link; copy the file in its place"),
        "large_t1.etdump": (holes, f"{large}{256 << 20}"),
        "log_t1_latency.log": (holes, f"{large}{16 << 20}"),
        "t0.log": (Path.touch, "`_t0` in its name is not a number of threads; rename it"),
        "\x1b_t1.log": (Path.touch, "its name has characters that cannot be shown; rename it"),
    }
    for name in ("pipe", "link", "large", "log"):
        kit.timing(f"mac_sme2_on_{name}", [(9_000_000, ON), (2_000_000, ON)])
    kit.write()
    said = []
    for name, (make, cause) in causes.items():
        path = kit.output / f"{kit.model}_mac_sme2_on_{name}"
        path.unlink(missing_ok=True)
        make(path)
        said.append(f"left out: {sanitize_line(path)}: {cause}")
    (kit.output / "other_t1.log").touch()
    said.append(f"left out: {kit.output}/other_t1.log: no configuration or manifest states its model")
    code, printed = import_kit(kit.root)
    assert (code, "2 bundles written" in printed, printed.count("left out: ")) == (1, True, len(said)), printed
    assert [line for line in said if line not in printed] == []
    assert sorted(records(data)) == ["mac_sme2_off", "mac_sme2_on"]


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ('"runs": 3', '"runs": 0', "`experiments.0.runs`: "),
        ('"runs": 3', '"runs": 2147483648', "`experiments.0.runs`: "),
        ('"runs": 3', f'"runs": {"9" * 5000}', "not valid JSON (Exceeds the limit"),
        ('"mac_sme2_on"', '"mac/sme2_on"', "`experiments.0.name`: 'mac/sme2_on' is not the name of a file or folder"),
        ('_fp16.pte"', '_fp16.pte\\nx: 1"', "`model`: must be a line of at most 1000 characters"),
        ('_fp16.pte"', f'{"x" * 100}.pte"', "`model`: must be the path of a .pte file whose name has 1 to 100 bytes"),
        *(('2026-01-20T10:00:00+00:00"', f'{moment}"', f"`generated_at`: must be {TIME}") for moment in NO_TIMES),
    ],
)
def test_a_configuration_with_a_wrong_value_is_refused_with_its_key(
    import_kit: Etfarm, kit: KitFolder, data: DataFolder, old: str, new: str, cause: str
) -> None:
    file = kit.write() / ("runs/mac/manifest.json" if "generated_at" in cause else "my_run.json")
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    code, printed = import_kit(kit.root)
    assert (code, printed.count("\n"), cause in printed) == (2, 1, True), printed
    assert printed.startswith(f"etfarm: {file}: not ")
    assert not data.bundles.exists()
