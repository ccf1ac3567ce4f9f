"""`etfarm compare A.pte B.pte`: two files are measured interleaved; a mistake is reported before anything starts."""

import json
import shutil
from pathlib import Path

import pytest

from tasks.export.prebuilt import open_pte
from tests.fixtures.command import Command, run_python
from tests.fixtures.farm import Farm
from tests.fixtures.paths import INVENTORIES, LAB_INVENTORY
from tests.fixtures.program_builder import Signature, build_program

PROGRAM = build_program({"forward": Signature()})
# The command, up to where it states what it is about to measure.
_STARTED = """
import sys
import flows.cli.prefect_run as run

def announce(what, *_):
    sys.exit(f"{what}: Prefect is {'' if 'prefect' in sys.modules else 'not '}imported")

run.set_up_run = announce
from flows.cli.main import main
main()
"""


@pytest.mark.thorough
@pytest.mark.torch
def test_two_files_are_measured_interleaved_and_the_slower_one_fails_the_command(farm: Farm) -> None:
    pytest.importorskip("executorch", reason="exports and the runner need the export extra")
    # given two files that no folder of an export has around them, one with much more to do
    files = []
    for name, model in (("a.pte", "linear"), ("b.pte", "conv")):
        exported = farm.run("model", "export", model)
        assert exported.returncode == 0, exported.stderr
        shutil.copy(Path(exported.stdout.strip()) / "model.pte", farm.folder / name)
        files.append(name)
    words = ("compare", *files, "--inventory", farm.inventory, "--sessions", 5, "--fail-on", "different")
    done = farm.run(*words, "--format", "json")
    # then each was measured 5 times, and the difference is the exit code
    assert done.returncode == 1, done.stdout + done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["model"], row["answer"], row["in_words"].split()[0]) == ("a -> b", "different", "slower")
    assert (row["sessions_a"], row["sessions_b"]) == (5, 5)
    # and it is neither a night nor a sweep to report on
    assert farm.ask("SELECT count(*) AS n FROM verdict") == [{"n": 0}]
    assert "no sweep is loaded yet" in farm.run("site", "report").stderr
    # and another call measures both sides again, and counts all sessions of the day
    again = farm.run(*words)
    assert again.stdout.startswith("1 of 1 series slower: a -> b as_is on here, ")
    assert "from 10 sessions of A and 10 of B, of 2 calls since " in again.stdout
    assert farm.ask("SELECT sessions_a, sessions_b FROM comparison") == [{"sessions_a": 5, "sessions_b": 5}] * 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("a.pte", "2026-11-01"), "`a.pte` is a .pte file and the other is not; name two .pte files, or none"),
        (("a.pte", "c.pte"), "c.pte: no such file; name a .pte file"),
        (("a.pte", "b.pte", "--model", "linear"), "--model is not for .pte files; leave it out"),
        (("a.pte", "b.pte", "--device", "pixel"), "unknown device `pixel`; devices: "),
        (("a.pte", "b.pte", "--inventory", LAB_INVENTORY), "name one with --device: lab-mac-1,"),
    ],
)
def test_a_mistake_about_files_is_one_sentence(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.pte", "b.pte"):
        (tmp_path / name).write_bytes(PROGRAM)
    inventory = () if "--inventory" in words else ("--inventory", INVENTORIES / "local.yaml")
    assert sentence in command("compare", *words, *inventory).refusal
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pte", "b.pte"]


def test_a_comparison_sets_up_prefect_before_it_imports_it(tmp_path: Path) -> None:
    for name in ("a.pte", "b.pte"):
        (tmp_path / name).write_bytes(b"any")
    words = ("compare", tmp_path / "a.pte", tmp_path / "b.pte", "--data-dir", tmp_path)
    ended = run_python("-c", _STARTED, *words, "--inventory", INVENTORIES / "local.yaml")
    assert ended.stderr.endswith(": Prefect is not imported\n"), ended.stderr


def test_a_file_is_kept_once_under_its_name_and_content(tmp_path: Path) -> None:
    (tmp_path / "lin.pte").write_bytes(PROGRAM)
    first, second = (open_pte(tmp_path / "lin.pte", tmp_path / "exports") for _ in range(2))
    assert first == second
    assert (first.model, first.precision, first.pte.read_bytes()) == ("lin", "as_is", PROGRAM)
    # and a name that begins as an option does becomes a model's name
    (tmp_path / "-net.pte").write_bytes(PROGRAM)
    assert open_pte(tmp_path / "-net.pte", tmp_path / "exports").model == "_net"
    # when the file changes, it is another export
    (tmp_path / "lin.pte").write_bytes(PROGRAM + b"\1")
    assert open_pte(tmp_path / "lin.pte", tmp_path / "exports").export_key != first.export_key
