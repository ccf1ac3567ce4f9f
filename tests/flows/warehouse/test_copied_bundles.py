"""A plain copy of the bundles is a backup: docs/operations.md relies on it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from sql.warehouse import query
from tasks.maintain.prune import pack_sweep
from tests.fixtures.command import Etfarm, Kept
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN

VIEWS = "SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_')"


def rows_by_view(warehouse: Path) -> dict[str, list[tuple[Any, ...]]]:
    views = [row[0] for row in query(warehouse, VIEWS)[1]]
    return {view: query(warehouse, f'SELECT * FROM "{view}" ORDER BY ALL')[1] for view in views}


@pytest.mark.thorough
def test_a_warehouse_built_from_a_plain_copy_of_the_bundles_answers_the_same(
    kept: Kept, etfarm: Etfarm, tmp_path: Path
) -> None:
    # given a packed night, a night in folders, a forgotten session, two decisions, one of them revoked, and an
    # unfinished bundle
    nights = ("2026-01-02", "2026-11-20")
    for night in nights:
        sweep = {"sweep_id": f"smoke-{night}", "name": "smoke", "night": night}
        for index in range(2):
            kept.session([(1000 + index, {CONVOLUTION: 333, LINEAR: 77, MEAN: 19})] * 2, repetition=index, sweep=sweep)
    assert etfarm("warehouse", "load")[0] == 0
    assert etfarm("decisions", "forget", kept.session_ids()[1], "--reason", "wrong governor")[0] == 0
    assert etfarm("decisions", "reset-baseline", "--reason", "accepted")[0] == 0
    excluded = etfarm("decisions", "exclude", nights[1], "--reason", "heat")[1].partition(":")[0]
    assert etfarm("decisions", "revoke", excluded, "--reason", "was another night")[0] == 0
    pack_sweep(kept.bundles, f"smoke-{nights[0]}")
    (kept.bundles / f"smoke-{nights[1]}" / ".part-1-x").mkdir()
    # when the bundles are copied, and a warehouse is built from the copy
    copy = tmp_path / "copy"
    copy.mkdir()
    subprocess.run(["cp", "-a", str(kept.bundles), str(copy)], check=True)
    places = ("--warehouse", copy / "w.duckdb", "--bundles", copy / "bundles")
    code, printed = etfarm("warehouse", "rebuild", *places)
    # then it has every session, and every public view has the same rows
    assert (code, printed.splitlines()[0]) == (0, "3 sessions, nothing to compare with")
    rows = rows_by_view(kept.warehouse)
    assert (len(rows["session_overview"]), len(rows["decision_overview"])) == (3, 2)
    assert rows_by_view(copy / "w.duckdb") == rows
    assert etfarm("warehouse", "check", *places)[0] == 0
