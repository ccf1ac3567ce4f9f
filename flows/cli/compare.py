"""`etfarm compare`: compare two nights, devices, models or .pte files, a line for each pair of cells."""

from typing import Annotated

import typer

from flows.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_INVENTORY,
    BundlesOption,
    DataDirOption,
    DeviceOption,
    FailOn,
    FormatOption,
    InventoryOption,
    OutputsOption,
    PrecisionOption,
    VariantOption,
    WarehouseOption,
    WideOption,
)
from tasks.judge.figures import MARGIN
from tasks.store.workspace import Workspace

app = typer.Typer(rich_markup_mode=None)
_BaseOption = Annotated[
    str | None, typer.Option("--base", help="Commit: compare its --model with the present one, instead of A and B.")
]
_ExecutorchOption = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--executorch", help="Two versions, such as 1.5.0 own: measures --model with both, instead of A and B."
    ),
]
_SweepOption = Annotated[str | None, typer.Option("--sweep", help="Sweep with A and B; default: the newest with both.")]
_MarginOption = Annotated[
    float, typer.Option("--margin", min=0, max=100, help="Percent up to which a difference counts as the same.")
]
_FailOnOption = Annotated[
    list[FailOn] | None, typer.Option("--fail-on", help="Exit with 1 on this result; may be repeated.")
]
_PriorityOption = Annotated[
    int,
    typer.Option(
        "--priority", min=-100, max=100, help="For .pte files: sweeps of lower priority release the device for them."
    ),
]


@app.command(epilog="Example: etfarm compare 2026-11-01 2026-11-02 --fail-on regression")
def compare(
    a: Annotated[str | None, typer.Argument(help="Baseline: a night, a device, a .pte file, ...")] = None,
    b: Annotated[str | None, typer.Argument(help="Compared with A; of the same kind.")] = None,
    base: _BaseOption = None,
    executorch: _ExecutorchOption = None,
    model: Annotated[
        str | None,
        typer.Option(help="Only this model; with --base, file.py:factory; with --executorch, any model."),
    ] = None,
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    variant: VariantOption = None,
    sweep_id: _SweepOption = None,
    margin: _MarginOption = 100 * MARGIN,
    fail_on: _FailOnOption = None,
    sessions: Annotated[int, typer.Option(min=5, max=1000, help="Sessions of each side that this call measures.")] = 8,
    priority: _PriorityOption = 0,
    output: OutputsOption = None,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    format: FormatOption = "table",
    wide: WideOption = False,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Compare two nights, devices, models or .pte files.

    A and B are two nights (2026-11-01), sweeps (nightly-2026-11-01), variants (sme2_off), devices, models, precisions,
    numbers of threads (threads:4), delegates (xnnpack), ExecuTorch versions (1.5.1), versions and run-time options that
    a sweep states (load=mmap; default for none), or ids of cells, sessions or runners (at least 6 digits). A word with
    two meanings is written with its kind, such as device:pixel-1. Cells are matched by everything else of their series.

    Two .pte files are first measured interleaved on one device, with --sessions each. Sessions of earlier calls of the
    day count, too. The same applies to two versions of a model:
    etfarm compare --model ./model.py:make --base origin/main
    and to a model with two versions of ExecuTorch (own is the farm's; `etfarm upgrade check` asks for a whole sweep):
    etfarm compare --executorch 1.5.0 own --model mobilenet_v2

    Each pair is slower or faster with its 95 % interval, not slower (the interval of B / A lies inside the margin),
    inconclusive with what would settle it, or inaccurate (the outputs of a side are too far from their references).

    Exits with 0 (PASS), with 1 on a result that --fail-on lists (FAIL), and with 2 on a mistake. With --fail-on, exits
    with 3 (INCOMPLETE) if a series failed, or none has a result that counts. regression: B is slower than A by more
    than the margin, and the complete interval is above 1. It is never a regression if model, runner and settings are
    equal: that is `device slower`. different: faster or slower. unknown: inconclusive, or a cell without a counterpart.
    inaccurate: the outputs of A or B are. Such times are no result, so the pair is neither slower nor different, and
    --fail-on regression includes it unless B repairs them.
    """
    from flows.cli.compare_files import FilesToCompare, measure_files, prepare_files
    from flows.cli.comparison_output import ComparisonOutput
    from flows.warehouse.readable import warehouse_reader
    from sql.warehouse import query_errors
    from tasks.results.compare import compare_arms
    from tasks.results.gate import build_gate

    workspace = Workspace(data_dir, warehouse, bundles)
    only = {"model": model, "device": device, "precision": precision, "variant": variant}
    destination = ComparisonOutput(format, output or (), workspace, wide)
    destination.check()
    if executorch:
        from flows.cli.upgrade import compare_versions

        words = {"A and B": a or b, "--base": base, "--sweep": sweep_id, "--variant": variant}
        words["--margin"] = None if margin == 100 * MARGIN else str(margin)
        words["--priority"] = str(priority) if priority else None
        comparison = compare_versions(executorch, words, only, sessions, inventory, workspace)
    elif files := prepare_files(a, b, base, only, sweep_id, workspace):
        request = FilesToCompare(*files, device, inventory, sessions, priority, margin / 100)
        comparison = measure_files(request, workspace)
    else:
        with warehouse_reader(workspace) as reader, query_errors():
            comparison = compare_arms(reader, str(a), str(b), sweep_id, only, margin / 100)
    raise typer.Exit(destination.show(comparison, build_gate(comparison, fail_on or ())))
