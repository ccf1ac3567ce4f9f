"""The command line: the same words as the flows, one sentence for every error, an example for every command."""

import io
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

from flows.cli.ask import asking, site, verdicts
from flows.cli.farm import devices, doctor, servers
from flows.cli.keep import bundles, decisions, kit, warehouse
from flows.cli.measure import bisect, export, lab, model, runner, sweep, validate
from flows.cli.options import error_message
from flows.terminal import show, show_pieces

app = typer.Typer(
    help="Measure ExecuTorch models on a farm of devices.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for commands in (sweep, validate, lab, export, bundles, doctor, asking, site, verdicts, bisect, servers):
    app.add_typer(commands.app)
app.add_typer(runner.app, name="runner")
app.add_typer(devices.app, name="devices")
app.add_typer(warehouse.app, name="warehouse")
app.add_typer(kit.app, name="kit")
app.add_typer(model.app, name="model")
app.add_typer(decisions.baseline, name="baseline")
app.add_typer(decisions.night, name="night")
app.add_typer(decisions.app, name="decisions")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        show(f"etfarm {version('etfarm')}")
        raise typer.Exit


@app.callback()
def everywhere(
    var: Annotated[Path | None, typer.Option("--var", help="Same as the command's --var.")] = None,
    warehouse_file: Annotated[
        Path | None, typer.Option("--warehouse", help="Same as the command's --warehouse.")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Measure ExecuTorch models on a farm of devices."""
    for name, value in (("ETFARM_VAR", var), ("ETFARM_WAREHOUSE", warehouse_file)):
        if value is not None:
            os.environ[name] = str(value)


def main() -> None:
    """Run the command line; an error of the user ends it with one sentence and exit code 2."""
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
        show(*(f"etfarm: {line}" for line in message.splitlines()), err=True)
        sys.exit(2)


def _show_usage(error: typer.Abort | TyperException) -> int:
    """Print what is wrong with the words of a command, of which a shell's `*` may have made some; return its code."""
    if isinstance(error, typer.Abort):
        show("Aborted!", err=True)
        return 1
    words = io.StringIO()
    error.show(words)  # type: ignore[attr-defined]
    show_pieces([words.getvalue()], err=True)
    return error.exit_code


def _drop_output() -> None:
    """Drop what could not be written; otherwise the interpreter tries again at its end, and changes the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
