"""What is wrong with a query, in one sentence."""

import contextlib
from collections.abc import Iterator

import duckdb

from sql.errors import DAMAGED_WAY_ON, WarehouseError, shows_damage


@contextlib.contextmanager
def query_errors() -> Iterator[None]:
    """Turn DuckDB's errors inside the block into WarehouseError, with DuckDB's message and suggestions in one line."""
    try:
        yield
    except duckdb.PermissionException as error:
        raise WarehouseError(
            "the query was refused: queries only read the warehouse, no other file and no extension "
            f"({_with_suggestions(error)})"
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
