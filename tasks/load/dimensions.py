"""Ids of rows that many sessions share: devices, models, runners, and the nodes of operator trees."""

import duckdb
import numpy as np
from numpy.typing import NDArray

from tasks.etdump.tree import TreeNode
from tasks.rows.record_rows import Row

# Tables whose key is a column; all others have numbered rows, which their content identifies.
_KEYS = {"sweep": "sweep_id", "series": "series_id"}
_NodeKey = tuple[int | None, str, str, int, int]


class Dimension:
    """A small table whose rows are entered once and referred to by id; rows to insert are in `new`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        self.new: list[Row] = []
        self._numbered = table not in _KEYS
        self._id_column = f"{table}_id"
        self._key = _KEYS.get(table, "content_sha256")
        number = self._id_column if self._numbered else "0"
        present = connection.execute(f"SELECT {self._key}, {number} FROM {table}")  # `table` is never user input
        self._ids: dict[str, int] = dict(present.fetchall())
        self._last = max(self._ids.values(), default=0)

    def enter(self, row: Row) -> tuple[int, bool]:
        """Return the row's id (0 in a table without ids) and whether the row is new."""
        key = row[self._key]
        if key in self._ids:
            return self._ids[key], False
        if self._numbered:
            self._last += 1
            row = {self._id_column: self._last, **row}
        self._ids[key] = self._last
        self.new.append(row)
        return self._last, True


class NodeIds:
    """Ids of the nodes of operator trees, which are stored once per model; rows to insert are in `new`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.new: list[Row] = []
        self._connection = connection
        self._last = int(connection.execute("SELECT coalesce(max(node_id), 0) FROM node").fetchall()[0][0])
        self._of_model: dict[int, dict[_NodeKey, int]] = {}

    def resolve(self, model_id: int, tree: tuple[TreeNode, ...]) -> NDArray[np.int32]:
        """Return the id of each node of a tree, in the tree's order (parents first)."""
        if model_id not in self._of_model:
            rows = self._connection.execute(
                "SELECT parent_node_id, kind, name, chain_index, instruction_id, node_id FROM node WHERE model_id = ?",
                [model_id],
            ).fetchall()
            self._of_model[model_id] = {tuple(key): node_id for *key, node_id in rows}
        node_ids = self._of_model[model_id]
        ids: list[int] = []
        for node in tree:
            parent_id = ids[node.parent] if node.parent >= 0 else None
            key = (parent_id, node.kind, node.name, node.chain_index, node.instruction_id)
            if key not in node_ids:
                self._last += 1
                node_ids[key] = self._last
                names = {"kind": node.kind, "name": node.name, **vars(node.parts)}
                place = {"chain_index": node.chain_index, "instruction_id": node.instruction_id}
                numbers = {"node_id": self._last, "model_id": model_id, "parent_node_id": parent_id}
                self.new.append({**numbers, **names, **place})
            ids.append(node_ids[key])
        return np.array(ids, np.int32)
