"""`etfarm compare`: two arms side by side, a line per pair of cells, with the answer that their sessions give."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_INVENTORY,
    DataDirOption,
    FailOn,
    FormatOption,
    InventoryOption,
    WarehouseOption,
)

app = typer.Typer(rich_markup_mode=None)
_Base = Annotated[
    str | None, typer.Option(help="Instead of A and B: a commit whose --model is compared with the present one.")
]
_SweepOfBoth = Annotated[str | None, typer.Option("--sweep", help="Sweep with A and B; default: the newest with both.")]
_Margin = Annotated[float, typer.Option(min=0, max=100, help="Percent up to which a difference counts as the same.")]
_FailOn = Annotated[list[FailOn] | None, typer.Option(help="Exit with 1 on this result; may be repeated.")]
_Priority = Annotated[
    int,
    typer.Option(min=-100, max=100, help="For .pte files: sweeps of lower priority let go of the device for them."),
]
_Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        help="File to write, may be repeated: .md for a pull request, .json, .xml (JUnit), .svg (badge).",
    ),
]


@app.command(epilog="Example: etfarm compare 2026-11-01 2026-11-02 --fail-on regression")
def compare(
    a: Annotated[str | None, typer.Argument(help="What to compare with.")] = None,
    b: Annotated[str | None, typer.Argument(help="What is compared; of the same kind as A.")] = None,
    base: _Base = None,
    model: Annotated[str | None, typer.Option(help="Only this model; with --base, file.py:factory.")] = None,
    device: Annotated[str | None, typer.Option(help="Only this device.")] = None,
    precision: Annotated[str | None, typer.Option(help="Only this precision.")] = None,
    sweep_id: _SweepOfBoth = None,
    margin: _Margin = 1,
    fail_on: _FailOn = None,
    sessions: Annotated[int, typer.Option(min=5, max=1000, help="Sessions of each .pte file in this call.")] = 8,
    priority: _Priority = 0,
    output: _Outputs = None,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    format: FormatOption = "table",
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    warehouse: WarehouseOption = None,
) -> None:
    """Compare two nights, devices, models or .pte files.

    A and B are two nights (2026-11-01), sweeps (nightly-2026-11-01), variants (sme2_off), devices, models, precisions,
    ExecuTorch versions (1.5.1), or ids of cells, sessions or runners (at least 6 digits). A word with two meanings is
    written with its kind, such as device:pixel-1. Cells are matched by everything else of their series.

    Two .pte files are measured alternately on one device first, with --sessions each; those of earlier calls of the day
    count, too. So are both versions of a model: etfarm compare --model ./model.py:make --base origin/main

    Each pair is slower or faster with its 95 % interval, not slower (the interval of B / A lies inside the margin), or
    cannot be told, with what would settle it; inaccurate if the outputs of a side are too far from their references.

    Exits with 0, with 1 on a result that --fail-on lists, and with 2 on a mistake. regression: B is slower than A by
    more than the margin, and the complete interval is above 1; never if only the night differs, and neither the model,
    the runner nor the settings: that is `device slower`. different: faster or slower. unknown: more sessions are
    needed, or a cell has no counterpart.
    inaccurate: the outputs of A or B are; such times are no result, so the pair is neither slower nor different, and
    regression includes it.
    """
    from flows.cli.compare_files import FilesToCompare, files_of, run_compare_files, words_of
    from flows.cli.output import ComparisonOutput
    from flows.warehouse.readable import readable_warehouse
    from sql.warehouse import query_errors
    from tasks.results.compare import compare_arms
    from tasks.results.reader import open_reader
    from tasks.store.workspace import Workspace

    only = {"model": model, "device": device, "precision": precision}
    shown = ComparisonOutput(format, output or (), Workspace(data_dir, warehouse))
    if words := words_of(a, b, base):
        shown.check()
        with (
            readable_warehouse(Workspace(data_dir, warehouse)) as readable,
            open_reader(readable) as reader,
            query_errors(),
        ):
            comparison = compare_arms(reader, *words, sweep_id, only, margin / 100)
        shown.show(comparison)
        raise typer.Exit(shown.exit_code(comparison, fail_on or ()))
    files, labels = files_of(a, b, base, model, precision, data_dir)
    asked = FilesToCompare(files, labels, device, inventory, sessions, priority, margin / 100)
    refused = {"sweep": sweep_id} if base else {"model": model, "precision": precision, "sweep": sweep_id}
    raise typer.Exit(run_compare_files(asked, refused, fail_on or (), shown))
