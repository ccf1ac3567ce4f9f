"""The results of comparisons that were measured alternately: the table `comparison_result`."""

from dataclasses import asdict

import duckdb

from sql.insert import insert_rows
from sql.schema import sql_files
from tasks.analyse.verdict.comparison import compare

_QUERY = next(file.text for file in sql_files("loading") if file.name == "comparisons_to_judge")


def judge_comparisons(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `comparison_result` for the comparisons without a row, from the sessions of both sides."""
    results = []
    for row in connection.execute(_QUERY).to_arrow_table().to_pylist():
        figures_a_ns, figures_b_ns = row.pop("figures_a_ns"), row.pop("figures_b_ns")
        results.append({**row, **asdict(compare(figures_a_ns, figures_b_ns))})
    insert_rows(connection, "comparison_result", results)
