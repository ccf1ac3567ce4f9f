"""`etfarm decisions`: which nights verdicts compare, which sessions count, and the notes of users."""

from datetime import UTC
from typing import Annotated

import typer

from flows.cli.options import (
    DEFAULT_DATA_DIR,
    BundlesOption,
    DataDirOption,
    DeviceOption,
    FormatOption,
    ModelOption,
    PrecisionOption,
    VariantOption,
    WarehouseOption,
    WideOption,
)
from flows.terminal import show
from tasks.store.workspace import Workspace

app = typer.Typer(
    name="decisions",
    help="Accept a change, exclude nights, write notes.",
    invoke_without_command=True,
    epilog="Example: etfarm decisions --bundles s3://bucket/prefix",
)

_ReasonOption = Annotated[str, typer.Option("--reason", help="Reason; recorded with the decision.")]
_COLUMNS = ("id", "kind", "night", "series", "reason", "state", "when (UTC)", "by")


@app.command(epilog='Example: etfarm decisions reset-baseline --model voice --reason "new quantization, accepted"')
def reset_baseline(
    reason: _ReasonOption,
    night: Annotated[
        str | None, typer.Option("--night", help="First night of the new baseline; the newest if omitted.")
    ] = None,
    model: ModelOption = None,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    variant: VariantOption = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Stop comparing nights with those before a night.

    Without options for the series, this is for all of them. Figures stay as they are.
    """
    from tasks.judge.decisions import Selector
    from tasks.maintain import decisions

    series = Selector(model=model, precision=precision, device=device, variant=variant)
    show(*decisions.reset_baseline(Workspace(data_dir, warehouse, bundles), night, series, reason))


@app.command(epilog='Example: etfarm decisions accept 3f0c1a2b --reason "new quantization"')
def accept(
    incident: Annotated[str, typer.Argument(metavar="INCIDENT", help="Id of an incident, from `etfarm verdicts`.")],
    reason: _ReasonOption,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Accept what an incident changed: it is closed, and its figures are the new baseline.

    Verdicts of earlier nights stay as they are.
    """
    from tasks.maintain.decisions import accept_incident

    show(*accept_incident(Workspace(data_dir, warehouse, bundles), incident, reason))


@app.command(epilog='Example: etfarm decisions exclude 2026-11-20 --reason "air conditioning failed"')
def exclude(
    reason: _ReasonOption,
    night: Annotated[str | None, typer.Argument(help="The night, such as 2026-11-20.")] = None,
    incident: Annotated[str | None, typer.Option("--incident", help="The nights that show this incident.")] = None,
    device: DeviceOption = None,
    model: ModelOption = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Never compare a night, or the nights of an incident, and keep them out of baselines.

    Their sessions stay in every view.
    """
    from tasks.judge.decisions import Selector
    from tasks.maintain import decisions

    series = Selector(device=device, model=model)
    show(*decisions.exclude(Workspace(data_dir, warehouse, bundles), night, incident, series, reason))


@app.callback()
def decisions(
    context: typer.Context,
    format: FormatOption = "table",
    wide: WideOption = False,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
) -> None:
    """List all decisions about nights and all notes, revoked ones included, the newest first."""
    if context.invoked_subcommand is not None:
        return
    from flows.cli.output import show_rows
    from tasks.judge.decisions import read_decisions
    from tasks.maintain.decisions import series_text

    recorded = read_decisions(Workspace(data_dir, None, bundles).store)
    rows = []
    for record in reversed(recorded.records):
        if record.kind == "revocation":
            continue
        revoked = recorded.revoked.get(record.id)
        state = f"revoked: {revoked.reason}" if revoked else "in force"
        when = f"{record.decided_at.astimezone(UTC):%Y-%m-%d %H:%M}"
        what = (record.kind.replace("_", " "), record.night, series_text(record.series))
        rows.append((record.id, *what, record.reason, state, when, record.decided_by))
    show_rows(_COLUMNS, [rows], format, wide=wide, max_cell_lines=None)
    for sentence in recorded.damaged:
        show(sentence, err=True)
    raise typer.Exit(1 if recorded.damaged else 0)


@app.command(epilog='Example: etfarm decisions note "expected, ticket 12" --model voice --device pixel-8')
def note(
    text: Annotated[str, typer.Argument(help="One line of at most 500 characters.")],
    incident: Annotated[str | None, typer.Option("--incident", help="On the onset of this incident.")] = None,
    night: Annotated[str | None, typer.Option("--night", help="Only about this night, such as 2026-11-20.")] = None,
    model: ModelOption = None,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    variant: VariantOption = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Write a note on series, or on a night of them.

    Without options for the series, it is on all of them. Notes change no verdict; the view decision_overview has them.
    """
    from tasks.judge.decisions import Selector
    from tasks.maintain import decisions

    series = Selector(model=model, precision=precision, device=device, variant=variant)
    show(*decisions.note(Workspace(data_dir, warehouse, bundles), text, night, incident, series))


@app.command(epilog='Example: etfarm decisions revoke 3f0c1a2b --reason "wrong night"')
def revoke(
    decision_id: Annotated[str, typer.Argument(metavar="ID", help="Id of a decision, from `etfarm decisions`.")],
    reason: _ReasonOption,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Take a decision or a note back; its record stays."""
    from tasks.maintain import decisions

    show(decisions.revoke(Workspace(data_dir, warehouse, bundles), decision_id, reason))


@app.command(epilog='Example: etfarm decisions forget smoke-2026-11-20 --reason "wrong governor"')
def forget(
    target: Annotated[str, typer.Argument(help="Id of a sweep or a session.")],
    reason: _ReasonOption,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Leave sessions out of all figures; their bundles stay.

    The sweep measures them again, as new sessions, when it is started again in the same night.
    """
    from tasks.maintain.forget import forget_target

    show(forget_target(Workspace(data_dir, warehouse, bundles), target, reason))
