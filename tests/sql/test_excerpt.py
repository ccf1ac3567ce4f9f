"""An excerpt shows of its models and its sweep what the whole warehouse shows of them."""

from collections import defaultdict
from collections.abc import Iterator

import pytest

from sql.cage.connection import QueryRunner, open_readable
from sql.excerpt import Excerpt
from sql.readable import ReadableFile
from tests.fixtures.report import fill_every_section
from tests.fixtures.warehouse import BundleMaker

SWEEP = "smoke-2026-11-20"
VIEWS = (
    "session_latency", "session_overview", "session_conditions", "session_readiness", "failed_session", "cell_overview",
    "cell_accuracy", "operator_time", "module_time", "operator_source", "operator_delegation", "portable_weight",
    "kernel_use", "sme2_speedup", "sme2_coverage", "bottleneck_shift", "thread_scaling", "layer_drift",
    "generation_speed", "delegate_comparison",
)  # fmt: skip


@pytest.fixture(scope="module", params=["of this farm", "from elsewhere"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryRunner]:
    maker = BundleMaker(tmp_path_factory.mktemp("filled"))
    for night in ("2026-11-20", "2026-11-21"):
        fill_every_section(maker, sweep={"sweep_id": f"smoke-{night}", "name": "smoke", "night": night})
    maker.load()
    with open_readable(ReadableFile(maker.warehouse, request.param == "of this farm", maker.warehouse)) as connection:
        yield connection


def rows_of(connection: QueryRunner, view: str) -> dict[tuple[str, str], list[str]]:
    """Return the rows of a view as texts, by sweep and model without its case."""
    answer = connection.execute(f"FROM {view}")
    columns = [name for name, *_ in answer.description or []]
    rows = defaultdict(list)
    for row in answer.fetchall():
        named = dict(zip(columns, row, strict=True))
        # of a sum, the order of its numbers changes the last digits
        text = "|".join(f"{value:.9g}" if isinstance(value, float) else str(value) for value in row)
        rows[named["sweep_id"], named["model"].partition("@")[0]].append(text)
    return {name: sorted(texts) for name, texts in rows.items()}


def test_a_view_of_an_excerpt_has_the_rows_of_its_models_and_no_others(whole: QueryRunner) -> None:
    measured = set(whole.execute("SELECT model, device FROM cell WHERE sweep_id = $sweep", {"sweep": SWEEP}).fetchall())
    models = sorted({model.partition("@")[0] for model, _ in measured})
    excerpt = Excerpt(whole)
    for half in (models[::2], models[1::2]):
        # when an excerpt is filled with one case of each of half of the models, after the other half
        chosen = {model.partition("@")[0]: model for model, _ in sorted(measured) if model.partition("@")[0] in half}
        excerpt.fill(SWEEP, {(model, device) for model in chosen.values() for _, device in measured})
        # then each view has all their cases, and nothing of any other model or sweep
        for view in VIEWS:
            expected = {name: rows for name, rows in rows_of(whole, view).items() if name in {(SWEEP, m) for m in half}}
            assert (view, rows_of(excerpt, view)) == (view, expected)


def test_an_excerpt_has_nothing_of_other_nights(whole: QueryRunner) -> None:
    excerpt = Excerpt(whole)
    excerpt.fill(SWEEP, {("mv2", "host"), ("toy", "host")})
    for table in ("series_verdict", "series_state"):
        count = f"SELECT count(*) > 0 FROM {table}"
        assert (whole.execute(count).fetchall(), excerpt.execute(count).fetchall()) == ([(True,)], [(False,)]), table
    excerpt.close()


def test_nothing_of_an_excerpt_is_left_in_the_process(whole: QueryRunner) -> None:
    databases = "SELECT count(*) FROM duckdb_databases()"
    before = whole.execute(databases).fetchall()
    Excerpt(whole).close()
    assert whole.execute(databases).fetchall() == before
