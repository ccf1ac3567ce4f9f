"""What may be pooled: only sessions of one content; where one name covers several, each is listed."""

from pathlib import Path
from typing import Any

import pytest

from sql.schema import sql_files
from sql.warehouse import writing
from tasks.results.sentences import describe_differences
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, LINEAR, MEAN, BundleMaker, profile_of

US = 1_000
MS = 1_000_000
PUBLIC_BY_CELL = (
    "run_latency", "session_latency", "category_share", "operator_time", "portable_weight", "sme2_operator_coverage",
    "sme2_coverage", "kernel_use", "series_latency", "session_overview", "failed_session", "session_accuracy",
    "session_conditions", "session_profile",
)  # fmt: skip


# Every way in which the content of two sessions of one name can differ, and how the farm describes it.
DIFFERENCES: list[tuple[dict[str, Any], str]] = [
    ({"model__pte_sha256": "p2"}, "pte p2"),
    ({"model__pte_sha256": None}, "pte unknown"),
    ({"model__seed": 7}, "seed 7"),
    ({"runner__runner_sha256": "r2"}, "runner r2"),
    ({"device__facts": {"model": "board", "build": "b1", "serial": "s2"}}, "serial s2"),
    ({"device__facts": {"model": "board", "build": "b2"}}, "build b2"),
    ({"device__emulated": True}, "emulated true"),
    ({"runs": 2, "warmup_executions": 2}, "executions 3, warm-up 2"),
    ({"runs": 2}, "executions 3"),
]


@pytest.mark.parametrize(
    ("change", "difference"), DIFFERENCES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_contents_that_share_a_name_are_never_pooled_and_what_differs_is_named(
    maker: BundleMaker, change: dict[str, Any], difference: str
) -> None:
    # given a sweep in which one name covers two contents, a fast one and a slow one
    runs, changes = change.get("runs", 1), {name: value for name, value in change.items() if name != "runs"}
    maker.session([(2 * US, {CONVOLUTION: 1 * US})])
    maker.session([(90 * US, {CONVOLUTION: 80 * US})] * runs, **changes)
    maker.load()
    # then each has its own row with its own figures
    cells = maker.ask("SELECT median_ms FROM session_latency JOIN cell_overview USING (cell) ORDER BY 1")
    assert cells == [(0.002,), (0.09,)]
    shares = "SELECT cell, round(sum(share), 9), any_value(sessions) FROM {} GROUP BY cell"
    for view in ("category_share", "operator_time"):
        assert [row[1:] for row in maker.ask(shares.format(view))] == [(1.0, 1), (1.0, 1)]
    assert maker.ask("SELECT round(execute_ms, 6), sessions FROM portable_weight ORDER BY 1") == [(0.002, 1), (0.09, 1)]
    # and what differs is named
    assert difference in [
        describe_differences(differs) for (differs,) in maker.ask("SELECT differs FROM cell_overview")
    ]


def test_the_times_on_the_terminal_distinguish_contents_of_one_name(maker: BundleMaker) -> None:
    # given a model that was changed between two starts of a sweep, three sessions each
    for _ in range(3):
        maker.session([2 * US])
        maker.session([90 * US], model__pte_sha256="changed0" * 8)
    maker.load()
    # when its times are printed
    (times,) = [file.text for file in sql_files("queries") if file.name == "times"]
    rows = maker.ask(times.replace("$sweep_id", "'smoke-2026-11-20'"))
    # then there are two lines and no figure between the two
    assert [(row[5], row[7], row[10]) for row in rows] == [
        (3, 0.09, [{"fact": "pte", "value": "changed0"}]),
        (3, 0.002, [{"fact": "pte", "value": "p1"}]),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"device__labels": {"rack": "2"}},
        {"device__facts": {"model": "board", "build": "b1", "hostname": "moved", "cores": 4, "memory_bytes": 5}},
        {"model__versions": {"torch": "2"}},
        {"farm_version": "2"},
    ],
)
def test_what_does_not_change_the_measurement_does_not_split_a_cell(maker: BundleMaker, change: dict[str, Any]) -> None:
    maker.session([MS])
    maker.session([3 * MS], **change)
    maker.session([MS], threads=2)
    maker.load()
    # then a name with one content needs nothing that distinguishes it
    cells = maker.ask("SELECT threads, sessions, differs FROM cell_overview ORDER BY ALL")
    assert cells == [(1, 2, None), (2, 1, None)]
    assert maker.ask("SELECT sessions FROM portable_weight ORDER BY threads") == [(2,), (1,)]


def test_two_devices_of_one_name_never_meet_in_a_pair(maker: BundleMaker) -> None:
    # given SME2 off on one build and SME2 on on another
    maker.session([(90 * US, {CONVOLUTION: 80 * US})], variant="sme2_off")
    after = {"model": "board", "build": "b2"}
    maker.session([(30 * US, {CONVOLUTION_SME2: 20 * US})], variant="sme2_on", device__facts=after)
    maker.load()
    # then there is no speed-up, and nothing shifts
    assert maker.ask("SELECT speedup FROM sme2_speedup") == [(None,), (None,)]
    assert maker.ask("SELECT * FROM operator_speedup") == []
    assert maker.ask("SELECT * FROM bottleneck_shift") == []


def test_one_hot_session_of_five_moves_no_figure(maker: BundleMaker) -> None:
    # given four alike sessions and one in which a heated device spends its time outside of the operators
    for _ in range(4):
        maker.session([(100 * US, {CONVOLUTION: 60 * US, LINEAR: 20 * US})])
    maker.session([(900 * US, {CONVOLUTION: 130 * US, LINEAR: 40 * US})])
    maker.load()
    # then the figures are those of the four
    assert maker.ask("SELECT category, time_ms, round(share, 9) FROM category_share ORDER BY time_ms DESC, 1") == [
        ("Convolution", 0.06, 0.6),
        ("GEMM", 0.02, 0.2),
        ("Unattributed", 0.02, 0.2),
    ]


def test_an_operator_that_the_typical_sessions_lack_is_no_part_of_the_time(maker: BundleMaker) -> None:
    for us, operators in ((99, {}), (100, {}), (101, {MEAN: 30 * US})):
        maker.session([(us * US, {CONVOLUTION: 50 * US, **operators})])
    maker.load()
    assert maker.ask("SELECT time_ms, calls_per_run FROM operator_time WHERE kind = 'portable'") == []
    assert maker.ask("SELECT sum(share) FROM operator_time") == [(pytest.approx(1.0),)]


def test_times_below_the_clock_of_a_delegate_are_marked(maker: BundleMaker) -> None:
    # given a delegated operator of which most calls last 0 microseconds, and one that lasts long enough
    maker.session([(20 * US, {CONVOLUTION: 0, LINEAR: 9 * US})] * 3)
    maker.load()
    # then the first is below the resolution, and what is unattributed may be less by a microsecond per delegated call
    rows = maker.ask("SELECT category, time_ms, resolution_ms, below_resolution FROM category_share ORDER BY 1")
    assert rows == [
        ("Convolution", 0.0, 0.001, True),
        ("GEMM", 0.009, 0.001, False),
        ("Unattributed", 0.011, 0.002, False),
    ]


def test_a_series_has_a_row_per_cell_and_marks_the_newest(maker: BundleMaker) -> None:
    maker.session([10 * MS], started_at="2026-11-20T01:00:00+00:00")
    maker.session([50 * MS], started_at="2026-11-20T03:00:00+00:00", model__pte_sha256="p2")
    maker.session([20 * MS], started_at="2026-11-20T02:00:00+00:00", model__pte_sha256="p3")
    maker.load()
    rows = maker.ask("SELECT pte_sha256, median_ms, sessions, is_newest FROM series_latency ORDER BY 1")
    assert rows == [("p1", 10.0, 1, False), ("p2", 50.0, 1, True), ("p3", 20.0, 1, False)]
    assert maker.ask("SELECT count(DISTINCT series_id) FROM series_latency") == [(1,)]


def test_public_views_can_be_joined_by_cell_without_multiplying_rows(maker: BundleMaker) -> None:
    maker.session([(90 * US, {CONVOLUTION: 80 * US})], files={})
    maker.session([MS], mode="profile", files=profile_of(some_gemm=3))
    maker.session([MS], status="failed", exit_code=1, reason="broke", reason_code="broke")
    maker.load()
    for view in PUBLIC_BY_CELL:
        counted = f"SELECT count(*), count(cell) FROM {view}"
        assert maker.ask(counted) == maker.ask(f"{counted} JOIN cell_overview USING (cell)")
        assert maker.ask(f"SELECT pte_sha256, runner_sha256, serial, build FROM {view} LIMIT 0") == []


def test_the_id_of_a_cell_is_the_same_in_every_warehouse(maker: BundleMaker, tmp_path: Path) -> None:
    # given the same sessions, loaded in another order
    first = maker.session([MS])
    second = maker.session([MS], threads=2)
    other = BundleMaker(tmp_path / "other")
    maker.load(first, second)
    other.load(second)
    other.load(first)
    # then each cell has the same id
    ids = "SELECT threads, cell, pair FROM cell_overview ORDER BY 1"
    assert maker.ask(ids) == other.ask(ids)


def test_what_explains_a_change_is_known_of_every_cell_also_where_no_session_succeeded(maker: BundleMaker) -> None:
    # given a cell with a result, and one whose only session failed
    maker.session([MS])
    maker.session([MS], status="failed", exit_code=1, reason="broke", reason_code="broke", threads=2)
    maker.load()
    # then both have facts: those of the second are what it consists of
    facts = "SELECT threads, facts.pte_sha256 IS NOT NULL FROM _cell_facts JOIN cell USING (cell) ORDER BY threads"
    assert maker.ask(facts) == [(1, True), (2, True)]


def test_a_warehouse_from_before_cells_gets_them(maker: BundleMaker) -> None:
    # given a warehouse whose sessions have no cells yet
    for pte in ("p1", "p1", "p2"):
        maker.session([(90 * US, {CONVOLUTION: 80 * US})], model__pte_sha256=pte)
    maker.load()
    views = ("operator_time", "series_latency", "cell_overview", "cell_accuracy")
    before = [maker.ask(f"FROM {view} ORDER BY ALL") for view in views]
    assert len(before[0]) > 0
    with writing(maker.warehouse) as connection:
        for table in ("cell", "session_cell", "cell_operator", "cell_made_from", "cell_output", "series_night"):
            connection.execute(f"DELETE FROM {table}")
        connection.execute("DELETE FROM schema_part WHERE name = 'cells'")
    # when the farm opens it to write
    with writing(maker.warehouse):
        pass
    # then it is as if each session had been loaded today
    assert [maker.ask(f"FROM {view} ORDER BY ALL") for view in views] == before


def test_the_rule_is_stated_once() -> None:
    files = [file for folder in ("views", "macros", "queries", "loading") for file in sql_files(folder)]
    assert [file.name for file in files if "sha256(" in file.text] == ["cell_add"]
