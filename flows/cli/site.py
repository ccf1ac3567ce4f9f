"""`etfarm site`: the farm's pages, live or published, and the report of a sweep as one file."""

from typing import Annotated

import typer

from flows.cli.options import DEFAULT_DATA_DIR, BundlesOption, DataDirOption, WarehouseOption
from flows.terminal import show
from tasks.store.workspace import Workspace

app = typer.Typer(
    name="site",
    help="Show the farm's pages; write the report of a sweep.",
    invoke_without_command=True,
    epilog="Example: etfarm site, or: etfarm site --publish s3://bucket/farm",
)
_HOST = "127.0.0.1"
_MAX_NAMED = 10
_INTERRUPTED = 130  # 128 + SIGINT, as shells report it


@app.callback()
def site(
    context: typer.Context,
    publish: Annotated[
        str | None,
        typer.Option(
            "--publish",
            help="Write the pages to this folder or URL instead, only what changed. It has to be empty, or published "
            "by etfarm; files of others stay.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 lets the system choose one.")
    ] = 4280,
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            "--host-name",
            help="Host name that a proxy passes on, such as farm.example; repeatable.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    warehouse: WarehouseOption = None,
) -> None:
    """Show the farm's pages: changes, nights, models, devices, series.

    They are served from the newest snapshot, and follow it within seconds. Only this machine reaches them, by its
    local names; a proxy with a password serves them to a team (docs/operations.md). A published folder opens without a
    server, too. Exits with 1 if a page that changed cannot be published because its file has other content.
    """
    if context.invoked_subcommand is not None:
        return
    from devices.settings import settings  # slow to import

    workspace = Workspace(data_dir, warehouse, settings().bundles)
    if publish is not None:
        _publish(publish, workspace)
    else:
        _serve(port, host_name or [], workspace)


@app.command(epilog="Example: etfarm site report")
def report(
    sweep_id: Annotated[str | None, typer.Argument(help="Id of the sweep; the newest if omitted.")] = None,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Write a sweep's report (HTML and Markdown); print its path."""
    from flows.warehouse.publish import write_report

    show(write_report(Workspace(data_dir, warehouse, bundles), sweep_id))


def _publish(location: str, workspace: Workspace) -> None:
    from flows.warehouse.readable import readable_warehouse
    from tasks.pages.site.publish import publish
    from tasks.pages.site.site import Site
    from tasks.results.reader import open_reader
    from tasks.results.text import counted, numbered

    with readable_warehouse(workspace) as readable, open_reader(readable) as reader:
        done = publish(Site(reader, workspace.warehouse.name), location, lambda line: show(line, err=True))
    counts = f"{numbered(done.pages, 'page')}, {numbered(done.written, 'file')} written, {done.removed:,} removed"
    show(f"{counts}: {location.rstrip('/')}/index.html")
    if done.foreign:
        names = ", ".join(done.foreign[:_MAX_NAMED]) + (", ..." if len(done.foreign) > _MAX_NAMED else "")
        cause = (
            f"{counted(len(done.foreign), 'file')} left unchanged, because etfarm did not write the content ({names})"
        )
        show(f"{location}: {cause}; move what hinders away, then publish again", err=True)
        raise typer.Exit(1)


def _serve(port: int, names: list[str], workspace: Workspace) -> None:
    import socket

    from devices.errors import InputError
    from flows.warehouse.readable import readable_warehouse
    from flows.warehouse.site import host_names, serve

    names = host_names(names)
    with readable_warehouse(workspace):
        pass  # a missing warehouse is an error now, not on the first page
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
    except OSError as error:
        raise InputError(f"--port {port}: {error.strerror}; choose another one, or 0 for any") from None
    try:
        show(f"etfarm: pages at http://{_HOST}:{listener.getsockname()[1]}/, Ctrl-C ends them", err=True)
        serve(listener, workspace, names)
    except KeyboardInterrupt:
        show("etfarm: the pages are no longer served; start them again with the same command", err=True)
        raise typer.Exit(_INTERRUPTED) from None
