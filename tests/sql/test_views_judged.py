"""Views of verdicts and of noise, from what was judged: two series, two devices, nights without a figure."""

from typing import Any

import pytest

from sql.schema import sql_files
from sql.warehouse import insert_rows, writing
from tests.fixtures.warehouse import BundleMaker

# series, device, metric, night of November, verdict, nanoseconds or bytes, noise floor, first night of the step
JUDGED = [
    ("one", "a", "latency", 1, "insufficient data", 10e6, None, None),
    ("one", "a", "latency", 2, "no change", 12e6, 0.02, None),
    ("one", "a", "latency", 3, "insufficient data", None, None, None),
    ("one", "a", "latency", 4, "no change", 18e6, 0.03, None),
    ("one", "a", "latency", 5, "no change", 9e6, 0.10, None),
    ("one", "a", "latency", 6, "regression", 27e6, 0.06, 6),
    ("one", "a", "latency", 7, "invalid environment", None, None, None),
    ("one", "b", "latency", 2, "insufficient data", 50e6, None, None),
    ("one", "b", "latency", 5, "suspected", 60e6, 0.5, 5),
    ("two", "a", "latency", 4, "insufficient data", 500e6, None, None),
    ("one", "a", "peak memory", 6, "regression", 7e6, 0.01, 6),
    ("one", "b", "peak memory", 5, "no change", 7e6, 0.01, None),
]
VERDICTS_TO_ADD = next(file.text for file in sql_files("loading") if file.name == "verdicts_to_add")
ADDED = (
    "baseline_cell", "sweep_id", "changed", "night_before", "value_before", "cell_before", "noise_floor_change",
    "measured_later",
)  # fmt: skip


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    made = BundleMaker(tmp_path_factory.mktemp("judged"))
    with writing(made.warehouse) as connection:
        for series in ("one", "two"):
            columns = "series_id, model, backend, precision, variant, device_model"
            values = "$1, $1, 'xnnpack', 'fp32', 'sme2_on', 'board'"
            connection.execute(f"INSERT INTO series ({columns}) VALUES ({values})", [series])
        connection.execute(
            f"CREATE TEMP TABLE new_verdict AS SELECT * EXCLUDE ({', '.join(ADDED)}) FROM series_verdict"
        )
        for series_id, device, metric, day, verdict, value, floor, since in JUDGED:
            connection.execute(
                """
                INSERT INTO new_verdict BY NAME SELECT
                    $1 AS series_id, $2 AS device, $3 AS metric, make_date(2026, 11, $4::INTEGER) AS night,
                    $5 AS verdict, $6 AS value, $7 AS noise_floor, make_date(2026, 11, $8::INTEGER) AS since,
                    $2 || $4 AS cell, 8 AS sessions, 0 AS invalid_sessions, 3 AS baseline_nights, 'so' AS reason
                """,
                [series_id, device, metric, day, verdict, value, floor, since],
            )
            connection.execute(
                "INSERT INTO series_operator_verdict BY NAME SELECT $1 AS series_id, $2 AS device,"
                " make_date(2026, 11, $3::INTEGER) AS night, 'operator' AS level, 'GEMM' AS operator,"
                " 'GEMM' AS category, 'regression' AS verdict, 2e6 AS time_ns, 1e6 AS baseline_ns"
                " WHERE $4 IS NOT NULL AND $5 = 'latency'",
                [series_id, device, day, since, metric],
            )
        insert_rows(connection, "series_verdict", connection.execute(VERDICTS_TO_ADD).to_arrow_table())
        connection.execute(
            "INSERT INTO series_cause BY NAME"
            " SELECT DISTINCT series_id, device, night, 1.5 AS common_factor, 'GEMM +50 %' AS cause"
            " FROM series_operator_verdict"
        )
    return made


def test_the_newest_night_is_that_of_a_series_on_its_device_in_every_view(maker: BundleMaker) -> None:
    newest = "SELECT series_id, device, day(night) FROM {} WHERE is_newest ORDER BY ALL"
    nights = [("one", "a", 7), ("one", "b", 5), ("two", "a", 4)]
    assert maker.ask(newest.format("verdict")) == nights
    # a metric or an operator without a row in that night has no newest row
    assert maker.ask(newest.format("metric_verdict")) == [nights[0], nights[1], *nights[1:]]
    assert maker.ask(newest.format("operator_verdict")) == [nights[1]]


def test_a_night_is_beside_the_measured_night_before_it_on_the_same_device(maker: BundleMaker) -> None:
    asked = "device, day(night), time_ms, day(night_before), time_before_ms, ratio, cell_before"
    assert maker.ask(f"SELECT {asked} FROM night_over_night WHERE series_id = 'one' ORDER BY ALL") == [
        ("a", 1, 10.0, None, None, None, None),
        ("a", 2, 12.0, 1, 10.0, 1.2, "a1"),
        ("a", 4, 18.0, 2, 12.0, 1.5, "a2"),
        ("a", 5, 9.0, 4, 18.0, 0.5, "a4"),
        ("a", 6, 27.0, 5, 9.0, 3.0, "a5"),
        ("b", 2, 50.0, None, None, None, None),
        ("b", 5, 60.0, 2, 50.0, 1.2, "b2"),
    ]


def test_a_noise_floor_is_compared_with_the_median_of_earlier_nights_of_the_device(maker: BundleMaker) -> None:
    asked = "SELECT device, day(night), noise_floor, round(change, 3) FROM noise_floor ORDER BY ALL"
    assert maker.ask(asked) == [
        ("a", 2, 0.02, None),
        ("a", 4, 0.03, 1.5),
        ("a", 5, 0.10, 4.0),
        ("a", 6, 0.06, 2.0),
        ("b", 5, 0.5, None),
    ]


def test_a_series_has_its_newest_figures_and_the_verdict_of_its_newest_night(maker: BundleMaker) -> None:
    asked = "series_id, device, nights, day(first_night), day(last_night), time_ms, noise_floor, verdict, day(since)"
    assert maker.ask(f"SELECT {asked} FROM series_overview ORDER BY ALL") == [
        ("one", "a", 7, 1, 7, 27.0, 0.06, "invalid environment", None),
        ("one", "b", 2, 2, 5, 60.0, 0.5, "suspected", 5),
        ("two", "a", 1, 4, 4, 500.0, None, "insufficient data", None),
    ]


def test_operators_are_beside_the_verdict_on_the_latency_of_their_night(maker: BundleMaker) -> None:
    asked = "SELECT device, day(night), time_ms, baseline_ms, common_factor, total_verdict FROM operator_verdict"
    rows = [("a", 6, 2.0, 1.0, 1.5, "regression"), ("b", 5, 2.0, 1.0, 1.5, "suspected")]
    assert maker.ask(f"{asked} ORDER BY device") == rows
    causes = "SELECT device, day(night) FROM verdict WHERE cause IS NOT NULL ORDER BY ALL"
    assert maker.ask(causes) == [row[:2] for row in rows]


# The noise of each night in percent, of a device and a model.
NIGHTS = {
    ("quiet", "toy"): (1.0, 1.0, 3.0, 1.0, 1.0, 2.1),  # above twice the median, though not above twice the mean
    ("even", "toy"): (1.0, 1.0, 1.0, 1.0, 1.0, 2.0),
    ("young", "toy"): (1.0, 1.0, 1.0, 1.0, 9.0),
    ("quiet", "other"): (8.0,),
}


def store_noise(connection: Any, cell: str, device: str, model: str, day: int, noise: float) -> None:
    """Add the result of a comparison of a model with itself, whose interval is that wide to each side."""
    connection.execute(
        """
        INSERT INTO cell BY NAME SELECT
            1 AS cell_id, $1 AS cell, '' AS pair, '' AS subject, '' AS subject_pair, 's' AS sweep_id,
            make_date(2026, 11, $4::INTEGER) AS night, $2 AS device, $3 AS model, 'fp32' AS precision,
            'sme2_on' AS variant, 'timing' AS mode, 1 AS threads, 5 AS executions, 1 AS warmup_executions,
            'noise' AS purpose, $1 AS comparison
        """,
        [cell, device, model, day],
    )
    connection.execute(
        """
        INSERT INTO comparison_result BY NAME SELECT
            $1 AS comparison, $1 || ' a' AS cell_a, $1 AS cell_b, 5 AS sessions_a, 6 AS sessions_b, 'same' AS answer,
            1 / (1 + $2) AS low, 1 + $2 AS high
        """,
        [cell, noise],
    )


@pytest.fixture(scope="module")
def noises(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    made = BundleMaker(tmp_path_factory.mktemp("noises"))
    with writing(made.warehouse) as connection:
        for (device, model), nights in NIGHTS.items():
            for day, percent in enumerate(nights, 1):
                store_noise(connection, f"{device} {model} {day}", device, model, day, percent / 100)
        # five quiet nights of a configuration, five loud ones of another, and the first one's three times as wide
        for column, other in (("precision", "fp16"), ("variant", "sme2_off"), ("threads", 2)):
            for day in range(1, 6):
                store_noise(connection, f"{column} quiet {day}", "phone", column, day, 0.01)
                store_noise(connection, f"{column} loud {day}", "phone", column, day, 0.09)
                connection.execute(f"UPDATE cell SET {column} = $1 WHERE cell = $2", [other, f"{column} loud {day}"])
            store_noise(connection, f"{column} newest", "phone", column, 6, 0.03)
        for day, cell in enumerate(("of two files", "of too few sessions", "of noise"), 1):
            store_noise(connection, cell, "phone", "toy", day, 0.01)
        connection.execute("UPDATE cell SET purpose = 'files' WHERE cell = 'of two files'")
        connection.execute("UPDATE comparison_result SET low = NULL WHERE comparison = 'of too few sessions'")
    return made


def test_noise_has_doubled_above_twice_the_median_of_five_earlier_nights(noises: BundleMaker) -> None:
    asked = "device, model, earlier_nights, round(noise, 9), round(change, 6), is_doubled, sessions, day(night)"
    newest = "SELECT * FROM device_noise QUALIFY night = max(night) OVER (PARTITION BY device, model)"
    assert noises.ask(f"SELECT {asked} FROM ({newest}) WHERE device <> 'phone' ORDER BY ALL") == [
        ("even", "toy", 5, 0.02, 2.0, False, 11, 6),
        ("quiet", "other", 0, 0.08, None, False, 11, 1),
        ("quiet", "toy", 5, 0.021, 2.1, True, 11, 6),
        ("young", "toy", 4, 0.09, 9.0, False, 11, 5),
    ]
    # and it is compared with that of the same configuration alone
    asked = "SELECT earlier_nights, round(change, 6), is_doubled FROM device_noise WHERE comparison LIKE '%newest'"
    assert noises.ask(asked) == [(5, 3.0, True)] * 3
    # and comes only from comparisons of a model with itself that have an interval
    asked = "SELECT comparison, earlier_nights FROM device_noise WHERE device = 'phone' AND model = 'toy'"
    assert noises.ask(asked) == [("of noise", 0)]
