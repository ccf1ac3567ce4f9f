"""Whether an export is ready, by its hashes and without reading them: both answers agree."""

from dataclasses import replace
from pathlib import Path

import pytest

from tasks.export.entry import ExportRequest, ModelEntry
from tasks.export.exported import Export, ExportError
from tasks.export.key import export_key
from tasks.measure.prepare import ExportSettings, make_export, quick_export_status, verified_export_status
from tests.fixtures.stand_in import write_export

LINEAR = ModelEntry.model_validate("linear")


@pytest.mark.parametrize(
    ("exported", "has_numerics", "state"),
    [
        ([], False, "to export"),
        ([False], False, "ready"),
        ([False], True, "to export"),
        ([True], True, "to export"),
        ([False, True], True, "ready"),
    ],
)
def test_with_the_mode_numerics_an_export_is_ready_only_with_both_programs(
    tmp_path: Path, exported: list[bool], has_numerics: bool, state: str
) -> None:
    for taps in exported:
        write_export(tmp_path / export_key(ExportRequest(LINEAR, "fp32", tmp_path, taps=taps)))
    settings = ExportSettings(tmp_path, 0, None, has_numerics)
    statuses = [status(LINEAR, "fp32", settings) for status in (quick_export_status, verified_export_status)]
    assert [each.state for each in statuses] == [state, state]
    assert [bool(each.cases and each.cases[0].tapped) for each in statuses] == [len(exported) == 2] * 2


def test_a_program_that_exists_already_is_ready_without_one_for_numerics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pte").touch()
    prebuilt = ModelEntry.model_validate({"name": "a", "pte": "a.pte"}, context={"folder": tmp_path})
    cases = (write_export(tmp_path / "prebuilt-linear"),)
    monkeypatch.setattr("tasks.measure.prepare.describe_prebuilt", lambda *_: ("prebuilt-linear", {}, {}))
    monkeypatch.setattr("tasks.measure.prepare.read_local_export", lambda *_, **__: cases)
    settings = ExportSettings(tmp_path, 0, None, True)
    for status in (
        quick_export_status(prebuilt, "as_is", settings),
        verified_export_status(prebuilt, "as_is", settings),
    ):
        assert (status.state, status.cases) == ("ready", tuple(replace(case, tapped=None) for case in cases))


def test_a_program_for_numerics_that_could_not_be_made_is_ready_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def export(request: ExportRequest, **_: object) -> tuple[Export, ...]:
        if request.taps:
            raise ExportError("no layer can be read")
        return (write_export(tmp_path / export_key(request)),)

    def statuses() -> list[tuple[str, str | None]]:
        both = [status(LINEAR, "fp32", settings) for status in (quick_export_status, verified_export_status)]
        return [(each.state, each.cases[0].tapped_error) for each in both]

    # given a model whose program for numerics cannot be exported
    monkeypatch.setattr("tasks.measure.prepare.export_cases", export)
    settings = ExportSettings(tmp_path, 0, None, True)
    make_export(LINEAR, "fp32", settings, lambda *_: None)
    assert statuses() == [("ready", "no layer can be read")] * 2
    # when it is exported after all, then the error is gone
    write_export(tmp_path / export_key(ExportRequest(LINEAR, "fp32", tmp_path, taps=True)))
    assert statuses() == [("ready", None)] * 2
