"""`etfarm mcp`: the farm's answers for agents, over the Model Context Protocol on standard input and output."""

import os
import signal
from types import FrameType

import typer

from flows.cli.options import DEFAULT_DATA_DIR, BundlesOption, DataDirOption, WarehouseOption
from tasks.store.workspace import Workspace

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm mcp --data-dir var")
def mcp(
    data_dir: DataDirOption = DEFAULT_DATA_DIR, bundles: BundlesOption = None, warehouse: WarehouseOption = None
) -> None:
    """Answer the questions of an agent over MCP.

    Requests come on standard input, answers go to standard output. Reads the newest snapshot, changes nothing and opens
    no connection. docs/mcp.md has the set-up of an agent.
    """
    from flows.cli.mcp_server import build_server, run
    from flows.cli.mcp_tools import Tools
    from tasks.store.files import end_publishing, remove_unfinished, scratch_folder

    with scratch_folder() as traces:

        def end(number: int, _frame: FrameType | None) -> None:
            # Threads of the server wait for input and for queries; these end with the process.
            end_publishing()
            remove_unfinished()  # the traces, and the copy of a warehouse that a query reads
            os._exit(128 + number)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        tools = Tools(Workspace(data_dir, warehouse, bundles), traces)
        run(build_server(tools), tools.end)
