"""Load what sweeps skipped from the store into the table skipped_model; a file is read once."""

from pathlib import Path

from devices.untrusted import sanitize_line
from sql.warehouse import insert_rows, writing
from tasks.bundle.record import BundleError
from tasks.judge.delegates import refresh_delegate_results
from tasks.store.bundle_store import BundleStore
from tasks.store.skipped import read_skipped, sweep_of_file


def load_skipped(store: BundleStore, warehouse: Path) -> list[str]:
    """Add the files of sweeps in the warehouse that it does not contain; return a sentence for each damaged one.

    Creates no warehouse. Raises BundleError if the store does not answer, WarehouseError if it cannot be written.
    """
    files, damaged, rows = store.skipped_files(), [], []
    if not files or not warehouse.is_file():
        return []
    with writing(warehouse) as connection:
        sweeps = {sweep_id for (sweep_id,) in connection.execute("SELECT sweep_id FROM sweep").fetchall()}
        present = {name for (name,) in connection.execute("SELECT DISTINCT file FROM skipped_model").fetchall()}
        for name in files:
            if name in present or sweep_of_file(name) not in sweeps:
                continue
            try:
                record = read_skipped(store, name)
            except BundleError as error:
                damaged.append(str(error))
                continue
            rows += [
                {"sweep_id": record.sweep_id, "file": name}
                | {key: value and sanitize_line(value) for key, value in each.model_dump().items()}
                for each in record.models
            ]
        if rows:
            insert_rows(connection, "skipped_model", rows)
            refresh_delegate_results(connection)
    return damaged
