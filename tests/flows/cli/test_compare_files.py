"""`etfarm compare A.pte B.pte`: two files are measured interleaved; a mistake is reported before anything starts."""

import json
import shutil
from pathlib import Path

import pytest

from devices.errors import InputError
from tasks.export.prebuilt import open_pte
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command, run_python
from tests.fixtures.farm import Farm
from tests.fixtures.paths import INVENTORIES, LAB_INVENTORY, ROOT
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
    assert (row["model"], row["answer"], row["in_words"].split(":")[0]) == ("a -> b", "different", "slower")
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
        (("a.pte", "b.pte", "--variant", "sme2_off"), "--variant is not for .pte files; leave it out"),
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


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("compare_files.measure_files", ("compare", "a.pte", "b.pte")),
        ("upgrade.measure_upgrade", ("compare", "--executorch", "1.5.0", "own", "--model", "linear")),
        ("upgrade.measure_upgrade", ("upgrade", "check", ROOT / "deployments/sweeps/smoke.yaml", "--to", "1.5.0")),
    ],
)
def test_two_sides_are_measured_into_the_store_of_the_setting(
    command: Command, monkeypatch: pytest.MonkeyPatch, function: str, words: tuple[object, ...]
) -> None:
    def refuse(_request: object, workspace: Workspace) -> None:
        raise InputError(str(workspace.bundles_location))

    monkeypatch.setattr(f"flows.cli.{function}", refuse)
    monkeypatch.setenv("ETFARM_BUNDLES", "s3://farm/bundles")
    assert command(*words).refusal == "etfarm: s3://farm/bundles\n"


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


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The folder of an export, copied from another machine."""
    (tmp_path / "lin.pte").write_bytes(PROGRAM)
    return Path(shutil.copytree(open_pte(tmp_path / "lin.pte", tmp_path / "there").folder, tmp_path / "lin"))


def test_the_folder_of_an_export_is_taken_with_all_that_it_states(copied: Path, tmp_path: Path) -> None:
    (copied / "sources.json").write_text("{}", encoding="utf-8")
    export = open_pte(copied / "model.pte", tmp_path / "exports")
    assert (export.folder, export.model) == (copied, "lin")
    # and another program in it is a file alone
    (copied / "model.pte").write_bytes(PROGRAM + b"\1")
    assert open_pte(copied / "model.pte", tmp_path / "exports").folder.parent == tmp_path / "exports"


def test_a_folder_that_leads_elsewhere_or_has_other_content_is_refused(copied: Path, tmp_path: Path) -> None:
    def refusal() -> str:
        with pytest.raises(InputError, match=r"not what export\.json states; copy") as refused:
            open_pte(copied / "model.pte", tmp_path / "exports")
        return str(refused.value)

    secret, content = tmp_path / "secret", (copied / "export.json").read_text(encoding="utf-8")
    secret.write_bytes((copied / "input-0.bin").read_bytes())
    # when a file is a link, an address leads out of the folder, a file is changed, or one is missing
    (copied / "sources.json").symlink_to(secret)
    assert "sources.json" in refusal()
    (copied / "sources.json").unlink()
    (copied / "export.json").write_text(content.replace("input-0.bin", "../secret"), encoding="utf-8")
    assert "../secret" in refusal()
    # or its key names another folder, which commands would later remove as a damaged export
    key = json.loads(content)["export_key"]
    (copied / "export.json").write_text(content.replace(key, "../bundles"), encoding="utf-8")
    assert "export_key" in refusal()
    (copied / "export.json").write_text(content, encoding="utf-8")
    (copied / "input-0.bin").write_bytes(b"other")
    assert "input-0.bin" in refusal()
    (copied / "input-0.bin").unlink()
    assert "No such file" in refusal()
