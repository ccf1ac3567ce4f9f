"""Exports with another version of ExecuTorch: their environment, their key, and their process."""

import os
import re
import sys
import time
from pathlib import Path

import pytest

from tasks.export.entry import ExportRequest, parse_entry
from tasks.export.export import export_cases, read_local_export
from tasks.export.exported import ExportError
from tasks.export.key import export_key
from tasks.export.process.environments import (
    Environment,
    find_environment,
    installed_version,
    read_table,
    stated_environment,
    unused_environments,
)
from tasks.export.process.run import run_export
from tasks.measure.prepare import ExportSettings, quick_export_status
from tests.fixtures.command import run_python
from tests.fixtures.environments import OTHER, stand_in_environment

_KEY = """
import sys
from pathlib import Path
from tasks.export.entry import ExportRequest, parse_entry
from tasks.export.key import export_key
entry = parse_entry("toy_cnn").model_copy(update={"name": "toy_cnn@export=1.4.1"})
sys.path.insert(0, sys.argv[1])
print(export_key(ExportRequest(entry, "fp32", Path(sys.argv[2]))))
"""


def request(exports: Path, version: str = OTHER, deadline_s: float = 60.0) -> ExportRequest:
    entry = parse_entry("toy_cnn").model_copy(update={"name": f"toy_cnn@export={version}"})
    return ExportRequest(entry, "fp32", exports, deadline_s=deadline_s)


def test_a_version_that_the_table_lacks_is_refused_and_the_own_one_needs_no_environment(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"0\.9\.0.*environments\.csv.*1\.5\.1, 1\.5\.0, 1\.4\.1.*add a row"):
        stated_environment("net@export=0.9.0", tmp_path)
    assert stated_environment("net", tmp_path) is None
    assert stated_environment(f"net@export={installed_version()}", tmp_path) is None
    assert {row.torch.count(".") for row in read_table().values()} == {2}


def test_a_machine_without_what_exports_need_refuses_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.export.process.environments._OF_FARM", ("numpy", "not-on-this-machine"))
    with pytest.raises(ExportError, match=r"1\.4\.1 cannot export here: not-on-this-machine is not installed"):
        stated_environment("net@export=1.4.1", tmp_path)


def test_before_the_environment_is_installed_the_model_is_to_be_exported_and_nothing_is_installed(
    tmp_path: Path,
) -> None:
    asked = request(tmp_path / "exports")
    settings = ExportSettings(tmp_path / "exports", 0, None, has_numerics=False)
    assert quick_export_status(asked.entry, "fp32", settings).state == "to export"
    assert read_local_export(asked) is None
    assert not any(tmp_path.iterdir())


def test_the_farm_and_the_process_in_the_environment_compute_one_key_which_its_versions_change(tmp_path: Path) -> None:
    environment = stand_in_environment(tmp_path / "exports")
    of_farm = export_key(request(tmp_path / "exports"))
    there = run_python("-c", _KEY, str(environment.site_packages), str(tmp_path / "exports")).stdout.split()[-1]
    assert there == of_farm
    (metadata,) = environment.site_packages.glob("torchao-*/METADATA")
    metadata.write_text("Name: torchao\nVersion: 9.10\n")
    assert export_key(request(tmp_path / "exports")) != of_farm


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("exit 3", r"the export process exited with code 3"),
        ("kill -SEGV $$", r"the export process was killed by SIGSEGV"),
        ("sleep 600", r"the export was stopped after 0\.3 s"),
    ],
)
def test_a_process_in_another_environment_that_ends_or_hangs_is_reported_as_any_other(
    tmp_path: Path, script: str, error: str
) -> None:
    stand_in_environment(tmp_path / "exports", script)
    log = tmp_path / "log"
    outcome = run_export(request(tmp_path / "exports", deadline_s=0.3), log, lambda *_: None)
    assert outcome.error is not None
    assert re.match(error, outcome.error)


@pytest.fixture
def without_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose Python does nothing; returns the path for an uv beside it."""
    folder = tmp_path / "installer"
    folder.mkdir()
    (folder / "python").write_text("#!/bin/sh\n")
    (folder / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    return folder / "uv"


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        ("  cause: Because there is no version of torch==2.13.0 ...", r"torch 2\.13\.0 is not on the package index"),
        ("error: Failed to fetch: x; dns error", r"1\.4\.1 .*the package index does not answer"),
        ("error: No space left on device", r"cannot be installed: error: No space left on device"),
    ],
)
def test_an_installation_that_fails_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, without_index: Path, printed: str, cause: str
) -> None:
    without_index.write_text(f"#!/bin/sh\necho '{printed}' >&2\nexit 1\n")
    without_index.chmod(0o755)
    environment, told = find_environment(OTHER, tmp_path / "exports"), list[str]()
    with pytest.raises(ExportError, match=cause):
        environment.install(told.append)
    assert told[0] == f"installing {environment.cost}"
    assert "1.3 GB on disk and 10 s" in told[0]
    assert list(environment.folder.parent.iterdir()) == []


def test_an_environment_is_installed_once_and_unused_after_the_days_of_a_prune(
    tmp_path: Path, without_index: Path
) -> None:
    without_index.write_text("#!/bin/sh\necho Resolved 71 packages >&2\n")
    without_index.chmod(0o755)
    environment, told = find_environment(OTHER, tmp_path / "exports"), list[str]()
    environment.install(told.append)
    assert environment.python.exists()
    assert told[-1].endswith("Resolved 71 packages")
    os.utime(environment.folder, (0, 0))
    assert unused_environments(tmp_path, time.time() - 60) == [environment.folder]
    without_index.unlink()
    environment.install(told.append)
    assert unused_environments(tmp_path, time.time() - 60) == []


@pytest.mark.torch
@pytest.mark.thorough
def test_a_model_is_exported_by_the_process_and_has_the_versions_of_the_environment(tmp_path: Path) -> None:
    environment = stand_in_environment(tmp_path / "exports")
    steps = list[str]()
    (export,) = export_cases(request(tmp_path / "exports"), on_step=lambda step, _: steps.append(step))
    assert export.folder.name == export_key(request(tmp_path / "exports"))
    assert (export.model, export.versions["executorch"]) == ("toy_cnn@export=1.4.1", f"{OTHER}+cpu")
    assert "tracing forward" in steps
    # and is not exported again
    environment.python.unlink()
    assert export_cases(request(tmp_path / "exports"))[0].folder == export.folder


@pytest.mark.long
@pytest.mark.thorough
def test_a_real_environment_is_installed_and_exports(tmp_path: Path) -> None:
    try:
        (export,) = export_cases(request(tmp_path / "exports", "1.5.0", 900.0))
    except ExportError as error:
        if "does not answer" not in str(error):
            raise
        pytest.skip("needs the package index")
    assert str(export.versions["executorch"]).startswith("1.5.0")
    assert isinstance(stated_environment(export.model, tmp_path / "exports"), Environment)
