"""The results of comparisons that were measured alternately: the table `comparison_result`."""

from dataclasses import asdict

import duckdb
import pyarrow as pa

from sql.schema import sql_files
from tasks.analyse.verdict.comparison import compare

_QUERY = next(file.text for file in sql_files("loading") if file.name == "comparisons_to_judge")


def judge_comparisons(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `comparison_result` for the comparisons without a row, from the sessions of both sides."""
    answer = connection.execute(_QUERY)
    names = [column[0] for column in answer.description or []]
    rows = [dict(zip(names, values, strict=True)) for values in answer.fetchall()]
    if not rows:
        return
    kept = ("comparison", "cell_a", "cell_b")
    found = [
        {**{name: row[name] for name in kept}, **asdict(compare(row["figures_a_ns"], row["figures_b_ns"]))}
        for row in rows
    ]
    connection.register("compared", pa.Table.from_pylist(found))
    connection.execute("INSERT INTO comparison_result BY NAME SELECT * FROM compared")
    connection.unregister("compared")
