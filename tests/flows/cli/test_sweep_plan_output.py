"""`etfarm sweep FILE --dry-run`: what would be measured and why not, without a server and without a change."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from devices.ondevice.facts import Facts
from tasks.bundle.record import SweepNight
from tasks.export.entry import ExportRequest, ModelEntry
from tasks.export.export import skipped_path
from tasks.export.key import export_key
from tasks.measure.plan import plan_device
from tasks.measure.sweep_file import read_sweep
from tasks.store.folder import publish_bundle
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command
from tests.fixtures.documented import assert_documented
from tests.fixtures.farm import sweep_of
from tests.fixtures.plans import ended
from tests.fixtures.stand_in import write_export
from tests.fixtures.warehouse import BundleMaker

INVENTORY = """
devices:
  - {name: here, transport: local, root: "%s", labels: {tier: nightly}}
  - {name: gone, transport: ssh, address: 127.0.0.1, port: 9, user: nobody, root: /tmp/x, labels: {tier: nightly}}
  - {name: other, transport: local, root: "%s", labels: {tier: weekly}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A sweep of two models with three sessions each."""
    path = tmp_path / "sweep.yaml"
    path.write_text(sweep_of("linear", "conv", sessions=3, devices={"tier": "nightly"}), encoding="utf-8")
    return path


@pytest.fixture
def dry(command: Command, tmp_path: Path, file: Path) -> Command:
    """Run a dry run of the sweep on an inventory of three devices."""
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(INVENTORY % (tmp_path / "a", tmp_path / "b"), encoding="utf-8")
    words = ("sweep", file, "--dry-run", "--inventory", inventory, "--data-dir", tmp_path / "var")
    return lambda *more: command(*words, *more)


def key_of(exports: Path, model: str) -> str:
    return export_key(ExportRequest(ModelEntry.model_validate(model), "fp32", exports))


def test_a_phone_that_is_off_is_planned_as_android_and_a_host_as_unknown(command: Command, tmp_path: Path) -> None:
    file, inventory = tmp_path / "sweep.yaml", tmp_path / "inventory.yaml"
    file.write_text("name: a\nmodels: [linear]\ndelegates: [xnnpack, openvino]\n", encoding="utf-8")
    phone = "{name: phone, transport: adb, serial: NONE, adb_server_port: 9}"
    inventory.write_text(f"devices:\n- {phone}\n- {{name: gone, transport: ssh, address: 127.0.0.1, port: 9}}\n")
    done = command("sweep", file, "--dry-run", "--inventory", inventory, "--data-dir", tmp_path / "var")
    assert (
        "phone: skipped: openvino: executorch's wheel has no library of OpenvinoBackend for android-arm64" in done.out
    )
    assert "gone: openvino: may be skipped; its platform is unknown until it answers" in done.out


def test_a_dry_run_counts_cells_and_sessions_and_names_the_devices_that_are_off(dry: Command, tmp_path: Path) -> None:
    done = dry()
    assert done.code == 0, done.err
    first, exports, to_export, here, gone, other = done.out.splitlines()
    assert first.partition(": ")[2] == "1 of 3 devices, 2 cells, 6 sessions, 0 of them measured; time unknown"
    assert exports == "exports: 2 to export"
    assert to_export == "to export: linear fp32, conv fp32; their methods and sizes are unknown before"
    assert here.startswith("here: reachable; 2 cells, 6 sessions, 0 measured; runner ")
    assert "to build; to push: 2 exports; time unknown" in here
    assert gone.startswith("gone: off: unreachable: ")
    assert other == "other: not selected: label tier is weekly, the sweep selects nightly"
    # and nothing was started or written
    assert not list((tmp_path / "var").rglob("*.duckdb"))


def test_what_is_exported_pushed_and_measured_already_is_counted(dry: Command, tmp_path: Path, file: Path) -> None:
    # given an export of one model; the recipe of the other was found to have no meaning
    exports = Workspace(tmp_path / "var").exports
    export = write_export(exports / key_of(exports, "linear"), input_bytes=1 << 20)
    skipped = skipped_path(exports, key_of(exports, "conv"))
    skipped.parent.mkdir()
    skipped.write_text("conv has no such layers", encoding="utf-8")
    # given one session of this night
    (folder := tmp_path / "made").mkdir()
    plan = json.loads(dry("--night", "2026-01-02", "--format", "json").out)
    night = SweepNight(sweep_id=plan["sweep"], name="tiny", night="2026-01-02")
    pairs = {("linear", "fp32"): [export], ("conv", "fp32"): []}
    first = plan_device(read_sweep(file), night, "here", facts=Facts(), exports=pairs, runners={})[0]
    record = ended(first, "succeeded").model_copy(update={"runner": None})
    publish_bundle(Workspace(tmp_path / "var").bundles, record, folder)
    # given the program in the store of the device
    (tmp_path / "a/blobs").mkdir(parents=True, exist_ok=True)
    (tmp_path / "a/blobs" / export.pte_sha256).touch()
    plan = json.loads(dry("--night", "2026-01-02", "--format", "json").out)
    states = {each["export"]: (each["state"], each["note"]) for each in plan["exports"]}
    assert states == {"linear fp32": ("ready", ""), "conv fp32": ("skipped", "conv has no such layers")}
    here = plan["devices"][0]
    assert (here["cells"], here["sessions"], here["measured"]) == (1, 3, 1)
    assert here["push_bytes"] == 1 << 20  # its input


def test_gigabytes_of_weights_are_not_read_and_what_they_decide_is_unknown(
    dry: Command, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a model of five gigabytes, which take no space
    (weights := tmp_path / "weights").mkdir()
    (weights / "config.json").write_text("{}", encoding="utf-8")
    with (weights / "model.safetensors").open("wb") as stream:
        stream.truncate(5_000_000_000)
    file.write_text(sweep_of({"name": "big", "transformers": "./weights"}, sessions=3), encoding="utf-8")
    monkeypatch.setattr("tasks.export.key.hash_file", lambda path: pytest.fail(f"{path} was read"))
    # when it is planned, then its sessions are counted, and which of them are measured is not
    _, exports, why, here, *_ = dry().out.splitlines()
    assert exports == "exports: 1 unknown before the export"
    assert why == "big fp32: unknown before the export: 5.0 GB of files decide, and were not read"
    assert here.startswith("here: reachable; 1 cells, 3 sessions, 0 measured, 3 unknown before the export; ")


def test_a_part_of_a_sweep_is_planned_on_the_devices_named(dry: Command, file: Path) -> None:
    first, _, _, here, gone, _ = dry("--model", "conv", "--device", "here").out.splitlines()
    assert ": 1 of 3 devices, 1 cells, 3 sessions, " in first
    assert here.startswith("here: reachable; 1 cells, 3 sessions, ")
    assert gone == "gone: not selected: --device names others"
    # and a device that the sweep does not select is a mistake
    refused = dry("--device", "other")
    unknown = "etfarm: --device other: the sweep tiny has no such device"
    assert (refused.code, refused.err) == (2, f"{unknown}; it has here, gone; did you mean `here`?\n")
    refused = dry("--device", "other", "--model", "cnov")
    assert [line.split(": ")[1] for line in refused.err.splitlines()] == ["--model cnov", "--device other"]
    file.write_text(sweep_of("linear", devices={"tier": "none"}), encoding="utf-8")
    refused = dry("--device", "heer")
    assert (refused.code, refused.err.partition("; it has")[0]) == (2, unknown.replace("other", "heer"))


def test_sessions_take_as_long_as_their_like_in_earlier_sweeps(dry: Command, tmp_path: Path) -> None:
    # given two nights with one session of 9 s in every 30 s and in every 60 s, and a third of other executions
    maker = BundleMaker(tmp_path / "var")
    for night, apart_s, executions in (("2026-11-01", 30, 6), ("2026-11-02", 60, 6), ("2026-11-03", 90, 7)):
        for number in range(4):
            started = datetime.fromisoformat(f"{night}T01:00:00+00:00") + timedelta(seconds=number * apart_s)
            names: dict[str, Any] = {"sweep__sweep_id": f"tiny-{night}", "sweep__name": "tiny", "sweep__night": night}
            kind: dict[str, Any] = {"device__name": "here", "model__name": ("linear", "conv")[number % 2]}
            maker.session([10_000] * (executions - 1), started_at=started.isoformat(), **names, **kind)
    maker.load()
    # then six sessions take 180 to 360 s, and a third less to more
    planned = json.loads(dry("--warehouse", maker.warehouse, "--format", "json").out)
    here = planned["devices"][0]
    assert (here["min_s"], here["max_s"]) == pytest.approx((180 * 3 / 4, 360 * 4 / 3))
    assert_documented("sweep --dry-run", planned)
    assert dry("--warehouse", maker.warehouse).out.splitlines()[0].endswith(", without exports, start and report")


def test_a_warehouse_that_cannot_be_read_leaves_a_plan_without_times(dry: Command, tmp_path: Path) -> None:
    # given a file that is no warehouse, and no warehouse at all
    damaged = tmp_path / "damaged.duckdb"
    damaged.write_bytes(b"x" * 100)
    why = f"etfarm: without expected times: {damaged} is not a warehouse"
    # then a plan has no times, and only what cannot be read is reported
    for warehouse, reported in ((damaged, why), (tmp_path / "none", "")):
        planned = dry("--warehouse", warehouse, "--format", "json")
        assert (planned.code, planned.err.startswith(reported), bool(planned.err)) == (0, True, bool(reported))
        assert json.loads(planned.out)["devices"][0]["max_s"] is None
