"""The command line `etfarm`: its commands, its common options, and how errors are printed."""

import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_group

from devices.errors import InputError
from flows.cli.options import error_message
from flows.terminal import show, show_pieces

PANELS = {
    "Measure": ("init", "sweep", "validate", "model", "compare", "bisect", "upgrade"),
    "Ask": ("status", "verdicts", "explain", "sql", "trace", "site", "mcp"),
    "Devices": ("devices", "server", "doctor"),
    "Maintain": ("warehouse", "decisions"),
}
"""The commands as `etfarm --help` lists them; each is the module of its name."""


class _Commands(Mapping[str, Any]):
    """The commands by name; the module of one is imported when it is needed, since all take 40 ms."""

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        group = typer.Typer(rich_markup_mode=None)
        group.add_typer(import_module(f"flows.cli.{name}").app)
        return get_group(group).commands[name]

    def __contains__(self, name: object) -> bool:
        return name in set(self)

    def __iter__(self) -> Iterator[str]:
        return chain(*PANELS.values())

    def __len__(self) -> int:
        return sum(map(len, PANELS.values()))


class _PanelGroup(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands in a section for each panel."""
        for panel, names in PANELS.items():
            with formatter.section(panel):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(66)) for name in names])


app = typer.Typer(
    cls=_PanelGroup,
    help="Measure ExecuTorch models on a farm of devices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        show(f"etfarm {version('etfarm')}")
        raise typer.Exit


@app.callback()
def common_options(
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Folder for all results, ./var if omitted; also after a command.")
    ] = None,
    warehouse: Annotated[
        Path | None, typer.Option("--warehouse", help="DuckDB file instead of the one in --data-dir.")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Measure ExecuTorch models on a farm of devices."""
    # The options of the same names take these values: `_from_settings` in options.py.


class _WithoutPandas:
    """Reports pandas as missing: DuckDB and Arrow would import it, 0.3 s, to look whether a value is one of its."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("etfarm's commands do not import pandas", name=name)


def main() -> None:
    """Run the command line and exit.

    An error that the user can act on is a sentence on standard error and code 2, a bug a traceback and 1. A reader of
    the output that has ended (`| head`) is code 1 without a message; usage errors have the code of typer.
    """
    without_pandas = _WithoutPandas()
    sys.meta_path.insert(0, without_pandas)
    try:
        try:
            code = app(standalone_mode=False)
        finally:
            sys.meta_path.remove(without_pandas)
            sys.stdout.flush()  # a full disk shows here, not after the exit code is decided
        sys.exit(code)
    except (typer.Abort, TyperException) as error:
        sys.exit(_show_usage(error))
    except BrokenPipeError:
        _discard_output()
        sys.exit(1)
    except Exception as error:
        message = error_message(error)
        if message is None:
            show_pieces([traceback.format_exc()], err=True)
            sys.exit(1)
        _discard_output()
        sentences = error.sentences if isinstance(error, InputError) else [message]
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


def _discard_output() -> None:
    """Flush standard output, or send the rest to the null device, so that the exit code stays as it is."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
