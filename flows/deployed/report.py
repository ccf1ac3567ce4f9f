"""The deployment `report`: write the report of a sweep again."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from flows.artifacts import show_report
from flows.server.states import dated_name, end_state, with_sentence
from flows.warehouse.publish import write_report
from flows.words import report_link
from tasks.store.workspace import stated_workspace


@flow(name="report", flow_run_name=dated_name("report"))
@with_sentence
def report(
    sweep_id: str | None = None, var: str | None = None, bundles: str | None = None, warehouse: str | None = None
) -> State[Any]:
    """Write the report of a sweep again, and show it as an artifact.

    Parameters:
        sweep_id: the sweep, such as nightly-2026-11-01; default: the newest.
        var: the folder for all results; default: ETFARM_VAR, or ./var.
        bundles: a folder or a URL such as s3://bucket/prefix; default: ETFARM_BUNDLES, or the var folder.
        warehouse: a DuckDB file to use instead of the var folder's.
    """
    html = write_report(stated_workspace(var, bundles, warehouse), sweep_id)
    show_report(html)
    return end_state(html, report_link(html), is_bad=False)
