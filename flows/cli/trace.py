"""`etfarm trace`: the runs of one session, printed, as a trace for Perfetto or as node data for Model Explorer."""

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_DATA_DIR, BundlesOption, DataDirOption
from flows.terminal import show
from tasks.store.workspace import Workspace

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm trace 3f0c1a2b4d5e6f70 --run all --output run.json")
def trace(
    session: Annotated[str, typer.Argument(help="Id of a session, or the path of a bundle or an .etdump file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file to write, for Perfetto or Model Explorer.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="With -o: index of a run, or all; the middle one if omitted.")
    ] = None,
    view: Annotated[
        bool, typer.Option("--view", help="Show it in Perfetto's viewer on this machine, without a network.")
    ] = False,
    model_explorer: Annotated[
        bool,
        typer.Option("--model-explorer", help="With -o: median times on the nodes of the graph, for Model Explorer."),
    ] = False,
    before: Annotated[
        str | None, typer.Option("--before", help="With --model-explorer: an earlier session; writes the change.")
    ] = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
) -> None:
    """Show the slowest operators of a session, or write its trace or the times of its graph."""
    from devices.errors import InputError
    from flows.cli.trace_output import show_etdump, write_node_data, write_trace
    from flows.traces import find_etdump

    store = Workspace(data_dir, bundles_location=bundles).store
    if output is None:
        if run is not None or view or model_explorer:
            raise InputError("--run, --view and --model-explorer are about a file to write; name it with --output")
        show_etdump(find_etdump(session, store)[0])
        return
    if before is not None and not model_explorer:
        raise InputError("--before is for --model-explorer; add it")
    if model_explorer:
        if run is not None or view:
            raise InputError("--run and --view are about a trace; leave out --model-explorer, or them")
        show(write_node_data(session, before, output, store))
        return
    show(write_trace(session, run, output, store))
    if view:
        from flows.cli.trace_viewer import open_viewer

        with open_viewer(output) as server:
            show(f"etfarm: trace at http://127.0.0.1:{server.server_port}/, Ctrl-C ends the viewer", err=True)
            server.serve_forever()
