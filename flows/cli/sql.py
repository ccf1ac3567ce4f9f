"""`etfarm sql`: the rows of a query or of a named question, printed or written to a file."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from devices.errors import InputError
from devices.suggest import did_you_mean
from flows.cli.options import DEFAULT_DATA_DIR, DataDirOption, WarehouseOption, WideOption
from flows.terminal import show
from tasks.bundle.model_names import find_model, short_names
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from sql.cage.cage import Cage
    from sql.question import Question

app = typer.Typer(rich_markup_mode=None)
_QUESTION_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MAX_NAMES = 10
_LIST = "list them with `etfarm sql --list`"


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
    wide: WideOption = False,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    warehouse: WarehouseOption = None,
) -> None:
    """Query the warehouse with SQL or a named question.

    A $name in SQL is a value, and the option --name sets it: etfarm sql 'FROM verdict WHERE night = $night' --night
    2026-11-20. Use single quotes, or the shell replaces $name first.

    Names and logs come from devices and files. Tables, CSV and Markdown replace their control characters, bidirectional
    ones included, with U+FFFD; JSON escapes them, and .parquet and .arrow keep them.

    List the views and their descriptions with: etfarm sql "SELECT view_name, comment FROM duckdb_views()
    WHERE comment IS NOT NULL"
    """
    if list_questions:
        from sql.question import questions

        listed = questions().values()
        width = max(len(each.name) for each in listed)
        show(*(f"{each.name:{width}}  {each.summary} ({', '.join(_options(each))})" for each in listed))
        return
    if query is None:
        raise InputError("name a question, or pass SQL or a .sql file; list the questions with `etfarm sql --list`")
    print_answer(query, format, output, Workspace(data_dir, warehouse), context.args, wide=wide)


def print_answer(
    text: str,
    form: str | None,
    output: Path | None,
    workspace: Workspace,
    options: Sequence[str] = (),
    *,
    wide: bool = False,
) -> None:
    """Run one query and print its rows, as a table if `form` is None, or write them to `output` by its suffix.

    `text` is SQL, the path of a .sql file or the name of a question, with its `options`. Raises InputError and
    WarehouseError.
    """
    from flows.cli.output import output_file, row_form, show_rows, write_rows
    from flows.warehouse.readable import readable_warehouse
    from sql.cage.cage import Cage
    from tasks.results.text import numbered

    if output is not None and form is not None:
        raise InputError("--format and --output exclude each other; the suffix of the file decides its format")
    with readable_warehouse(workspace) as readable, Cage(readable) as cage:
        question = named_question(text) or sql_question(_query_text(text))
        parameters = resolve_names(question, parse_options(question, options), cage)
        if output is None:
            answer = cage.ask(question.text, parameters)
            show_rows(answer.columns, answer.blocks(), form or "table", wide=wide)
            if not answer.rows and question.if_empty:
                show(question.if_empty, err=True)
            return
        with output_file(output) as stream:
            answer = cage.ask(question.text, parameters, form=row_form(output))
            write_rows(answer, stream, output)
    show(f"{output}: {numbered(answer.rows, 'row')}")


def _query_text(text_or_file: str) -> str:
    """Return SQL as it is, or the content of a .sql file; raises InputError if it cannot be read."""
    if not text_or_file.endswith(".sql"):
        return text_or_file
    try:
        return Path(text_or_file).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{text_or_file}: the query file cannot be read ({error.strerror})") from None


def named_question(text: str) -> "Question | None":
    """Return the question of this name, or None for SQL text or a file; raises InputError for an unknown name."""
    from sql.question import questions

    if text in questions():
        return questions()[text]
    if _QUESTION_NAME.fullmatch(text):
        raise InputError(f"unknown question `{text}`{did_you_mean(text, questions())}; {_LIST}, or pass SQL")
    return None


def sql_question(query: str) -> "Question":
    """Return SQL as a question without a name; each `$name` in it is an option."""
    from sql.question import Question, parameters_in

    return Question("", "", query, parameters_in(query))


def parse_options(question: "Question", words: Sequence[str]) -> dict[str, str | None]:
    """Return the parameters that options such as `--model mobilenet_v2` set; raises InputError.

    The other parameters of a named question are None; those of SQL are left out, and DuckDB requires them.
    """
    values: dict[str, str | None] = dict.fromkeys(question.parameters if question.name else ())
    remaining = iter(words)
    for word in remaining:
        option, has_value, value = word.partition("=")
        if not question.parameters:
            raise InputError(
                f"{option}: unknown option or second argument; SQL has an option for each $name in it, and a named "
                f"question has options: {_LIST}"
            )
        if option not in _options(question):
            near, name = did_you_mean(option, _options(question)), question.name or "this query"
            raise InputError(f"{option}: not an option of {name}; use {', '.join(_options(question))}{near}")
        text = value if has_value else next(remaining, None)
        if text is None:
            raise InputError(f"{option}: its value is missing; write {option} VALUE")
        values[option.removeprefix("--")] = text
    return values


def resolve_names(question: "Question", values: Mapping[str, str | None], cage: "Cage") -> dict[str, str | None]:
    """Return the parameters with full names of models; raises InputError for a name that is not in the warehouse."""
    from sql.question import NAMES

    named = dict(values)
    for parameter, kind in question.kinds.items():
        value = values.get(parameter)
        if value is None:
            continue
        contained = sorted(row[0] for row in cage.ask(NAMES[kind]).all_rows() if row[0] is not None)
        if not contained:
            raise InputError(
                f"--{parameter} {value}: the warehouse contains no {kind}; load bundles with `etfarm warehouse load`"
            )
        is_model = kind in ("model", "language model")
        named[parameter] = find_model(value, short_names(contained)) if is_model else value
        if named[parameter] not in contained:
            more = f" and {len(contained) - _MAX_NAMES} more" if len(contained) > _MAX_NAMES else ""
            near = did_you_mean(value, contained) or f"; known: {', '.join(contained[:_MAX_NAMES])}{more}"
            raise InputError(f"--{parameter} {value}: the warehouse contains no such {kind}{near}")
    return named


def _options(question: "Question") -> list[str]:
    return [f"--{parameter}" for parameter in question.parameters]
