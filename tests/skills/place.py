"""Where a skill is followed: a fresh folder that has a checkout's files, its `.venv`, and nothing measured.

The folder links to the files of this checkout, so a skill cannot tell it from a new one. Its `.venv` is complete: the
Python of the tests with `etfarm`, so `make setup` has nothing to do. Exports, runners and downloads that the tests keep
in var/tests are there: they are cached by content, so a step prints the same as the first time, only sooner.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fixtures.paths import KEPT, ROOT
from tests.fixtures.waiting import SCALE

_LONGEST_S = 1500.0
"""A sweep of six families of language models takes 12 minutes on two cores: 30 exports."""


class Place:
    """A fresh folder, and a shell in it: variables and the folder that a script changes last, as in a terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = f"{folder}/.venv/bin{os.pathsep}{os.environ['PATH']}"
        self.variables = {
            name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ETFARM_"))
        }
        if machine := os.environ.get("ETFARM_MACHINE_FOLDER"):
            self.variables["ETFARM_MACHINE_FOLDER"] = machine
        self.variables["PWD"] = str(folder)
        folder.mkdir(parents=True)
        for path in ROOT.iterdir():
            if path.name not in {"var", ".venv", "build"}:
                (folder / path.name).symlink_to(path)
        programs = folder / ".venv/bin"
        programs.mkdir(parents=True)
        for path in Path(sys.executable).parent.iterdir():
            (programs / path.name).symlink_to(path)
        for name, module in (("etfarm", "-m flows.cli.main"), ("python", "")):
            (programs / name).unlink(missing_ok=True)
            (programs / name).write_text(
                f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} {module} "$@"\n', encoding="utf-8"
            )
            (programs / name).chmod(0o755)
        (folder / ".venv/.ready").touch()
        (folder / "var").mkdir()
        for name in ("exports", "cache"):
            (KEPT / name).mkdir(parents=True, exist_ok=True)
            (folder / "var" / name).symlink_to(KEPT / name, target_is_directory=True)
        if (KEPT / "runners").exists():  # a copy, because a skill registers another one
            shutil.copytree(KEPT / "runners", folder / "var/runners", symlinks=True)

    def run(self, script: str) -> tuple[int, str]:
        """Run a script by `sh -e`; return its exit code and what it printed."""
        after = self.folder.with_name("variables")
        ended = subprocess.run(
            ["sh", "-e", "-c", f"set -a; trap 'env -0 >\"{after}\"' EXIT\n{script}"],
            cwd=self.variables["PWD"],
            env=self.variables | {"PATH": self.path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_LONGEST_S * SCALE,
        )
        if after.exists():
            self.variables = dict(each.split("=", 1) for each in after.read_text(encoding="utf-8").split("\0") if each)
        return ended.returncode, ended.stdout


# These skills start from a farm that has results; the others start from an empty one.
MEASURED = {"read-the-results", "explain-a-regression", "keep-a-farm"}


def place_for(name: str, folder: Path) -> Place:
    """Return the place in which a skill starts: its data folder has results if it is about them."""
    place = Place(folder)
    if name in MEASURED:
        measured = _measured()
        for part in ("bundles", "devices", "warehouse", "reports"):
            shutil.copytree(measured / "var" / part, folder / "var" / part)
        shutil.copytree(measured / "voice", folder / "voice")
    return place


def _measured() -> Path:
    """Return the folder in which measured.sh ran; the first skill that needs it runs it, and it is kept in var/tests.

    Its name has the script's hash and the version of a bundle, so that a change of either measures again.
    """
    script = Path(__file__).with_name("measured.sh").read_text(encoding="utf-8")
    kept = KEPT / f"skills-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    if not kept.exists():
        making = Path(tempfile.mkdtemp(prefix="skills-", dir=KEPT)) / "place"
        place = Place(making)
        code, printed = place.run(script)
        assert code == 0, printed
        _, verdicts = place.run("etfarm verdicts")
        assert "1 of 1 series slower" in verdicts, f"too noisy to be kept, measure it on a quiet machine: {verdicts}"
        making.rename(kept)
    return kept
