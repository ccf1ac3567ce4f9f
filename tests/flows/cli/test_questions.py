"""Named questions on the command line: a name that the warehouse does not contain is an error, not an empty answer."""

import csv
from pathlib import Path

import pytest

from sql.question import NAMES, questions
from sql.warehouse import writing
from tests.fixtures.command import Command
from tests.fixtures.warehouse import LINEAR, BundleMaker


def made(folder: Path) -> BundleMaker:
    """One session of a model, on one device, of one precision, variant and sweep."""
    maker = BundleMaker(folder / "made")
    maker.session([(10_000_000, {LINEAR: 6_000_000})] * 3, model__name="mobilenet_v2")
    maker.load()
    return maker


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    return made(tmp_path_factory.mktemp("asked"))


KNOWN = {
    "model": "mobilenet_v2",
    "language model": "mobilenet_v2",
    "device": "host",
    "precision": "fp32",
    "variant": "sme2_off",
    "sweep": "smoke-2026-11-20",
}


@pytest.mark.parametrize(
    ("question", "parameter"), [(each.name, name) for each in questions().values() for name in each.kinds]
)
def test_an_unknown_name_is_one_sentence_and_never_an_empty_answer(
    command: Command, asked: BundleMaker, question: str, parameter: str
) -> None:
    kind = questions()[question].kinds[parameter]
    known = KNOWN.get(kind) or asked.ask("SELECT cell FROM cell_overview")[0][0]
    # given a name with one letter too many, then the nearest known one is suggested
    ended = command("sql", question, f"--{parameter}", f"{known}x", "--warehouse", asked.warehouse)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"etfarm: --{parameter} {known}x: the warehouse contains no such {kind}; did you mean `{known}`?\n"
    )
    # and a known name is answered, even if with no rows
    ended = command("sql", question, f"--{parameter}", known, "--warehouse", asked.warehouse)
    assert (ended.code, ended.err) == (0, "")


def test_options_of_sql_are_values_and_never_sql(command: Command, asked: BundleMaker) -> None:
    text = "SELECT model, precision, $note AS note FROM session_latency WHERE night = $night AND model = $model"
    words = ("--night", "2026-11-20", "--note", "x' OR '1'='1", "--format", "csv", "--warehouse", asked.warehouse)
    ended = command("sql", text, "--model", "mobilenet_v2", *words)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == ["model,precision,note", "mobilenet_v2,fp32,x' OR '1'='1"]
    # and a name is checked as that of a question
    ended = command("sql", text, "--model", "mobilenet_v3", *words)
    assert (ended.code, ended.out) == (2, "")
    assert "--model mobilenet_v3: the warehouse contains no such model; did you mean `mobilenet_v2`?" in ended.err


def test_every_parameter_of_a_question_is_a_kind_of_name_a_date_or_nothing_else() -> None:
    dates = {"since", "night"}
    for question in questions().values():
        assert set(question.parameters) == set(question.kinds) | (dates & set(question.parameters)), question.name
        assert set(question.kinds.values()) <= set(NAMES), question.name


def test_an_unknown_name_like_no_other_is_told_with_known_ones(command: Command, tmp_path: Path) -> None:
    asked = made(tmp_path)
    for number in range(12):
        asked.session([1_000_000], device__name=f"phone-{number:02}")
    asked.load()
    ended = command("sql", "slowest-operators", "--device", "zzz", "--warehouse", asked.warehouse)
    listed = ", ".join(["host", *(f"phone-{number:02}" for number in range(9))])
    assert ended.err.endswith(f"the warehouse contains no such device; known: {listed} and 3 more\n")


def test_a_warehouse_without_any_name_of_the_kind_says_so(command: Command, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse.duckdb"
    with writing(warehouse):
        pass
    ended = command("sql", "slowest-operators", "--model", "toy", "--warehouse", warehouse)
    assert (ended.code, ended.out) == (2, "")
    assert (
        ended.err == "etfarm: --model toy: the warehouse contains no model; load bundles with `etfarm warehouse load`\n"
    )


def test_a_language_model_is_known_by_its_name_without_the_case(command: Command, tmp_path: Path) -> None:
    asked = made(tmp_path)
    asked.session([1_000_000], model__name="llm@decode", model__tokens=1, model__kv_depth=16)
    asked.load()
    where = ("--warehouse", asked.warehouse)
    assert command("sql", "generation-speed", "--model", "llm", *where).code == 0
    assert "; known: llm, mobilenet_v2" in command("sql", "generation-speed", "--model", "llm@decode", *where).err
    assert "did you mean `llm@decode`?" in command("sql", "slowest-operators", "--model", "llm@decod", *where).err


def test_a_model_without_a_case_means_all_its_cases(command: Command, tmp_path: Path) -> None:
    # given two cases of a model, and another model whose name begins alike
    asked = made(tmp_path)
    for name in ("llama@pp16", "llama@tg4", "llama2"):
        asked.session([(10_000_000, {LINEAR: 6_000_000})] * 3, model__name=name)
    asked.load()

    def models(named: str) -> list[str]:
        ended = command("sql", "slowest-operators", "--model", named, "--format", "csv", "--warehouse", asked.warehouse)
        assert ended.code == 0, ended.err
        head, *rows = csv.reader(ended.out.splitlines())
        return [row[head.index("model")] for row in rows]

    # then its name stands for both, and that of a case for one
    assert models("llama") == ["llama@pp16", "llama@tg4"]
    assert models("llama@tg4") == ["llama@tg4"]
