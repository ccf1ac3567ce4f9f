"""`etfarm mcp`: the farm's answers for agents, over the Model Context Protocol on standard input and output."""

import tempfile
from pathlib import Path

import typer

from flows.cli.options import DEFAULT_VAR, BundlesOption, VarOption, WarehouseOption, opened_store

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm mcp --var var, as the command of an MCP server in an agent's settings")
def mcp(var: VarOption = DEFAULT_VAR, bundles: BundlesOption = None, warehouse: WarehouseOption = None) -> None:
    """Answer an agent's questions over MCP on standard input and output.

    It reads the newest snapshot, changes nothing and opens no connection. docs/mcp.md has the set-up of an agent.
    """
    from flows.cli.ask.agent import Answers
    from flows.cli.ask.agent_server import server_of

    with tempfile.TemporaryDirectory(prefix="etfarm-traces-") as traces:
        server_of(Answers(var, warehouse, opened_store(bundles, var), Path(traces))).run()
