"""`etfarm sweep --night A..B`: a new model is measured in the stored nights that lack it, once."""

import json
from datetime import date

import pytest

from flows.backfill import backfill
from flows.cli.backfill import request_backfill
from flows.server.states import state_data
from tasks.measure.sweep_filter import SweepFilter
from tests.fixtures.command import Command
from tests.fixtures.documented import assert_documented
from tests.fixtures.stand_in import GOOD, OPERATOR, etdump_of, publish_stand_in
from tests.fixtures.stand_in_farm import SWEEP, StandInFarm

KEPT, GONE = date(2026, 11, 18), date(2026, 11, 19)


@pytest.mark.thorough
def test_a_new_model_is_measured_in_the_nights_whose_runner_is_kept_and_a_second_start_measures_nothing(
    stand_in_farm: StandInFarm, command: Command
) -> None:
    # given two nights, of which the first one's runner is kept
    farm = stand_in_farm
    for number in range(10, 20):
        (farm.folder / f"etdumps/{number}").write_bytes(etdump_of(3, f"{OPERATOR}{number}"))
    farm.sweep(night=GONE)
    script = f'model=$(ls -d "{farm.folder}"/etdumps/* | head -n 1)\n{GOOD}rm "$model" # kept\n'
    farm.runner = publish_stand_in(farm.workspace.runners, script)
    farm.sweep(night=KEPT)
    # and a new model in the sweep
    farm.sweep_file.write_text(SWEEP.replace("[linear]", "[linear, conv]"), encoding="utf-8")
    words = ("sweep", farm.sweep_file, "--night", f"{KEPT}..{GONE}", "--inventory", farm.inventory)
    place = ("--data-dir", farm.data_dir)
    plan = command(*words, "--model", "conv", "--dry-run", "--format", "json", *place)
    document = json.loads(plan.out)
    assert_documented("sweep --night A..B", document)
    kept, gone = document["nights"]
    assert (kept["sessions"], kept["skipped"]) == (2, None)
    assert gone["skipped"].startswith("no runner of that night: ")
    files = (str(farm.inventory), farm.workspace)
    request = request_backfill(farm.sweep_file, words[3], SweepFilter(models=["conv"]), *files).with_priority(7)
    assert request.measured_spec.priority == 7
    # when it is measured later, twice
    first, again = (state_data(backfill(request, return_state=True)) for _ in range(2))
    assert (first.message, again.message) == ("sessions: 2 succeeded, 1 discarded", "sessions: 3 already done")
    # then only that night has it, marked
    rows = "SELECT night, model, sweep_id FROM session_latency WHERE model = 'conv'"
    assert farm.ask(rows) == [(KEPT, "conv", f"states-{KEPT}.later")] * 2
    marks = "SELECT DISTINCT measured_later IS NOT NULL FROM verdict WHERE model = 'conv'"
    assert farm.ask(marks) == [(True,)]


REFUSED = {
    ("2026-11-20..2026-11-18", "--model", "linear"): "the first night is after the last",
    ("2026-11-18..2026-11-20",): "needs --model",
    ("2026-11-18..2026-11-20", "--model", "linear", "--again"): "leave out --again",
    ("2026-11-18..2026-11-20", "--model", "linear", "--fail-on", "regression"): "leave out --fail-on",
    ("2026-11-18..2999-01-01", "--model", "linear"): "is in the future",
    ("2026-11-18..", "--model", "linear"): "`` is not a night",
    ("2026-11-18..2026-11-20", "--model", "linear", "--dry-run"): "no night of the sweep states from 2026-11-18",
}


@pytest.mark.parametrize(("words", "reason"), REFUSED.items(), ids=REFUSED.values())
def test_a_range_that_cannot_be_measured_is_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, command: Command, words: tuple[str, ...], reason: str
) -> None:
    folder = tmp_path_factory.mktemp("range")
    (folder / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    (folder / "inventory.yaml").write_text("devices: [{name: here, transport: local}]", encoding="utf-8")
    place = ("--inventory", folder / "inventory.yaml", "--data-dir", folder / "var")
    done = command("sweep", folder / "sweep.yaml", "--night", *words, *place)
    assert (done.code, done.out) == (2, "")
    assert reason in done.err
