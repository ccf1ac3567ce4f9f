"""The var folder that a deployment uses: its own, then the worker's, then ./var."""

from pathlib import Path

import pytest

from tasks.store.var import stated_var


@pytest.mark.parametrize(
    ("stated", "of_the_worker", "expected"), [("a", "b", "a"), (None, "b", "b"), (None, "", "var"), (None, None, "var")]
)
def test_a_deployment_without_a_var_folder_uses_that_of_its_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stated: str | None, of_the_worker: str | None, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ETFARM_VAR", raising=False)
    if of_the_worker is not None:
        monkeypatch.setenv("ETFARM_VAR", of_the_worker)
    assert stated_var(stated).root == tmp_path / expected
