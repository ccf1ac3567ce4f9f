"""Ten questions of a performance lead to `etfarm mcp`: each answer has the figures that SQL gives."""

from datetime import date

import pytest

from sql.warehouse import query
from tests.fixtures.conversation import Asked, answers_of, questions, values_of
from tests.fixtures.voice import write_voice
from tests.fixtures.warehouse import BundleMaker

ASKED = questions()


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    """A farm of the same model and nights; the slowest session of the last one is that of the page."""
    maker = BundleMaker(tmp_path_factory.mktemp("voice"))
    (session,) = (each.arguments["session_id"] for each in ASKED if each.tool == "session")
    write_voice(maker, session_id=session)
    maker.load()
    maker.warehouse.chmod(0o444)  # so that it is read in place, as a snapshot
    return maker


@pytest.fixture(scope="module")
def answers(maker: BundleMaker, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    data_dir = tmp_path_factory.mktemp("var")
    return answers_of(ASKED, "--warehouse", str(maker.warehouse), "--data-dir", str(data_dir))


def equal(value: object) -> object:
    """What a value of SQL is equal to in an answer; in a float, but for how a nanosecond becomes a millisecond."""
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-9)
    return value.isoformat() if isinstance(value, date) else value


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(len(ASKED)), ids=[each.question for each in ASKED])
def test_an_answer_has_figures_of_its_sql(maker: BundleMaker, answers: list[dict[str, object]], number: int) -> None:
    asked: Asked = ASKED[number]
    columns, rows = query(maker.warehouse, asked.sql)
    assert bool(rows) == (asked.question != "Does SME2 bring anything?")
    for at, column in enumerate(columns):
        values = list(values_of(answers[number], column))
        assert values[: len(rows)] == [equal(row[at]) for row in rows], column
    if not rows:
        assert answers[number]["rows"] == []
