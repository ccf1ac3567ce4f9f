"""The commands that answer questions and change nothing: sql, compare, trace."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.cli.options import (
    DEFAULT_INVENTORY,
    DEFAULT_VAR,
    BundlesOption,
    FailOn,
    FormatOption,
    InventoryOption,
    VarOption,
    WarehouseOption,
    opened_store,
)
from flows.terminal import show, show_pieces
from tasks.store.workspace import Workspace

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


@app.command(
    epilog='Example: etfarm sql "SELECT model, median_ms FROM session_latency" --format csv, or: etfarm sql '
    "slowest-operators --model mobilenet_v2",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def sql(
    context: typer.Context,
    query: Annotated[
        str | None, typer.Argument(help="SQL text, the path of a .sql file, or the name of a question.")
    ] = None,
    list_questions: Annotated[
        bool, typer.Option("--list", help="List the named questions with their options.")
    ] = False,
    format: Annotated[
        Literal["table", "csv", "json", "markdown"] | None,
        typer.Option("--format", help="Output format; table if omitted."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write: .csv, .json, .parquet, .arrow or .md.")
    ] = None,
    var: VarOption = DEFAULT_VAR,
    warehouse: WarehouseOption = None,
) -> None:
    """Query the warehouse with SQL or a named question.

    A $name in SQL is a value, and the option --name sets it: etfarm sql 'FROM verdict WHERE night = $night' --night
    2026-11-20. Use single quotes, or the shell replaces $name first.

    Names and logs come from devices and files. Tables, CSV and Markdown replace their control characters and marks of
    direction with U+FFFD; JSON escapes them, and .parquet and .arrow keep them.

    List the views and their descriptions with: etfarm sql "SELECT view_name, comment FROM duckdb_views()"
    """
    from devices.errors import InputError
    from flows.cli.questions import question_list
    from flows.cli.sql import ask

    if list_questions:
        show_pieces([question_list()])
        return
    if query is None:
        raise InputError("name a question, or pass SQL or a .sql file; list the questions with `etfarm sql --list`")
    ask(query, format, output, var, warehouse, context.args)


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
    var: VarOption = DEFAULT_VAR,
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
    inaccurate: the outputs of A or B are.
    """
    from flows.cli.compare import run_compare
    from flows.cli.compare_files import FileComparison, check_files, exported_sides, run_compare_files, words_of

    only = {"model": model, "device": device, "precision": precision}
    share, failing, outputs = margin / 100, fail_on or (), output or ()
    if words := words_of(a, b, base):
        raise typer.Exit(run_compare(words, sweep_id, only, share, failing, format, outputs, var, warehouse))
    if base is not None:
        check_files((), {"sweep": sweep_id})
        files = exported_sides(model, precision or "fp32", base, var)
        labels = (f"{model} at {base}", f"{model} as it is now")
    else:
        files = (Path(a or ""), Path(b or ""))
        labels = (str(Path(*files[0].parts[-2:])), str(Path(*files[1].parts[-2:])))
        check_files(files, {"model": model, "precision": precision, "sweep": sweep_id})
    workspace = Workspace(var, warehouse)
    request = FileComparison(files, labels, device, inventory, sessions, share, priority, workspace)
    raise typer.Exit(run_compare_files(request, failing, format, outputs))


@app.command(epilog="Example: etfarm trace 3f0c1a2b4d5e6f70 --run all --output run.json")
def trace(
    session: Annotated[str, typer.Argument(help="Id of a session, or the path of a bundle or an .etdump file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Chrome JSON file to write, for Perfetto.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="With -o: index of a run, or all; the middle one if omitted.")
    ] = None,
    view: Annotated[
        bool, typer.Option("--view", help="Show it in Perfetto's viewer on this machine, without a network.")
    ] = False,
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
) -> None:
    """Show the runs and slowest operators of a session or ETDump, or write its trace."""
    from devices.errors import InputError
    from flows.cli.inspect import inspect_etdump
    from flows.cli.trace import etdump_of, write_trace
    from flows.cli.trace_view import viewer_of

    store = opened_store(bundles, var)
    if output is None:
        if run is not None or view:
            raise InputError("--run and --view are about the file that is written; name it with --output")
        inspect_etdump(etdump_of(session, store))
        return
    show(write_trace(session, run, output, store))
    if view:
        with viewer_of(output) as server:
            show(f"etfarm: trace at http://127.0.0.1:{server.server_port}/, Ctrl-C ends the viewer", err=True)
            server.serve_forever()
