"""The workspace of a deployment: what it states, then what its worker's environment states, then the data folder."""

from pathlib import Path

import pytest

from tasks.store.workspace import Workspace, resolve_workspace


@pytest.mark.parametrize(
    ("argument", "variable", "expected"), [("a", "b", "a"), (None, "b", "b"), (None, "", "var"), (None, None, "var")]
)
def test_a_deployment_without_a_data_folder_uses_that_of_its_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, argument: str | None, variable: str | None, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ETFARM_DATA_DIR", raising=False)
    if variable is not None:
        monkeypatch.setenv("ETFARM_DATA_DIR", variable)
    assert resolve_workspace(argument).root == tmp_path / expected


def test_a_deployment_s_bundles_come_before_those_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "var")
    monkeypatch.delenv("ETFARM_BUNDLES", raising=False)
    assert resolve_workspace(root).store.location == str(tmp_path / "var" / "bundles")
    monkeypatch.setenv("ETFARM_BUNDLES", str(tmp_path / "shared"))
    assert resolve_workspace(root).store.location == str(tmp_path / "shared")
    assert resolve_workspace(root, str(tmp_path / "argument")).store.location == str(tmp_path / "argument")


def test_only_the_warehouse_in_the_data_folder_has_snapshots(tmp_path: Path) -> None:
    default = Workspace(tmp_path)
    assert default.has_snapshots
    # and it is the same one by any path
    named = tmp_path / "warehouse" / ".." / "warehouse" / "warehouse.duckdb"
    assert Workspace(tmp_path, named).has_snapshots
    assert not Workspace(tmp_path, tmp_path / "w.duckdb").has_snapshots
