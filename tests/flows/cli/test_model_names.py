"""A model of a file goes by the name that pages show wherever a command takes the name of a model."""

from pathlib import Path

import pytest

from flows.warehouse.publish import load_and_publish
from tests.fixtures.command import Command, DataFolder
from tests.fixtures.warehouse import LINEAR

MODEL = "./voice.py:make"


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A farm that measured a model of a file, and another one, in two nights; its sweep file and its inventory."""
    folder = tmp_path_factory.mktemp("farm")
    data = DataFolder(folder / "var")
    for night in ("2026-11-19", "2026-11-20"):
        sweep = {"sweep_id": f"smoke-{night}", "name": "smoke", "night": night}
        for name in (MODEL, "toy"):
            data.session([(10_000_000, {LINEAR: 6_000_000})] * 3, model__name=name, sweep=sweep)
    (folder / "voice.py").write_text("def make(): ...\n", encoding="utf-8")
    (folder / "sweep.yaml").write_text(f"name: smoke\nmodels: [toy_cnn, {MODEL}]\n", encoding="utf-8")
    (folder / "devices.yaml").write_text("devices: [{name: host, transport: local}]\n", encoding="utf-8")
    load_and_publish(data.workspace, [data.bundles])
    return folder


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["explain", "voice"], "voice fp32"),
        (["compare", "voice", "toy"], "A: model voice in sweep smoke-2026-11-20"),
        (["sql", "slowest-operators", "--model", "voice"], "Fully Connected"),
        (["bisect", "voice", "--inventory", "FARM/devices.yaml"], "no night of this series is suspected"),
        (["decisions", "note", "known", "--model", "voice"], f"note for model {MODEL} (1 series)"),
        (["model", "fetch", "voice", "-o", "FARM/out"], "no .pte file of voice fp32 is stored"),
        (["sweep", "FARM/sweep.yaml", "--model", "voice", "--inventory", "FARM/devices.yaml", "--dry-run"], "1 of 1"),
    ],
)
def test_a_command_takes_the_name_that_pages_show(command: Command, farm: Path, words: list[str], printed: str) -> None:
    ended = command(*(word.replace("FARM", str(farm)) for word in words), "--data-dir", farm / "var")
    assert printed in ended.out + ended.err
