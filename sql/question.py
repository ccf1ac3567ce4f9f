"""Named questions: the queries over public views in sql/questions/; a parameter that is NULL restricts nothing."""

import functools
import re
from dataclasses import dataclass

from sql.schema import sql_files


@dataclass(frozen=True)
class Question:
    """One file of sql/questions/: its name, its first comment line, its query and the names of its parameters."""

    name: str
    summary: str
    text: str
    parameters: tuple[str, ...]


@functools.cache
def questions() -> dict[str, Question]:
    """Return all questions by name."""
    return {
        file.name: Question(
            name=file.name,
            summary=file.text.splitlines()[0].removeprefix("-- "),
            text=file.text,
            parameters=tuple(dict.fromkeys(re.findall(r"\$(\w+)", file.text))),
        )
        for file in sql_files("questions")
    }
