"""The generated farm, in small: its verdicts are those that its generator planned."""

from pathlib import Path
from typing import Any

import duckdb

from sql.warehouse import open_read_only
from tests.fixtures.big_farm import write_big_farm


def verdicts_of(farm: duckdb.DuckDBPyConnection, device: str) -> list[tuple[Any, ...]]:
    """The verdict on each model in the newest night."""
    asked = "SELECT model, verdict, day(since) FROM verdict WHERE is_newest AND device = ? ORDER BY ALL"
    return farm.execute(asked, [device]).fetchall()


def test_slower_models_are_regressions_a_slow_device_is_named_and_an_emulated_one_not_judged(tmp_path: Path) -> None:
    # given 3 devices (the last is emulated), 4 models, 12 nights
    write_big_farm(tmp_path / "warehouse.duckdb", devices=3, models=4, nights=12)
    with open_read_only(tmp_path / "warehouse.duckdb") as farm:
        assert verdicts_of(farm, "phone-001") == [
            ("bert_03", "regression", 20), ("resnet_01", "no change", None),
            ("unet_04", "regression", 18), ("vit_02", "no change", None),
        ]  # fmt: skip
        slower = dict(row[:2] for row in verdicts_of(farm, "phone-002"))
        assert (slower["resnet_01"], slower["vit_02"]) == ("device slower", "device slower")
        assert verdicts_of(farm, "phone-003") == []
        for view in ("session_latency", "operator_time", "module_time", "cell_overview", "session_overview"):
            series = f"SELECT count(DISTINCT (device, model)) FROM {view} WHERE night = DATE '2026-11-20'"
            assert farm.execute(series).fetchall() == [(12,)], view
