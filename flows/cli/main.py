"""The command line `etfarm`: its commands, its common options, and how errors are printed."""

import io
import os
import sys
import traceback
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from devices.errors import Mistakes
from flows.cli import (
    bisect,
    compare,
    decisions,
    devices,
    doctor,
    explain,
    mcp,
    model,
    runner,
    server,
    site,
    sql,
    sweep,
    trace,
    validate,
    verdicts,
    warehouse,
)
from flows.cli.options import error_message
from flows.terminal import show, show_pieces

PANELS = {
    "Measure": (sweep, validate, model, compare, bisect),
    "Ask": (verdicts, explain, sql, trace, site, mcp),
    "Devices": (devices, server, doctor),
    "Maintain": (warehouse, decisions),
}
"""The commands as `etfarm --help` lists them; each has the name of its module."""


class _Root(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands in a section for each panel."""
        for panel, modules in PANELS.items():
            names = [module.__name__.rpartition(".")[2] for module in modules]
            with formatter.section(panel):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(66)) for name in names])


app = typer.Typer(
    cls=_Root,
    help="Measure ExecuTorch models on a farm of devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in chain(*PANELS.values()):
    app.add_typer(command.app)
devices.app.add_typer(runner.app)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        show(f"etfarm {version('etfarm')}")
        raise typer.Exit


@app.callback()
def everywhere(
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder for all results, ./var if omitted; also after a command.")
    ] = None,
    warehouse_file: Annotated[
        Path | None, typer.Option("--warehouse", help="DuckDB file instead of the one in --data-dir.")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Measure ExecuTorch models on a farm of devices."""
    # The options --data-dir and --warehouse of the command take their values from these variables.
    for name, value in (("ETFARM_DATA_DIR", data_dir), ("ETFARM_WAREHOUSE", warehouse_file)):
        if value is not None:
            os.environ[name] = str(value)


def main() -> None:
    """Run the command line: an error of the user is one sentence and exit code 2, a bug a traceback and 1."""
    try:
        try:
            code = app(standalone_mode=False)
        finally:
            sys.stdout.flush()  # a full disk shows here, not after the exit code is decided
        sys.exit(code)
    except (typer.Abort, TyperException) as error:
        sys.exit(_show_usage(error))
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)
    except Exception as error:
        message = error_message(error)
        if message is None:
            show_pieces([traceback.format_exc()], err=True)
            sys.exit(1)
        _drop_output()
        sentences = error.sentences if isinstance(error, Mistakes) else [message]
        show(*(f"etfarm: {sentence}" for sentence in sentences), err=True)
        sys.exit(2)


def _show_usage(error: typer.Abort | TyperException) -> int:
    """Print a usage error and return its exit code. A shell's `*` may have put file names into it: it is sanitized."""
    if isinstance(error, typer.Abort):
        show("Aborted!", err=True)
        return 1
    words = io.StringIO()
    error.show(words)  # type: ignore[attr-defined]
    show_pieces([words.getvalue()], err=True)
    return error.exit_code


def _drop_output() -> None:
    """Drop unwritable output. Otherwise the interpreter tries again at its end, and changes the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
