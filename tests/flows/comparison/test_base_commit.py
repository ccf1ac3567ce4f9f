"""`etfarm compare --base`: both versions of a model are exported, and the user's checkout stays as it is."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from devices.errors import FarmError, InputError
from flows.cli import compare_files
from flows.cli.compare_files import export_both

MODEL = "./model.py:make"
# Stands in for `etfarm model export`: copies the model's file as its export, and fails for a model that is empty.
_EXPORT = """#!/bin/sh
out=$(mktemp -d "$OUT/XXXXXX"); cp model.py "$out/model.pte"
[ -s model.py ] || { echo "etfarm: model.py: defines nothing" >&2; exit 2; }
echo "$out"
"""


def git(*words: str) -> str:
    name = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    return subprocess.run(["git", *name, *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout, in whose folder the process is: two commits of a model, and a change that is not committed."""
    (tmp_path / "python").write_text(_EXPORT, encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(compare_files, "sys", SimpleNamespace(executable=str(tmp_path / "python")))
    monkeypatch.setenv("OUT", str(tmp_path))
    (folder := tmp_path / "checkout" / "models").mkdir(parents=True)
    monkeypatch.chdir(folder)
    git("init", "-q", "..")
    for text in ("", "first"):
        (folder / "model.py").write_text(text, encoding="utf-8")
        git("add", ".")
        git("commit", "-qm", "Model")
    (folder / "model.py").write_text("second", encoding="utf-8")
    return folder


def test_the_model_of_the_commit_and_the_present_one_are_exported(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = export_both(MODEL, "fp32", "HEAD", repository / "var")
    assert [side.file.read_text(encoding="utf-8") for side in (before, after)] == ["first", "second"]
    # and each side is named by its commit
    commit = git("rev-parse", "HEAD").strip()
    assert (before.commit, before.label) == (commit, f"{MODEL} at {commit[:7]}")
    assert (after.commit, after.label) == (f"{commit}-dirty", f"{MODEL} at {commit[:7]} with uncommitted changes")
    # and nothing of it stays
    assert git("worktree", "list").count("\n") == 1
    assert git("status", "--short") == " M model.py\n"
    # and outside a repository, one sentence says so
    monkeypatch.chdir(repository.parents[1])
    with pytest.raises(InputError, match=r"^--base: .*; run the command in the model's repository$"):
        export_both(MODEL, "fp32", "HEAD", repository)


@pytest.mark.parametrize(
    ("model", "base", "error", "sentence"),
    [
        (None, "HEAD", InputError, "--base: name the model, such as --model ./model.py:make"),
        (MODEL, "no-such-commit", InputError, "--base no-such-commit: .*; name a commit that `git log`"),
        (MODEL, "HEAD~1", FarmError, "--base HEAD~1: model.py: defines nothing"),
    ],
)
def test_a_side_that_cannot_be_exported_is_one_sentence(
    repository: Path, model: str | None, base: str, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        export_both(model, "fp32", base, repository / "var")
    assert git("worktree", "list").count("\n") == 1
