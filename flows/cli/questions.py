"""Named questions on the command line: `etfarm sql NAME --model ...`, and their list."""

import re
from collections.abc import Mapping, Sequence

from devices.errors import InputError
from devices.suggest import did_you_mean
from sql.cage.cage import Cage
from sql.question import NAMES, Question, parameters_in, questions
from tasks.bundle.model_names import model_named, shown_names

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MOST_NAMES = 10
_LIST = "list them with `etfarm sql --list`"


def question_list() -> str:
    """Return each question with its options, one per line."""
    listed = questions().values()
    width = max(len(question.name) for question in listed)
    return "".join(f"{each.name:{width}}  {each.summary} ({', '.join(_options(each))})\n" for each in listed)


def named_question(text: str) -> Question | None:
    """Return the question of this name, or None for SQL text or a file; raises InputError for an unknown name."""
    if text in questions():
        return questions()[text]
    if _NAME.fullmatch(text):
        raise InputError(f"unknown question `{text}`{did_you_mean(text, questions())}; {_LIST}, or pass SQL")
    return None


def question_of(query: str) -> Question:
    """Return SQL as a question without a name; each `$name` in it is an option."""
    return Question("", "", query, parameters_in(query))


def parameters_of(question: Question, words: Sequence[str]) -> dict[str, str | None]:
    """Return the parameters that options such as `--model mobilenet_v2` set; raises InputError.

    The other parameters of a named question are None. SQL needs a value for each of its own.
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


def known_names(question: Question, values: Mapping[str, str | None], cage: Cage) -> dict[str, str | None]:
    """Return the parameters, models by their names in the warehouse; raises InputError for a name that is not in it."""
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
        named[parameter] = model_named(value, shown_names(contained)) if is_model else value
        if named[parameter] not in contained:
            near = did_you_mean(value, contained) or f"; known: {_first(contained)}"
            raise InputError(f"--{parameter} {value}: the warehouse contains no such {kind}{near}")
    return named


def _first(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _options(question: Question) -> list[str]:
    return [f"--{parameter}" for parameter in question.parameters]
