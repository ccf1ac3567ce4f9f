"""Named questions: a name that the warehouse does not contain is an error with a suggestion, not an empty answer."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from devices.errors import InputError
from flows.cli.sql import parse_options, resolve_names, sql_question
from flows.warehouse.readable import readable_warehouse
from sql.cage.cage import Cage
from sql.cage.warm import WarmCage
from sql.question import NAMES, questions
from sql.warehouse import writing
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
    with (
        readable_warehouse(Workspace(maker.warehouse.parent, maker.warehouse)) as file,
        WarmCage().cage(file) as cage,
    ):
        yield cage


VALUES = {
    "model": "mobilenet_v2",
    "language model": "llm",
    "device": "host",
    "precision": "fp32",
    "variant": "sme2_off",
    "sweep": "smoke-2026-11-20",
}


@pytest.mark.parametrize("name", questions())
def test_a_question_is_answered_about_all_of_its_names(cage: Cage, maker: BundleMaker, name: str) -> None:
    question = questions()[name]
    values = VALUES | {"cell": maker.ask("SELECT max(cell) FROM cell_overview")[0][0]}
    words = [f"--{parameter}={values[kind]}" for parameter, kind in question.kinds.items()]
    answer = cage.ask(question.text, resolve_names(question, parse_options(question, words), cage))
    # then it is a table: every row has a value for each column
    assert answer.columns
    assert {len(row) for row in answer.all_rows()} <= {len(answer.columns)}


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_that_the_warehouse_lacks_is_refused(cage: Cage, kind: str) -> None:
    question = sql_question(f"-- $name: {kind}\nSELECT $name")
    with pytest.raises(InputError, match=f"^--name nonesuch: the warehouse contains no such {kind}"):
        resolve_names(question, {"name": "nonesuch"}, cage)


@pytest.mark.parametrize(
    ("question", "name", "end"),
    [
        ("slowest-operators", "mobilenet_v3", "contains no such model; did you mean `mobilenet_v2`?"),
        ("slowest-operators", "llm@decod", "contains no such model; did you mean `llm@decode`?"),
        ("generation-speed", "llm@decode", "contains no such language model; known: llama, llama2, llm, "),
    ],
)
def test_a_misspelt_model_is_answered_with_the_closest_one(cage: Cage, question: str, name: str, end: str) -> None:
    with pytest.raises(InputError, match=re.escape(end)):
        resolve_names(questions()[question], {"model": name}, cage)


def test_a_name_like_no_other_is_answered_with_the_first_ten(cage: Cage) -> None:
    listed = ", ".join(["host", *(f"phone-{number:02}" for number in range(9))])
    with pytest.raises(InputError, match=f"contains no such device; known: {listed} and 3 more$"):
        resolve_names(questions()["slowest-operators"], {"device": "zzz"}, cage)


@pytest.mark.parametrize(("name", "models"), [("llama", ["llama@pp16", "llama@tg4"]), ("llama@tg4", ["llama@tg4"])])
def test_a_model_without_a_case_means_all_its_cases(cage: Cage, name: str, models: list[str]) -> None:
    question = questions()["slowest-operators"]
    answer = cage.ask(question.text, resolve_names(question, parse_options(question, ["--model", name]), cage))
    assert [row[list(answer.columns).index("model")] for row in answer.all_rows()] == models


def test_options_of_sql_are_values_and_never_sql(command: Command, maker: BundleMaker) -> None:
    text = (
        "SELECT model, $note AS note FROM session_latency WHERE night = $night AND model = $model AND device = 'host'"
    )
    words = ("--night", "2026-11-20", "--note", "x' OR '1'='1", "--model", "mobilenet_v2", "--format", "csv")
    ended = command("sql", text, *words, "--warehouse", maker.warehouse)
    assert list(csv.reader(ended.lines)) == [["model", "note"], ["mobilenet_v2", "x' OR '1'='1"]]


def test_a_name_in_sql_is_checked_as_that_of_a_question(cage: Cage) -> None:
    with pytest.raises(InputError, match="contains no such model; did you mean `mobilenet_v2`"):
        resolve_names(sql_question("FROM session_latency WHERE model = $model"), {"model": "mobilenet_v3"}, cage)


def test_every_parameter_of_a_question_is_a_kind_of_name_or_a_date() -> None:
    for question in questions().values():
        assert set(question.parameters) - set(question.kinds) <= {"since", "night"}, question.name
        assert set(question.kinds.values()) <= set(NAMES), question.name


def test_a_warehouse_without_any_name_of_the_kind_is_answered_with_what_to_do(command: Command, tmp_path: Path) -> None:
    with writing(tmp_path / "warehouse.duckdb"):
        pass
    ended = command("sql", "slowest-operators", "--model", "toy", "--warehouse", tmp_path / "warehouse.duckdb")
    assert (ended.code, ended.out) == (2, "")
    assert "contains no model; load bundles with `etfarm warehouse load`" in ended.err
