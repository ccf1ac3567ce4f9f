"""A series is explained with the figures of SQL, in the same sentences as text, data, Markdown and on its page."""

import re
from typing import Any

import duckdb
import pytest

from devices.errors import InputError
from sql.warehouse import open_read_only
from tasks.pages.explanation import markdown_lines, terminal_lines
from tasks.pages.site.page_keys import read_keys
from tasks.pages.site.site import Site
from tasks.results.explanation import explain
from tasks.results.reader import Reader, open_reader
from tasks.results.text import Link
from tests.fixtures.documented import assert_documented
from tests.fixtures.nights import night_of, night_of_operators
from tests.fixtures.pages import Pages
from tests.fixtures.report import MS
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, MEAN, TRANSPOSE, BundleMaker

SLOW = "bert_03"
FIGURES = (
    *("device", "verdict", "time_ms", "before_ms", "after_ms", "ratio", "low", "high", "sessions", "cell", "sweep_id"),
)


def table_of_page(pages: Pages, model: str) -> list[list[str]]:
    return pages.read(f"models/{model}.html").tables["explained"][0][1:]


def without_cells(reader: Reader) -> Pages:
    """The pages of a publication that has no page of a cell."""
    site = Site(reader, "x")
    site.published = {each for each in read_keys(site) if not each.startswith("cells/")}
    return Pages(site)


def as_rows(facts: dict[str, Any]) -> list[list[str]]:
    return [[title, " ".join(sentences).replace("`", "")] for title, sentences in facts.items()]


def test_the_worst_series_is_explained_with_the_figures_of_sql_everywhere_in_the_same_sentences(
    connection: duckdb.DuckDBPyConnection, pages: Pages
) -> None:
    # given a model that got slower on the first device alone
    slow = explain(Reader(connection), SLOW, {})
    asked = f"SELECT {', '.join(FIGURES)} FROM verdict WHERE is_newest AND model = '{SLOW}' ORDER BY ratio DESC"
    worst, *others = connection.execute(asked).fetchall()
    assert tuple(slow.figures[name] for name in FIGURES) == worst
    assert len(slow.others) == len(others) > 0
    asked = f"SELECT session_id FROM session_latency WHERE cell = '{slow.figures['cell']}' ORDER BY 1"
    assert sorted(slow.figures["session_ids"]) == [name for (name,) in connection.execute(asked).fetchall()]
    facts = slow.data()["facts"]
    details = {"Where the time goes", "Portable operators", "SME2", "Where it comes from"}
    assert {"Evidence", "What changed", "Next step", *details} <= facts.keys()
    lines, points, rows = terminal_lines(slow), markdown_lines(slow), table_of_page(pages, SLOW)
    for title, sentences in facts.items():
        assert f"{title}: {sentences[0]}" in lines
        assert sum(point.startswith(f"- {title}: ") for point in points) == 1
        assert as_rows({title: sentences})[0] in rows
    # and a page that is published without that of the cell has no details of the cell
    titles = {title for title, _ in table_of_page(without_cells(Reader(connection)), SLOW)}
    assert {"Evidence", "What changed", "Next step"} <= titles
    assert not details & titles


@pytest.mark.parametrize(
    ("name", "only", "sentence"),
    [
        ("bert_3", {}, "`bert_3` is not a model or a series id; did you mean `bert_03`?"),
        (SLOW, {"device": "phone-1"}, "--device: `bert_03` has no series with device `phone-1`; did you mean `phone-"),
        (SLOW, {"variant": "x"}, "--variant: `bert_03` has no series with variant `x`; use one of sme2_"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    connection: duckdb.DuckDBPyConnection, name: str, only: dict[str, str | None], sentence: str
) -> None:
    with pytest.raises(InputError) as refused:
        explain(Reader(connection), name, only)
    assert str(refused.value).startswith(sentence)


def test_sme2_and_portable_operators_are_explained_whichever_variant_is_worse(maker: BundleMaker) -> None:
    # given a model with SME2 on and off, that spends a quarter of its time in a portable operator
    facts: dict[str, Any] = {"model": "board", "build": "b1", "sme2": True}
    for variant, time_ms, convolution in (
        ("sme2_off", 20, {CONVOLUTION: 12 * MS}),
        ("sme2_on", 11, {CONVOLUTION_SME2: 3 * MS}),
    ):
        operators = convolution | {TRANSPOSE: 2 * MS, MEAN: 5 * MS}
        for number in range(5):
            run = (time_ms * MS + number * 1000, operators)
            maker.session([run], variant=variant, repetition=number, device__facts=facts)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        explanation = explain(Reader(connection), "toy", {})
        rows = table_of_page(Pages(Site(Reader(connection), "x")), "toy")
    assert_documented("explain", explanation.data())
    facts = explanation.data()["facts"]
    assert rows == as_rows(facts)
    gain, calls, largest = facts["SME2"]
    assert re.match("With SME2 on, .* 1.82 times .*one comparison of five sessions", gain)
    assert re.match("SME2 on, one thread: 1 of 1 eligible calls .* by their names, 100.0 %", calls)
    assert (
        "off: Convolution, 60.0 % of the time (12.0 ms); with SME2 on: Other, 45.4 % of the time (5.00 ms)" in largest
    )
    portable = "`toy` fp32: portable operators take 25.0 % of the time (5.00 ms of 20.0 ms"
    assert facts["Portable operators"][0].startswith(portable)
    assert facts["Evidence"] == ["Five sessions."]
    assert any(isinstance(part, Link) for part in explanation.answer)


def test_a_series_whose_sessions_all_failed_is_explained_by_the_record_of_the_failure(maker: BundleMaker) -> None:
    # given a device that could not be reached in the newest night, after a night with times and one without
    lost: dict[str, Any] = {"status": "failed", "reason_code": "device_unusable"}
    night_of(maker, 1)
    night_of(maker, 2, reason="host: cable", **lost)
    for threads in (1, 4):
        night_of(maker, 3, threads=threads, reason="host: cannot reach farm@host", **lost)
    night_of(maker, 3, model__name="other", reason="host: of another model", **lost)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        reader = Reader(connection)
        explanation = explain(reader, "toy", {})
        of_live = table_of_page(Pages(Site(reader, "x")), "toy")
        of_published = table_of_page(without_cells(reader), "toy")
    # then verdict, explanation and page state why there is no session, and what to do
    why = "8 of 8 sessions failed (device_unusable): host: cannot reach farm@host"
    assert f"failed. {why}." in terminal_lines(explanation)[1]
    facts = explanation.data()["facts"]
    command = "Sessions that failed: `etfarm sql newest-failures --model toy --device host`"
    assert facts["Sessions without a result"][0] == "No result for eight sessions: host (`device_unusable`)."
    assert facts["Next step"][1] == command
    assert of_live == as_rows(facts)
    # and a page that is published without details has the command
    assert of_published == as_rows({"Incident": facts["Incident"], "Next step": [command]})


def test_operators_with_a_confirmed_change_are_named_where_the_latency_hides_it(maker: BundleMaker) -> None:
    usual = {CONVOLUTION: 6_000_000, TRANSPOSE: 3_000_000, MEAN: 1_000_000}
    for day in range(4, 11):
        night_of_operators(maker, day, usual | ({MEAN: 1_060_000} if day > 8 else {}), model__pte_sha256=f"p{day > 8}")
    maker.load()
    with open_reader(maker.warehouse) as reader:
        explanation = explain(reader, "toy", {})
    facts = explanation.data()["facts"]
    assert explanation.figures["verdict"] == "no change"
    assert [text.split(":")[0] for text in facts["Operators that changed"]] == ["`mean`"]
    assert "Cause" not in facts
