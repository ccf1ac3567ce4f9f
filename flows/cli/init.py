"""`etfarm init`: write a folder from which a first sweep runs."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from flows.terminal import show

app = typer.Typer(rich_markup_mode=None)
_NEXT = {
    "etfarm doctor": "checks the set-up of this machine",
    "etfarm model check ./model.py:make": "exports the model and runs it here",
    "etfarm sweep sweep.yaml": "measures it, and writes the report",
    "etfarm sql slowest-operators": "shows where the time goes",
    "etfarm site": "shows all results in a browser",
}


@app.command(epilog="Example: etfarm init farm")
def init(folder: Annotated[Path, typer.Argument(help="Folder to write to.")] = Path()) -> None:
    """Write a folder with a sweep, a model and settings that run.

    A file that exists is not overwritten. The last lines are the commands to run next.
    """
    from flows.setup.starter import FILES, write_starter

    write_starter(folder)
    show(f"wrote {', '.join(str(folder / name) for name in FILES)}; next:")
    if folder.resolve() != Path.cwd():
        show(f"  cd {shlex.quote(str(folder))}")
    width = max(map(len, _NEXT))
    show(*(f"  {command:{width}}   # {what}" for command, what in _NEXT.items()))
