"""Start one query of a user on a connection that only reads, and report what is wrong with it in one sentence."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from sql.errors import DAMAGED_WAY_ON, WarehouseError, shows_damage

# CREATE is needed for PIVOT, which makes a temporary type. DuckDB refuses to create anything in a read-only file.
_READING = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.CREATE}
_ONLY_READS = "queries only read the warehouse"


def start_query(
    connection: duckdb.DuckDBPyConnection, text: str, parameters: Mapping[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    """Start a query with its named parameters; DuckDB computes its rows while they are fetched.

    Raises WarehouseError if the text is empty or a statement does anything but read, and duckdb.Error if it is wrong:
    use it inside `query_errors`.
    """
    statements = connection.extract_statements(text)
    if not statements:
        raise WarehouseError("the query is empty; write one such as SELECT * FROM run_latency")
    # DuckDB's log could be sent to a file; it is the only table function that changes a setting.
    if "enable_logging" in text.lower() or any(statement.type not in _READING for statement in statements):
        raise WarehouseError(
            f"the query was refused: {_ONLY_READS}, which is read-only; use SELECT, DESCRIBE, SHOW or EXPLAIN, and "
            "`etfarm sql --output FILE` to write rows to a file"
        )
    return connection.execute(text, dict(parameters) if parameters else None)


@contextlib.contextmanager
def query_errors() -> Iterator[None]:
    """Turn DuckDB's errors inside the block into WarehouseError, with DuckDB's message and suggestions in one line."""
    try:
        yield
    except duckdb.PermissionException as error:
        raise WarehouseError(
            f"the query was refused: {_ONLY_READS}, no other file and no extension ({_with_suggestions(error)})"
        ) from None
    except duckdb.OutOfMemoryException:
        raise WarehouseError(
            "the query failed: it needs more memory than a query may use (half of the machine's, at most 8 GiB); "
            "select fewer rows or columns, or aggregate them"
        ) from None
    except duckdb.InterruptException:
        # An error in one of DuckDB's threads stops the others, and it may report that one of those was stopped.
        raise WarehouseError("the query failed while rows were fetched; run it again to see the cause") from None
    except duckdb.Error as error:
        if shows_damage(error):
            cause = f"the warehouse is damaged ({_with_suggestions(error)})"
            raise WarehouseError(f"the query failed: {cause}; {DAMAGED_WAY_ON}") from None
        raise WarehouseError(f"the query failed: {_with_suggestions(error)}") from None


def _with_suggestions(error: duckdb.Error) -> str:
    """Return DuckDB's message in one line, names that it suggests included, without the statement below it."""
    message = str(error).split("query result\nError: ")[-1].split("\n\n", maxsplit=1)[0]
    return " ".join(message.split()).rstrip(".")
