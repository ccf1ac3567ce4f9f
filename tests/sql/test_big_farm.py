"""The generated farm, in small: its verdicts are those that its generator planned."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sql.warehouse import open_read_only
from tests.fixtures.big_farm import write_big_farm


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """3 devices (the last is emulated), 4 models, 12 nights."""
    warehouse: Path = tmp_path_factory.mktemp("farm") / "warehouse.duckdb"
    write_big_farm(warehouse, devices=3, models=4, nights=12)
    with open_read_only(warehouse) as connection:
        yield connection


def newest(farm: duckdb.DuckDBPyConnection, device: str) -> dict[str, str]:
    """The verdict on each model in the newest night."""
    rows = farm.execute("SELECT model, verdict FROM verdict WHERE is_newest AND device = ?", [device]).fetchall()
    return dict(rows)


def test_slower_models_are_regressions_and_the_others_unchanged(farm: duckdb.DuckDBPyConnection) -> None:
    assert newest(farm, "phone-001") == {
        "resnet_01": "no change",
        "vit_02": "no change",
        "bert_03": "regression",
        "unet_04": "regression",
    }
    since = farm.execute(
        "SELECT model, since::VARCHAR FROM verdict WHERE is_newest AND device = 'phone-001' AND since IS NOT NULL"
    ).fetchall()
    assert sorted(since) == [("bert_03", "2026-11-20"), ("unet_04", "2026-11-18")]


def test_a_slow_device_is_called_slow_where_the_model_is_the_same(farm: duckdb.DuckDBPyConnection) -> None:
    verdicts = newest(farm, "phone-002")
    assert (verdicts["resnet_01"], verdicts["vit_02"]) == ("device slower", "device slower")


def test_an_emulated_device_is_measured_but_not_judged(farm: duckdb.DuckDBPyConnection) -> None:
    assert newest(farm, "phone-003") == {}
    assert farm.execute("SELECT count(DISTINCT night) FROM cell_overview WHERE device = 'phone-003'").fetchall() == [
        (12,)
    ]


@pytest.mark.parametrize(
    "view", ["session_latency", "operator_time", "module_time", "cell_overview", "session_overview", "series_overview"]
)
def test_views_answer_for_every_series_of_the_newest_night(farm: duckdb.DuckDBPyConnection, view: str) -> None:
    night = "last_night" if view == "series_overview" else "night"
    devices = 2 if view == "series_overview" else 3
    answer = farm.execute(
        f"SELECT count(DISTINCT (device, model)) FROM {view} WHERE {night} = DATE '2026-11-20'"
    ).fetchall()
    assert answer == [(4 * devices,)]


@pytest.mark.thorough
def test_a_farm_of_the_same_size_is_the_same(farm: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    write_big_farm(tmp_path / "again.duckdb", devices=3, models=4, nights=12)
    text = "SELECT count(*), bit_xor(hash(session_id, execute_ns)) FROM session JOIN session_time USING (session_key)"
    with open_read_only(tmp_path / "again.duckdb") as again:
        assert again.execute(text).fetchall() == farm.execute(text).fetchall()
