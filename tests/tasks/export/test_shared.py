"""Exports in object storage: made on one machine, used on another one."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasks.export.entry import ExportRequest
from tasks.export.export import export_cases, share_export
from tasks.export.exported import Export, ExportError
from tasks.export.key import export_key
from tasks.export.process.child import ExportOutcome
from tasks.export.process.run import OnStep
from tasks.store.blob_store import BlobStore
from tasks.store.object_store import ObjectStore
from tests.fixtures.s3 import s3_client
from tests.fixtures.stand_in import write_export

pytest.importorskip("executorch", reason="an export that is missing needs the export extra")


@dataclass
class Machine:
    """An exports folder whose export process is a stand-in that writes the files of an export without torch."""

    exports: Path
    store: ObjectStore
    count: int = 0

    def export(self) -> Export:
        [export] = export_cases(ExportRequest("linear", "fp32", self.exports), shared_files=self.store.shared_files)
        return export


@pytest.fixture
def machines(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Machine]:
    """Two machines that keep their bundles below one location."""
    location, folders = f"s3://{bucket}/farm", [tmp_path / "first", tmp_path / "second"]
    machines = [Machine(each / "exports", ObjectStore(location, each / "cache")) for each in folders]

    def run(request: ExportRequest, _log: Path, _tell: OnStep) -> ExportOutcome:
        [machine] = [each for each in machines if each.exports == request.exports_dir]
        machine.count += 1
        made = write_export(request.exports_dir / export_key(request))
        made.etrecord.write_bytes(b"record")
        return ExportOutcome(folder=made.folder.name)

    monkeypatch.setattr("tasks.export.process.run.run_export", run)
    return machines


def test_an_export_is_made_on_one_machine_and_fetched_by_the_others(machines: list[Machine]) -> None:
    # given an export that one machine made
    first, second = machines
    export = first.export()
    # when another machine needs it
    fetched = second.export()
    # then it has the same files and made nothing
    assert (first.count, second.count) == (1, 0)
    assert fetched.content == export.content
    assert {path.name: path.read_bytes() for path in fetched.folder.iterdir()} == {
        path.name: path.read_bytes() for path in export.folder.iterdir()
    }
    # and nothing mistakes it for a sweep
    assert second.store.sweep_ids() == []
    assert sorted(path.name for path in second.exports.glob(".part-*")) == []


@pytest.mark.parametrize("damage", ["truncated", "another key"])
def test_a_damaged_export_in_storage_is_made_again(
    machines: list[Machine], bucket: str, damage: str, tmp_path: Path
) -> None:
    # given an export in the storage that is damaged
    first, second = machines
    export = first.export()
    name = f"farm/exports/{export.export_key}.tar.zst"
    whole = s3_client().get_object(Bucket=bucket, Key=name)["Body"].read()
    if damage == "truncated":
        spoiled = whole[:-9]
    else:
        copy = shutil.copytree(export.folder, tmp_path / "copy" / export.export_key)
        described = copy / "export.json"
        described.write_text(described.read_text().replace(export.export_key, "0" * 32))
        s3_client().delete_object(Bucket=bucket, Key=name)
        share_export(first.store.shared_files, copy)
        spoiled = s3_client().get_object(Bucket=bucket, Key=name)["Body"].read()
        assert spoiled != whole
    s3_client().put_object(Bucket=bucket, Key=name, Body=spoiled)
    # when another machine needs it
    again = second.export()
    # then it makes the export itself, and the storage has a complete one again
    assert (second.count, again.content) == (1, export.content)
    shutil.rmtree(second.exports)
    assert second.export().content == export.content
    assert second.count == 1


def test_without_an_answer_of_the_storage_the_model_is_exported_here(
    machines: list[Machine], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = machines

    def refuse(*_: object) -> None:
        raise ExportError("s3://farm: no answer")

    monkeypatch.setattr(BlobStore, "has", refuse)
    monkeypatch.setattr(BlobStore, "put", refuse)
    assert first.export().folder.is_dir()
    assert "s3://farm: no answer; it will be exported here" in caplog.text
    assert "could not be uploaded: s3://farm: no answer" in caplog.text
