"""What may be pooled: only sessions of one content; where one name covers several, each is listed."""

from typing import Any

import pytest

from sql.schema import sql_files
from sql.warehouse import writing
from tasks.maintain.check import CELL_AGGREGATES
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
    ({"command": ["taskset", "f", "trees/r1/executor_runner"]}, "launcher taskset f"),
]


# What does not change the measurement does not split a cell.
EQUAL: list[dict[str, Any]] = [
    {},
    {"device__labels": {"rack": "2"}},
    {"device__facts": {"model": "board", "build": "b1", "hostname": "moved", "cores": 4, "memory_bytes": 5}},
    {"model__versions": {"torch": "2"}},
    {"farm_version": "2"},
]


def write_sessions(maker: BundleMaker) -> None:
    """Write the sessions of all questions, which have a model each."""
    # a sweep in which one name covers two contents, a fast one and a slow one
    for change, difference in DIFFERENCES:
        runs, changes = change.get("runs", 1), {name: value for name, value in change.items() if name != "runs"}
        maker.session([(2 * US, {CONVOLUTION: 1 * US})], model__name=difference)
        maker.session([(90 * US, {CONVOLUTION: 80 * US})] * runs, model__name=difference, **changes)
    for number, change in enumerate(EQUAL):
        for time_ns, changes in ((MS, {}), (3 * MS, change), (MS, {"threads": 2})):
            maker.session([time_ns], model__name=f"equal {number}", **changes)
    # a model that was changed between two starts of a sweep, three sessions each
    for _ in range(3):
        for time_ns, pte in ((2 * US, "p1"), (90 * US, "changed0" * 8)):
            maker.session([time_ns], model__pte_sha256=pte, sweep__sweep_id="smoke-2026-11-20-2")
    # SME2 off on one build and SME2 on on another
    maker.session([(90 * US, {CONVOLUTION: 80 * US})], variant="sme2_off", model__name="pair")
    facts = {"model": "board", "build": "b2"}
    on: dict[str, Any] = {"variant": "sme2_on", "model__name": "pair", "device__facts": facts}
    maker.session([(30 * US, {CONVOLUTION_SME2: 20 * US})], **on)
    usual = (100 * US, {CONVOLUTION: 60 * US, LINEAR: 20 * US})
    glitch = (5000 * US, {CONVOLUTION: 60 * US, LINEAR: 4930 * US})
    # four alike sessions and one in which a heated device spends its time outside of the operators
    for run in (*[usual] * 4, (900 * US, {CONVOLUTION: 130 * US, LINEAR: 40 * US})):
        maker.session([run], model__name="hot")
    maker.session([usual, glitch, usual], model__name="one slow run")
    maker.session([glitch], model__name="one slow session")
    maker.session([usual], model__name="one slow session")
    for us, operators in ((99, {}), (100, {}), (101, {MEAN: 30 * US})):
        maker.session([(us * US, {CONVOLUTION: 50 * US, **operators})], model__name="lacking")
    # a delegated operator of which most calls last 0 microseconds, and one that lasts long enough
    maker.session([(20 * US, {CONVOLUTION: 0, LINEAR: 9 * US})] * 3, model__name="below the clock")
    for hour, ms, pte in ((1, 10, "p1"), (3, 50, "p2"), (2, 20, "p3")):
        started_at = f"2026-11-20T0{hour}:00:00+00:00"
        maker.session([ms * MS], started_at=started_at, model__pte_sha256=pte, model__name="newest")
    # a profile, and a cell whose only session failed
    maker.session([MS], mode="profile", files=profile_of(some_gemm=3), model__name="profiled")
    maker.session([MS], status="failed", exit_code=1, reason="broke", reason_code="broke", model__name="failed")


def test_contents_that_share_a_name_are_never_pooled_and_what_differs_is_named(farm: BundleMaker) -> None:
    # then each has its own row with its own figures
    rows = "(SELECT model, list(({}) ORDER BY {}) FROM {} GROUP BY ALL)"
    per_cell = (
        "(SELECT model, cell, round(sum(share), 9) AS share, any_value(sessions) AS sessions FROM {} GROUP BY ALL)"
    )
    for columns, view, expected in (
        ("median_ms", "session_latency", [0.002, 0.09]),
        ("round(execute_ms, 6), sessions", "portable_weight", [(0.002, 1), (0.09, 1)]),
        ("share, sessions", per_cell.format("category_share"), [(1.0, 1), (1.0, 1)]),
        ("share, sessions", per_cell.format("operator_time"), [(1.0, 1), (1.0, 1)]),
    ):
        figures = dict(farm.ask(rows.format(columns, columns, view)))
        assert {model: figures[model] for _, model in DIFFERENCES} == {model: expected for _, model in DIFFERENCES}
    # and what differs is named
    named = {
        (model, describe_differences(facts)) for model, facts in farm.ask("SELECT model, differs FROM cell_overview")
    }
    assert {(model, model) for _, model in DIFFERENCES} <= named


def test_the_times_on_the_terminal_distinguish_contents_of_one_name(farm: BundleMaker) -> None:
    (times,) = [file.text for file in sql_files("queries") if file.name == "times"]
    rows = farm.ask(times.replace("$sweep_id", "'smoke-2026-11-20-2'"))
    # then there are two lines and no figure between the two
    assert [(row[5], row[7], row[10]) for row in rows] == [
        (3, 0.09, [{"fact": "pte", "value": "changed0"}]),
        (3, 0.002, [{"fact": "pte", "value": "p1"}]),
    ]


def test_what_does_not_change_the_measurement_does_not_split_a_cell(farm: BundleMaker) -> None:
    # then a name with one content needs nothing that distinguishes it
    cells = "SELECT threads, sessions, differs, count(*) FROM cell_overview WHERE model LIKE 'equal%' GROUP BY ALL"
    assert farm.ask(f"{cells} ORDER BY ALL") == [(1, 2, None, len(EQUAL)), (2, 1, None, len(EQUAL))]
    weights = (
        "SELECT threads, sessions, count(*) FROM portable_weight WHERE model LIKE 'equal%' GROUP BY ALL ORDER BY ALL"
    )
    assert farm.ask(weights) == [(1, 2, len(EQUAL)), (2, 1, len(EQUAL))]


def test_two_devices_of_one_name_never_meet_in_a_pair(farm: BundleMaker) -> None:
    # then there is no speed-up, and nothing shifts
    assert farm.ask("SELECT speedup FROM sme2_speedup WHERE model = 'pair'") == [(None,), (None,)]
    for view in ("operator_speedup", "bottleneck_shift"):
        assert farm.ask(f"SELECT * FROM {view} WHERE model = 'pair'") == []


ALIKE = [("Convolution", 0.06, 0.6, False), ("GEMM", 0.02, 0.2, False), ("Unattributed", 0.02, 0.2, False)]


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        # the figures are those of the four sessions that are alike; of three runs that in the middle; of two sessions
        # that of the faster one
        *((model, ALIKE) for model in ("hot", "one slow run", "one slow session")),
        # an operator that the typical sessions lack is no part of the time
        ("lacking", [("Convolution", 0.05, 0.5, False), ("Unattributed", 0.05, 0.5, False)]),
        # what is unattributed may be less by a microsecond per delegated call
        (
            "below the clock",
            [("Convolution", 0.0, 0.0, True), ("GEMM", 0.009, 0.45, False), ("Unattributed", 0.011, 0.55, False)],
        ),
    ],
)
def test_the_shares_of_a_cell_are_those_of_its_typical_sessions(
    farm: BundleMaker, model: str, rows: list[tuple[Any, ...]]
) -> None:
    columns = "category, round(time_ms, 9), round(share, 9), below_resolution"
    assert farm.ask(f"SELECT {columns} FROM category_share WHERE model = '{model}' ORDER BY 1") == rows


def test_a_series_has_a_row_per_cell_and_marks_the_newest(farm: BundleMaker) -> None:
    columns = "pte_sha256, median_ms, sessions, is_newest"
    rows = farm.ask(f"SELECT {columns} FROM series_latency WHERE model = 'newest' ORDER BY 1")
    assert rows == [("p1", 10.0, 1, False), ("p2", 50.0, 1, True), ("p3", 20.0, 1, False)]


def test_public_views_can_be_joined_by_cell_without_multiplying_rows(farm: BundleMaker) -> None:
    for view in PUBLIC_BY_CELL:
        joined = f"(SELECT count(*) FROM {view} JOIN cell_overview USING (cell))"
        facts = "count((pte_sha256, runner_sha256, serial, build))"
        [(rows, *others)] = farm.ask(f"SELECT count(*), count(cell), {joined}, {facts} FROM {view}")
        assert rows > 0 or view in ("session_accuracy", "session_conditions"), view
        assert others == [rows] * 3, view


def test_what_explains_a_change_is_known_of_every_cell_also_where_no_session_succeeded(farm: BundleMaker) -> None:
    unknown = "SELECT model FROM _cell_facts JOIN cell USING (cell) WHERE facts.pte_sha256 IS NULL"
    assert farm.ask(unknown) == [("pte unknown",)]
    assert farm.ask("SELECT count(*) FROM _cell_facts JOIN cell USING (cell) WHERE model = 'failed'") == [(1,)]


def test_a_warehouse_from_before_cells_gets_them(maker: BundleMaker) -> None:
    # given a warehouse whose sessions have no cells yet
    for pte in ("p1", "p1", "p2"):
        maker.session([(90 * US, {CONVOLUTION: 80 * US})], model__pte_sha256=pte)
    maker.load()
    views = ("operator_time", "series_latency", "cell_overview", "cell_accuracy")
    before = [maker.ask(f"FROM {view} ORDER BY ALL") for view in views]
    assert len(before[0]) > 0
    with writing(maker.warehouse) as connection:
        for table in ("cell", "session_cell", *CELL_AGGREGATES):
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
