"""Results in a notebook: `Farm("var").view("session_latency")` is a pandas DataFrame. This interface is stable.

Views and columns are those of `etfarm sql` (sql/DICTIONARY.md), comparisons those of `etfarm compare`. Nothing is
written; each call reads the newest snapshot.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from devices.errors import InputError
from devices.suggest import did_you_mean
from flows.warehouse.readable import readable_warehouse, warehouse_reader
from sql.cage.warm import WarmCage
from sql.schema import identifier
from sql.warehouse import query_errors
from tasks.results.compare import compare_arms
from tasks.results.explanation import Explanation, explain
from tasks.results.pair_json import write_pair
from tasks.store.workspace import Workspace


@dataclass(frozen=True)
class Session:
    """One session, with a row per run and per operator."""

    facts: "pd.Series[Any]"
    """The columns of session_overview."""
    runs: pd.DataFrame
    """The columns of run_latency; times in milliseconds."""
    operators: pd.DataFrame
    """The columns of operator_time for the cell of the session: of all its sessions together."""


@dataclass(frozen=True)
class Comparison:
    """B compared with A: the sentence of `etfarm compare`, and a row per series."""

    answer: str
    series: pd.DataFrame
    """The keys of `etfarm compare --format json` (docs/json.md), and `word`: slower, faster, same, ..."""


class Farm:
    """The results in a data folder, or in one DuckDB file."""

    def __init__(self, data_dir: str | Path = "var", warehouse: str | Path | None = None) -> None:
        self._workspace = Workspace(Path(data_dir), None if warehouse is None else Path(warehouse))
        self._cages = WarmCage()

    def views(self) -> pd.DataFrame:
        """Return the columns `view_name` and `comment`, a row per view."""
        return self.sql("SELECT view_name, comment FROM duckdb_views() WHERE comment IS NOT NULL ORDER BY view_name")

    def view(self, name: str) -> pd.DataFrame:
        """Return all rows of a view; raises InputError if there is none of this name."""
        names = list(self.views()["view_name"])
        if name not in names:
            raise InputError(f"unknown view `{name}`{did_you_mean(name, names) or '; `views()` lists them'}")
        return self.sql(f"FROM {identifier(name)}")

    def sql(self, text: str, **parameters: Any) -> pd.DataFrame:
        """Return the rows of a query; `$name` in it is the parameter `name`. Raises WarehouseError."""
        with readable_warehouse(self._workspace) as file, self._cages.cage(file) as cage:
            schema, batches = cage.ask(text, parameters, form="arrow").batches()
            table = pa.Table.from_batches(batches, schema)
        with duckdb.connect() as connection:  # types of columns as DuckDB's frames have them
            return connection.from_arrow(table).df()

    def session(self, session_id: str) -> Session:
        """Return one session by its id; raises InputError if it is not in the warehouse."""
        overview = self.sql("FROM session_overview WHERE session_id = $id", id=session_id)
        if overview.empty:
            raise InputError(f"no session has the id `{session_id}`; `view('session_overview')` lists all")
        operators = "FROM operator_time WHERE cell IN (SELECT cell FROM session_latency WHERE session_id = $id)"
        runs = self.sql("FROM run_latency WHERE session_id = $id ORDER BY run_index", id=session_id)
        return Session(overview.iloc[0], runs, self.sql(operators, id=session_id))

    def compare(self, a: str, b: str, margin_percent: float = 1.0) -> Comparison:
        """Compare two nights, sweeps, devices, models, precisions, variants or ids, as `etfarm compare A B` does.

        Raises InputError if a word names nothing, or if no series is in both.
        """
        with warehouse_reader(self._workspace) as reader, query_errors():
            result = compare_arms(reader, a, b, margin=margin_percent / 100)
        return Comparison(
            result.headline, pd.DataFrame([{"word": each.word, **write_pair(each)} for each in result.changes])
        )

    def explain(
        self, name: str, device: str | None = None, precision: str | None = None, variant: str | None = None
    ) -> Explanation:
        """Explain a model's worst series, or one by its id; raises InputError for an unknown name."""
        only = {"device": device, "precision": precision, "variant": variant}
        with warehouse_reader(self._workspace) as reader:
            return explain(reader, name, only)
