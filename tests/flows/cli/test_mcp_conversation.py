"""docs/mcp-conversation.md: ten questions of a performance lead to `etfarm mcp`; each answer has the figures of SQL."""

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from sql.warehouse import query
from tests.fixtures.paths import ROOT
from tests.fixtures.voice import write_voice
from tests.fixtures.warehouse import BundleMaker

_SECTION = re.compile(
    r"^## \d+\. (?P<asked>[^\n]+)\n\n`(?P<tool>\w+)` with `(?P<arguments>\{[^\n]*\})`:\n\n"
    r"```text\n(?P<answer>.*?)```\n\n```sql\n(?P<sql>.*?)```\n\n```text\n(?P<rows>.*?)```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Asked:
    """A question with the call of a tool that answers it, and the query that gives the same figures."""

    question: str
    tool: str
    arguments: dict[str, Any]
    sql: str


ASKED = [
    Asked(each["asked"], each["tool"], json.loads(each["arguments"]), each["sql"])
    for each in _SECTION.finditer((ROOT / "docs/mcp-conversation.md").read_text(encoding="utf-8"))
]


def answers_of(asked: list[Asked], *words: str) -> list[dict[str, Any]]:
    """Ask `etfarm mcp` with these options over stdio, in one conversation; returns the answer to each question."""
    words = ("-m", "flows.cli.main", "mcp", *words)
    process = StdioServerParameters(command=sys.executable, args=list(words), cwd=ROOT)

    async def talk() -> list[dict[str, Any]]:
        answers = []
        async with Client(stdio_client(process)) as client:
            for each in asked:
                result = await client.call_tool(each.tool, each.arguments)
                assert not result.is_error, (each, result.content)
                assert result.structured_content is not None
                answers.append(result.structured_content)
        return answers

    return asyncio.run(talk())


def values_of(answer: Any, name: str) -> Iterator[Any]:
    """Yield what an answer has in all fields and columns of this name, in its order."""
    if isinstance(answer, dict):
        foreign = answer.get("foreign_text", {})
        if isinstance(foreign, dict) and name in answer.get("columns", []):
            yield from (row[answer["columns"].index(name)] for row in foreign["rows"])
        for field, value in answer.items():
            if field == name:
                yield value
            else:
                yield from values_of(value if field != "meanings" else None, name)
    elif isinstance(answer, list):
        for item in answer:
            yield from values_of(item, name)


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
        assert answers[number]["foreign_text"] == {"rows": []}
