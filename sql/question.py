"""Named questions: the queries over public views in sql/questions/; a parameter that is NULL restricts nothing.

A parameter whose name is one of NAMES takes a name that the warehouse contains. A comment such as
`-- $model: language model` gives it another kind of name. A comment such as `-- No rows: ...` is what an
empty answer means and what to do.
"""

import functools
import re
from dataclasses import dataclass

from sql.schema import sql_files

NAMES = {
    # A model with cases, such as llama@tg64,load=mmap, can also be named without them, with or without its options.
    "model": (
        "SELECT DISTINCT unnest([model, regexp_replace(model, '@[^@]*$', ''), _without_case(model)]) "
        "FROM session_overview"
    ),
    **{kind: f"SELECT DISTINCT {kind} FROM session_overview" for kind in ("device", "precision", "variant")},
    "language model": "SELECT DISTINCT _without_case(model) FROM session_overview",
    "sweep": "SELECT sweep_id FROM sweep_overview",
    "cell": "SELECT DISTINCT cell FROM cell_overview",
}
"""Each kind of name with the query of all names of that kind."""
_PARAMETER = re.compile(r"(?<![\w$])\$([A-Za-z_]\w*)\b(?!\$)")  # neither `$1` nor the quotes `$$` and `$tag$`
_IF_EMPTY = re.compile(r"^-- No rows: (.+)$", re.MULTILINE)
_KIND = re.compile(r"^-- \$(\w+): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Question:
    """One file of sql/questions/: its name, its first comment line, its query and the names of its parameters."""

    name: str
    summary: str
    text: str
    parameters: tuple[str, ...]
    if_empty: str = ""
    """What an answer without rows means, for users; empty if the question does not state it."""

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of name, a key of NAMES, of each parameter that takes one."""
        kinds = {parameter: parameter for parameter in self.parameters if parameter in NAMES}
        return kinds | dict(_KIND.findall(self.text))


def parameters_in(query: str) -> tuple[str, ...]:
    """Return the distinct names of the parameters `$name` in a query, in order."""
    return tuple(dict.fromkeys(_PARAMETER.findall(query)))


@functools.cache
def questions() -> dict[str, Question]:
    return {
        file.name: Question(
            name=file.name,
            summary=file.text.splitlines()[0].removeprefix("-- "),
            text=file.text,
            parameters=parameters_in(file.text),
            if_empty=" ".join(_IF_EMPTY.findall(file.text)),
        )
        for file in sql_files("questions")
    }
