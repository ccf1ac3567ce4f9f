"""Named questions: a name that the warehouse does not contain is an error with a suggestion, not an empty answer."""

import csv
import re
from collections.abc import Iterator

import pytest

from devices.errors import InputError
from flows.cli.sql import parse_options, resolve_names, sql_question
from flows.warehouse.readable import readable_warehouse
from sql.cage.cage import Cage
from sql.cage.warm import WarmCage
from sql.question import NAMES, questions
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command
from tests.fixtures.warehouse import LINEAR, BundleMaker


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    """A session of a vision model, two cases of another model, a language model, and sessions on 12 phones."""
    maker = BundleMaker(tmp_path_factory.mktemp("asked"))
    for name in ("mobilenet_v2", "llama@pp16", "llama@tg4", "llama2"):
        maker.session([(10_000_000, {LINEAR: 6_000_000})] * 3, model__name=name)
    maker.session([1_000_000], model__name="llm@decode", model__tokens=1, model__kv_depth=16)
    for number in range(12):
        maker.session([1_000_000], device__name=f"phone-{number:02}", model__name="mobilenet_v2")
    maker.load()
    return maker


@pytest.fixture(scope="module")
def cage(maker: BundleMaker) -> Iterator[Cage]:
    with readable_warehouse(Workspace(maker.warehouse.parent, maker.warehouse)) as file, WarmCage().cage(file) as cage:
        yield cage


VALUES = {"model": "mobilenet_v2", "language model": "llm", "device": "host", "precision": "fp32"}
VALUES |= {"variant": "sme2_off", "sweep": "smoke-2026-11-20"}


@pytest.mark.parametrize("name", questions())
def test_a_question_is_answered_about_all_of_its_names(cage: Cage, maker: BundleMaker, name: str) -> None:
    question = questions()[name]
    values = VALUES | {"cell": maker.ask("SELECT max(cell) FROM cell_overview")[0][0]}
    words = [f"--{parameter}={values[kind]}" for parameter, kind in question.kinds.items()]
    answer = cage.ask(question.text, resolve_names(question, parse_options(question, words), cage))
    # then it is a table: every row has a value for each column
    assert answer.columns
    assert {len(row) for row in answer.all_rows()} <= {len(answer.columns)}


def test_a_name_that_the_warehouse_lacks_is_refused(cage: Cage) -> None:
    for kind in NAMES:
        question = sql_question(f"-- $name: {kind}\nSELECT $name")
        with pytest.raises(InputError, match=f"^--name nonesuch: the warehouse contains no such {kind}"):
            resolve_names(question, {"name": "nonesuch"}, cage)


FIRST_TEN = ", ".join(["host", *(f"phone-{number:02}" for number in range(9))])


@pytest.mark.parametrize(
    ("question", "kind", "name", "end"),
    [
        ("slowest-operators", "model", "mobilenet_v3", "contains no such model; did you mean `mobilenet_v2`?"),
        ("slowest-operators", "device", "zzz", f"contains no such device; known: {FIRST_TEN} and 3 more"),
        ("generation-speed", "model", "llm@decode", "contains no such language model; known: llama, llama2, llm, "),
    ],
)
def test_an_unknown_name_is_answered_with_others(cage: Cage, question: str, kind: str, name: str, end: str) -> None:
    with pytest.raises(InputError, match=re.escape(end)):
        resolve_names(questions()[question], {kind: name}, cage)


@pytest.mark.parametrize(("name", "models"), [("llama", ["llama@pp16", "llama@tg4"]), ("llama@tg4", ["llama@tg4"])])
def test_a_model_without_a_case_means_all_its_cases(cage: Cage, name: str, models: list[str]) -> None:
    question = questions()["slowest-operators"]
    answer = cage.ask(question.text, resolve_names(question, parse_options(question, ["--model", name]), cage))
    assert [row[list(answer.columns).index("model")] for row in answer.all_rows()] == models


def test_a_question_is_asked_by_its_name_with_its_options(command: Command, maker: BundleMaker) -> None:
    # when the question is asked of one model, then it is about that one alone
    options = ("--model", "mobilenet_v2", "--precision=fp32", "--format", "csv", "--warehouse", maker.warehouse)
    (row,) = csv.DictReader(command("sql", "slowest-operators", *options).lines)
    assert (row["model"], row["operator"], float(row["time_ms"])) == ("mobilenet_v2", "Fully Connected", 6)
    # and a value that its query cannot use is one sentence
    failed = command("sql", "what-got-slower", "--since", "yesterday", "--warehouse", maker.warehouse)
    assert "invalid date field format" in failed.refusal


def test_options_of_sql_are_values_and_never_sql(command: Command, maker: BundleMaker) -> None:
    text = "SELECT model, $note AS note FROM session_latency WHERE night = $night AND model = $model LIMIT 1"
    words = ("--night", "2026-11-20", "--note", "x' OR '1'='1", "--model", "mobilenet_v2", "--format", "csv")
    ended = command("sql", text, *words, "--warehouse", maker.warehouse)
    assert list(csv.reader(ended.lines)) == [["model", "note"], ["mobilenet_v2", "x' OR '1'='1"]]
