"""`etfarm sql`: rows of the warehouse, printed or written to a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.cli.options import DEFAULT_DATA_DIR, DataDirOption, WarehouseOption

app = typer.Typer(rich_markup_mode=None)


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
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
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
    from flows.terminal import show_pieces

    if list_questions:
        show_pieces([question_list()])
        return
    if query is None:
        raise InputError("name a question, or pass SQL or a .sql file; list the questions with `etfarm sql --list`")
    ask(query, format, output, data_dir, warehouse, context.args)


def ask(
    text: str,
    form: str | None,
    output: Path | None,
    data_dir: Path,
    warehouse: Path | None,
    options: Sequence[str] = (),
) -> None:
    """Run one query and print its rows, as a table without `form`, or write them to `output` by its suffix.

    `text` is SQL, the path of a .sql file or the name of a question, with its `options`. Raises InputError and
    WarehouseError.
    """
    from devices.errors import InputError
    from flows.cli.output import output_file, row_form, write_rows
    from flows.cli.questions import known_names, named_question, parameters_of, question_of
    from flows.terminal import show, show_pieces
    from flows.warehouse.readable import readable_warehouse
    from sql.cage.cage import Cage
    from tasks.pages.rows import as_text
    from tasks.store.workspace import Workspace

    if output is not None and form is not None:
        raise InputError("--format and --output exclude each other; the suffix of the file decides its format")
    with readable_warehouse(Workspace(data_dir, warehouse)) as readable, Cage(readable) as cage:
        question = named_question(text) or question_of(_query_text(text))
        parameters = known_names(question, parameters_of(question, options), cage)
        if output is None:
            answer = cage.ask(question.text, parameters)
            show_pieces(as_text(answer.columns, answer.blocks(), form or "table"))
            return
        with output_file(output) as stream:
            answer = cage.ask(question.text, parameters, form=row_form(output))
            write_rows(answer, stream, output)
    show(f"{output}: {answer.rows} row{'' if answer.rows == 1 else 's'}")


def _query_text(text_or_file: str) -> str:
    from devices.errors import InputError

    if not text_or_file.endswith(".sql"):
        return text_or_file
    try:
        return Path(text_or_file).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{text_or_file}: the query file cannot be read ({error.strerror})") from None
