"""`etfarm explain`: the verdict on a series, its causes, and the next step."""

import json
from typing import Annotated, Literal

import typer

from flows.cli.options import (
    DEFAULT_DATA_DIR,
    DataDirOption,
    DeviceOption,
    PrecisionOption,
    VariantOption,
    WarehouseOption,
)
from tasks.store.workspace import Workspace

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm explain mobilenet_v2 --device pixel-1")
def explain(
    name: Annotated[str, typer.Argument(help="Model as pages show it, such as voice, or the id of a series.")],
    device: DeviceOption = None,
    precision: PrecisionOption = None,
    variant: VariantOption = None,
    format: Annotated[Literal["text", "json", "markdown"], typer.Option("--format", help="Output format.")] = "text",
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    warehouse: WarehouseOption = None,
) -> None:
    """Explain why a series got slower or not, and the next step.

    Its verdict and since when, what changed, which modules and operators cause it, SME2, and the conditions.

    Of several series of a model, the worst of the newest night is explained, and the others have a line each.
    """
    from flows.terminal import show, show_pieces
    from flows.warehouse.readable import warehouse_reader
    from tasks.pages.explanation import markdown_lines, terminal_lines
    from tasks.results.explanation import explain as explain_series

    only = {"device": device, "precision": precision, "variant": variant}
    with warehouse_reader(Workspace(data_dir, warehouse)) as reader:
        explanation = explain_series(reader, name, only)
    if format == "json":
        show_pieces([json.dumps(explanation.data(), indent=1), "\n"])
    elif format == "markdown":
        show_pieces(f"{line}\n" for line in markdown_lines(explanation))
    else:
        show(*terminal_lines(explanation))
