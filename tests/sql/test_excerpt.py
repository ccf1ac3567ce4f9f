"""An excerpt says of its models and its sweep what the whole warehouse says of them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from sql.excerpt import Excerpt
from sql.schema import sql_files
from sql.warehouse import open_read_only
from tests.fixtures.described_farm import DescribedFarm, write_farm

# What other nights decide is not in an excerpt.
_OF_NIGHTS = {"series_latency", "decision_overview", *(file.name for file in sql_files("views/verdicts"))}
# What rows that are not about a model in a sweep would have to agree with is not stated by the view.
_NOT_OF_MODELS = {
    "sweep_overview",
    "device_overview",
    "device_wait",
    "runner_overview",
    "model_overview",
    "unknown_operator",
}
VIEWS = sorted(
    file.name
    for file in sql_files("views")
    if not file.name.startswith("_") and file.name not in _OF_NIGHTS | _NOT_OF_MODELS
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    described = DescribedFarm(tmp_path_factory.mktemp("described"))
    write_farm(described)
    with open_read_only(described.warehouse) as connection:
        yield connection


@pytest.fixture(scope="module")
def excerpt(whole: duckdb.DuckDBPyConnection) -> Excerpt:
    return Excerpt(whole)


SWEEPS = ("nightly-2026-11-05", "smoke-2026-11-20", "smoke-2026-11-21")


def models_of(connection: duckdb.DuckDBPyConnection, sweep_id: str) -> list[str]:
    """The models of a sweep, by name without that of a method."""
    rows = connection.execute("SELECT model FROM cell WHERE sweep_id = $1", [sweep_id]).fetchall()
    return sorted({model.partition("@")[0] for (model,) in rows})


def measured(connection: duckdb.DuckDBPyConnection, sweep_id: str, models: list[str]) -> set[tuple[str, str]]:
    """Models of a sweep, each with every device that it was measured on."""
    rows = connection.execute("SELECT model, device FROM cell WHERE sweep_id = $1", [sweep_id]).fetchall()
    return {(model, device) for model, device in rows if model.partition("@")[0] in models}


def rows_of(connection: duckdb.DuckDBPyConnection, view: str) -> dict[tuple[str, str], list[str]]:
    """The rows of a view by sweep and model."""
    answer = connection.execute(f"FROM {view}")
    columns = [name for name, *_ in answer.description or []]
    found = defaultdict(list)
    for row in answer.fetchall():
        named = dict(zip(columns, row, strict=True))
        found[named["sweep_id"], named["model"].partition("@")[0]].append(shown(row))
    return {name: sorted(rows) for name, rows in found.items()}


def shown(row: tuple[Any, ...]) -> str:
    """A row as text; of a sum, the order of its numbers changes the last digits."""
    return "|".join(f"{value:.9g}" if isinstance(value, float) else str(value) for value in row)


def test_a_view_of_an_excerpt_has_the_rows_of_the_whole_and_no_others(
    whole: duckdb.DuckDBPyConnection, excerpt: Excerpt
) -> None:
    expected = {view: rows_of(whole, view) for view in VIEWS}
    for sweep_id in SWEEPS:
        models = models_of(whole, sweep_id)
        for part in (models[::2], models[1::2]):
            # when an excerpt is filled with half of the models of a sweep, after another one
            excerpt.fill(sweep_id, measured(whole, sweep_id, part))
            # then each view says the same of them, and nothing of any other
            wanted = {(sweep_id, model) for model in part}
            for view in VIEWS:
                of_part = {name: rows for name, rows in expected[view].items() if name in wanted}
                assert (view, rows_of(excerpt.connection, view)) == (view, of_part)


def test_an_excerpt_of_one_method_has_the_others_of_its_model(
    whole: duckdb.DuckDBPyConnection, excerpt: Excerpt
) -> None:
    excerpt.fill(
        "smoke-2026-11-20",
        {("llm@decode8", device) for _, device in measured(whole, "smoke-2026-11-20", ["llm"])},
    )
    speed = "SELECT count(prefill_cell), count(decode_cell) FROM generation_speed WHERE model = 'llm'"
    expected = whole.execute(f"{speed} AND sweep_id = 'smoke-2026-11-20'").fetchall()
    assert excerpt.connection.execute(speed).fetchall() == expected
    assert min(expected[0]) > 0
