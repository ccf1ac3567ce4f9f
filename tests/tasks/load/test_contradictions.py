"""Measurements that contradict themselves: refused in one sentence, or counted once, and never as another number."""

import math
from itertools import product

import pytest

from tasks.rows import rows
from tests.fixtures.etdump_builder import LOADING, METHOD, Profile, Run, build_etdump
from tests.fixtures.warehouse import CONVOLUTION, MEAN, BundleMaker


def test_a_measurement_that_contradicts_itself_is_refused_in_its_bundle_and_alone(maker: BundleMaker) -> None:
    # given an execution that is shorter than its operators, and two methods by turns
    short = maker.session([(100, {CONVOLUTION: 110})])
    execution = Run([Profile(METHOD, 0, 100, instruction=0)])
    turns = build_etdump([LOADING, execution, LOADING, execution])
    folder = maker.session([100], files={"model.etdump": turns})
    sentences = {
        short: "Method::execute lasts 100 ns in execution 1, 10 ns less than what ran inside it",
        folder: "the process loaded 2 methods",
    }
    for each, sentence in sentences.items():
        for path in each, each / "model.etdump":
            result = maker.load(path)
            assert (result.loaded, result.already) == (0, 0)
            [(_, refused)] = result.refused
            assert sentence in refused
            assert refused.startswith(f"{each}")
    assert maker.ask("SELECT count(*) FROM session") == [(0,)]


@pytest.mark.thorough
def test_executions_of_0_ns_make_no_figure_infinite_or_undefined(
    maker: BundleMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given sessions whose median is 0 or, loaded before such were refused, whose every execution lasts 0 ns
    monkeypatch.setattr(rows, "contradiction", lambda *_: None)
    for last_ns, variant, index in product((10, 0), ("sme2_on", "sme2_off"), range(2)):
        runs = [(0, {MEAN: 0}), (0, {MEAN: 0}), (last_ns, {MEAN: 0})]
        maker.session(runs, variant=variant, repetition=index, model__name=f"last-{last_ns}")
    assert maker.load().loaded == 8
    # then no number of any view is infinite or not a number
    for (view,) in maker.ask("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1"):
        for row in maker.ask(f'SELECT * FROM "{view}"'):
            assert all(math.isfinite(value) for value in row if isinstance(value, float)), (view, row)
    assert maker.ask("SELECT DISTINCT median_ms FROM session_latency") == [(0.0,)]


def test_a_bundle_that_lost_its_session_is_refused_not_loaded_as_a_loose_etdump(maker: BundleMaker) -> None:
    # given two sessions of a cell, the second of which lost its session.json
    maker.session([100], repetition=0)
    lost = maker.session([900], repetition=1, files={"stdout.txt": b""})
    (lost / "session.json").unlink()
    # when all are loaded, twice
    sentence = f"{lost}: damaged bundle: session.json is missing"
    for loaded, already in (1, 0), (0, 1):
        result = maker.load()
        assert (result.loaded, result.already) == (loaded, already)
        assert [(path, refused.partition(";")[0]) for path, refused in result.refused] == [(lost, sentence)]
    # then only the complete one counts, and no loose session appeared
    assert maker.ask("SELECT device, median_ms FROM session_latency") == [("host", 1e-4)]
    # and the ETDump that is named is loaded as what is left of it: a loose one
    assert maker.load(lost / "model.etdump").loaded == 1
    assert maker.ask("SELECT DISTINCT device FROM session_latency ORDER BY 1") == [("host",), ("unknown",)]
