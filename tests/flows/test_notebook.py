"""The farm in a notebook: frames of views, a session with its parts, a comparison; the notebook of docs runs."""

import json

import pytest

from devices.errors import InputError
from flows.notebook import Farm
from tests.fixtures.command import Command
from tests.fixtures.paths import ROOT
from tests.fixtures.warehouse import BundleMaker


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    """A warehouse with one model in two precisions, fp32 twice as slow."""
    maker = BundleMaker(tmp_path_factory.mktemp("notebook"))
    for precision, time_us in (("fp16", 5_000), ("fp32", 10_000)):
        for number in range(5):
            maker.session([1000 * (time_us + number)] * 3, model__precision=precision, model__name="voice")
    maker.load()
    return maker


@pytest.fixture(scope="module")
def farm(maker: BundleMaker) -> Farm:
    return Farm(maker.warehouse.parent, maker.warehouse)


def test_the_notebook_of_the_documentation_runs(maker: BundleMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    # given the notebook's cells, and a farm with results
    monkeypatch.setenv("ETFARM_DATA_DIR", str(maker.warehouse.parent))
    monkeypatch.setattr("flows.notebook.Farm.__init__.__defaults__", ("var", maker.warehouse))
    content = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]
    # then each runs, in order, and the last has the comparison
    known: dict[str, object] = {}
    for cell in cells:
        exec(compile(cell, "docs/notebook.ipynb", "exec"), known)
    assert "1 of 1 series slower" in str(known["comparison"])


def test_a_view_a_session_and_a_comparison_are_frames(farm: Farm, maker: BundleMaker, command: Command) -> None:
    assert list(farm.views()["view_name"]).count("session_latency") == 1
    sessions = farm.view("session_latency")
    assert len(sessions) == 10
    with pytest.raises(InputError, match="unknown view `sesion_latency`; did you mean `session_latency`"):
        farm.view("sesion_latency")
    # and a session has its facts, runs and operators
    session_id = sessions["session_id"][0]
    session = farm.session(session_id)
    assert session.facts["session_id"] == session_id
    assert set(session.runs["session_id"]) == {session_id}
    assert len(session.operators) > 0
    with pytest.raises(InputError, match="no session has the id `x`"):
        farm.session("x")
    # and a comparison is the answer of the command line
    found = farm.compare("fp16", "fp32")
    printed = command("compare", "fp16", "fp32", "--warehouse", maker.warehouse).out
    assert printed.splitlines()[0] == found.answer
    (row,) = found.series.to_dict("records")
    assert (row["word"], row["sessions_a"], row["sessions_b"]) == ("slower", 5, 5)
    assert row["low"] < row["ratio"] < row["high"]
    assert (row["answer"], row["in_words"] in printed) == ("different", True)
