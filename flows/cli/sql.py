"""`etfarm sql`: rows of the warehouse, printed or written to a file."""

from collections.abc import Sequence
from pathlib import Path

from devices.errors import InputError
from flows.cli.formats import output_file, row_form, write_rows
from flows.cli.questions import known_names, named_question, parameters_of, question_of
from flows.terminal import show, show_pieces
from flows.warehouse.readable import readable_warehouse
from sql.cage.cage import Cage
from tasks.pages.rows import as_text


def ask(
    text: str,
    form: str | None,
    output: Path | None,
    var: Path,
    warehouse: Path | None,
    options: Sequence[str] = (),
) -> None:
    """Run one query and print its rows, as a table without `form`, or write them to `output` by its suffix.

    `text` is SQL, the path of a .sql file or the name of a question, with its `options`. Raises InputError and
    WarehouseError.
    """
    if output is not None and form is not None:
        raise InputError("--format and --output exclude each other; the suffix of the file decides its format")
    with readable_warehouse(var, warehouse) as readable, Cage(readable) as cage:
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
    if not text_or_file.endswith(".sql"):
        return text_or_file
    try:
        return Path(text_or_file).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{text_or_file}: the query file cannot be read ({error.strerror})") from None
