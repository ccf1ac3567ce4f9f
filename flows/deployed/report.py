"""The deployment `report`: write the report of a sweep again."""

from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from flows.artifacts import show_report
from flows.server.states import end_state, with_sentence
from flows.warehouse.publish import write_report
from tasks.store.store import open_store
from tasks.store.var import Var


@flow(name="report")
@with_sentence
def report(
    sweep_id: str | None = None, var: str = "var", bundles: str | None = None, warehouse: str | None = None
) -> State[Any]:
    """Write the report of a sweep again, and show it as an artifact.

    Parameters:
        sweep_id: the sweep, such as nightly-2026-11-01; default: the newest.
        var: the folder for all results.
        bundles: where bundles are kept: a folder, or a URL such as s3://bucket/prefix; default: the var folder.
        warehouse: a DuckDB file to use instead of the var folder's.
    """
    root = Path(var).absolute()
    html = write_report(sweep_id, root, Path(warehouse) if warehouse else None, open_store(bundles, Var(root)))
    show_report(html.with_suffix(".md").read_text(encoding="utf-8"), html.parent.name)
    return end_state(html, str(html), is_bad=False)
