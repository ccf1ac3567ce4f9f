"""A series is explained with the figures of SQL, in the same sentences as text, data, Markdown and on its page."""

from datetime import date
from typing import Any

import duckdb
import pytest

from devices.errors import InputError
from sql.warehouse import open_read_only
from tasks.pages.explanation import markdown_lines, terminal_lines
from tasks.pages.site.site import Site
from tasks.results.addresses import cell_page
from tasks.results.changes import SeriesChange, SideFacts
from tasks.results.explanation import Explanation, explain, explain_change
from tasks.results.reader import Reader
from tasks.results.table import Table
from tasks.results.text import Link, plain_text
from tasks.results.verdicts import read_verdicts
from tests.fixtures.documented import assert_documented
from tests.fixtures.nights import fields_of, night_of
from tests.fixtures.pages import Pages
from tests.fixtures.report import MS
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, MEAN, TRANSPOSE, BundleMaker

SLOW = "bert_03"


@pytest.fixture(scope="module")
def slow(connection: duckdb.DuckDBPyConnection) -> Explanation:
    """A model that got slower on the first device alone."""
    return explain(Reader(connection), SLOW, {})


@pytest.mark.thorough
def test_the_worst_series_is_explained_with_the_figures_of_sql(
    slow: Explanation, connection: duckdb.DuckDBPyConnection
) -> None:
    asked = (
        "SELECT device, verdict, time_ms, ratio, low, high, sessions, cell, sweep_id FROM verdict "
        f"WHERE is_newest AND model = '{SLOW}' ORDER BY ratio DESC"
    )
    worst, *others = connection.execute(asked).fetchall()
    names = ("device", "verdict", "time_ms", "ratio", "low", "high", "sessions", "cell", "sweep_id")
    assert tuple(slow.figures[name] for name in names) == worst
    assert slow.figures["verdict"] == "regression"
    assert len(slow.others) == len(others) > 0
    sessions = connection.execute(
        f"SELECT session_id FROM session_latency WHERE cell = '{slow.figures['cell']}' ORDER BY 1"
    ).fetchall()
    assert sorted(slow.figures["session_ids"]) == [session_id for (session_id,) in sessions]


@pytest.mark.thorough
def test_text_data_markdown_and_the_pages_have_the_same_sentences(slow: Explanation, pages: Pages) -> None:
    facts = slow.data()["facts"]
    assert {"Evidence", "Where the time goes", "Portable operators", "SME2", "Where it comes from"} <= facts.keys()
    lines, points = terminal_lines(slow), markdown_lines(slow)
    rows = pages.read(f"models/{SLOW}.html").tables["explained"][0][1:]
    for title, sentences in facts.items():
        assert f"{title}: {sentences[0]}" in lines
        assert sum(point.startswith(f"- {title}: ") for point in points) == 1
        assert [title, " ".join(sentences).replace("`", "")] in rows


@pytest.mark.thorough
def test_a_published_page_has_the_details_only_of_cells_with_a_page(connection: duckdb.DuckDBPyConnection) -> None:
    figures = explain(Reader(connection), SLOW, {}).figures
    address = f"models/{SLOW}.html"
    titles = []
    for published in (frozenset[str](), frozenset({f"cells/{figures['cell']}.html"})):
        site = Site(Reader(connection), "x")
        site.published = published
        page = site.page(address)
        assert page is not None
        (table,) = [block for block in page.sections[0].blocks if isinstance(block, Table)]
        titles.append({str(row[0].text) for row in table.rows})
    assert {"Evidence", "What changed", "Next step"} <= titles[0]
    assert titles[1] - titles[0] >= {"Where the time goes", "Portable operators", "Where it comes from"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "only", "sentence"),
    [
        ("bert_3", {}, "`bert_3` is not a model or a series id; did you mean `bert_03`?"),
        (
            SLOW,
            {"device": "phone-01"},
            "--device: `bert_03` has no series with device `phone-01`; did you mean `phone-001`?",
        ),
        (SLOW, {"variant": "x"}, "--variant: `bert_03` has no series with variant `x`; use one of sme2_"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    connection: duckdb.DuckDBPyConnection, name: str, only: dict[str, str | None], sentence: str
) -> None:
    with pytest.raises(InputError) as told:
        explain(Reader(connection), name, only)
    assert str(told.value).startswith(sentence)


def test_sme2_and_portable_operators_are_explained_whichever_variant_is_worse(maker: BundleMaker) -> None:
    # given a model with SME2 on and off, that spends a quarter of its time in a portable operator
    sme2: dict[str, Any] = {"device__facts": {"model": "board", "build": "b1", "sme2": True}}
    for index in range(5):
        off = (20 * MS + index * 1000, {CONVOLUTION: 12 * MS, TRANSPOSE: 2 * MS, MEAN: 5 * MS})
        on = (11 * MS + index * 1000, {CONVOLUTION_SME2: 3 * MS, TRANSPOSE: 2 * MS, MEAN: 5 * MS})
        maker.session([off], variant="sme2_off", repetition=index, **sme2)
        maker.session([on], variant="sme2_on", repetition=index, **sme2)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        found = explain(Reader(connection), "toy", {})
        facts = found.data()["facts"]
        page = Pages(Site(Reader(connection), "x")).read("models/toy.html")
    assert_documented("explain", found.data())
    shown = [[title, " ".join(sentences).replace("`", "")] for title, sentences in facts.items()]
    assert page.tables["explained"][0][1:] == shown
    assert facts["SME2"] == [
        "With SME2 on, runs are 1.82 times as fast as with SME2 off (one comparison of five sessions on each side; "
        "95 % interval 1.82 to 1.82).",
        "SME2 on, one thread: 1 of 1 eligible calls per run on SME by their names, 100.0 % of their time; SME2: not "
        "proven.",
        "Largest share of the time with SME2 off: Convolution 60.0 % (12.0 ms); with SME2 on: Other 45.4 % (5.00 ms).",
    ]
    assert facts["Portable operators"][0].startswith(
        "`toy` fp32: portable operators take 25.0 % of the time (5.00 ms of 20.0 ms"
    )
    assert facts["Evidence"] == ["Five sessions."]
    assert facts["Next step"][0].startswith("Measure more sessions, or wait for the next night")
    assert any(isinstance(part, Link) for part in found.answer)


def test_a_series_whose_device_gave_no_time_comes_after_those_that_were_measured(maker: BundleMaker) -> None:
    # given a model in too few sessions on one device, and in one that is outside the limits on another
    hot: dict[str, Any] = {"status": "invalid", "reason_code": "first_session", "reason": "the first one"}
    maker.session([1_000_000] * 3, **fields_of(1), device__name="a-mac", **hot)
    night_of(maker, 1, sessions=3)
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        found = explain(Reader(connection), "toy", {})
        (first, *others) = read_verdicts(Reader(connection), [date(2026, 11, 1)])
    # then what was measured is explained, and the verdicts list it first
    assert found.figures["device"] == first.device == "host"
    evidence = found.data()["facts"]["Evidence"]
    assert evidence == ["Three sessions; the interval of a ratio needs at least 5 sessions."]
    assert [row.device for row in others] == ["a-mac"]
    assert (first.verdict, others[0].verdict) == ("insufficient data", "insufficient data")


def test_a_series_whose_sessions_all_failed_is_explained_by_the_record_of_the_failure(maker: BundleMaker) -> None:
    # given a device that could not be reached in the newest night, after a night with times and one without
    lost: dict[str, Any] = {"status": "failed", "reason_code": "device_unusable"}
    night_of(maker, 1)
    night_of(maker, 2, reason="host: cable", **lost)
    for threads in (1, 4):
        night_of(maker, 3, threads=threads, reason="host: cannot reach farm@host", **lost)
    night_of(maker, 3, model__name="other", reason="host: of another model", **lost)
    maker.load()
    # when its series are explained
    with open_read_only(maker.warehouse) as connection:
        reader = Reader(connection)
        found = explain(reader, "toy", {})
        site = Site(Reader(connection), "x")
        page = Pages(site).read("models/toy.html")
        site.published = frozenset()
        published = site.page("models/toy.html")
        verdicts = read_verdicts(reader, [date(2026, 11, 3)])
    # then verdict, explanation and page state why there is no session, and what to do
    why = "8 of 8 sessions failed (device_unusable): host: cannot reach farm@host"
    assert {row.reason for row in verdicts if row.model == "toy"} == {why}
    assert f"failed. {why}." in terminal_lines(found)[1]
    facts = found.data()["facts"]
    assert facts == {
        "Sessions without a result": [
            "No result for eight sessions: host (`device_unusable`).",
            "Reason: host: cannot reach farm@host.",
        ],
        "Next step": [
            "Check the device with `etfarm devices`, clear a quarantine with `etfarm devices release`, then run the "
            "sweep again.",
            "Sessions that failed: `etfarm sql newest-failures --model toy --device host`",
        ],
    }
    shown = [[title, " ".join(sentences).replace("`", "")] for title, sentences in facts.items()]
    assert page.tables["explained"][0][1:] == shown
    # and a page that is published without details has the command
    assert published is not None
    (table,) = [block for block in published.sections[0].blocks if isinstance(block, Table)]
    assert [[plain_text(cell.text) for cell in row] for row in table.rows] == [["Next step", facts["Next step"][1]]]


def test_a_change_that_was_measured_in_a_comparison_alone_is_explained_without_a_sweep(maker: BundleMaker) -> None:
    for name, factor in (("a", 1.0), ("b", 1.2)):
        arm = {"purpose": "comparison", "comparison": "c0ffee00c0ffee00", "side": name}
        night_of(maker, 1, factor, 5, arm=arm, model__pte_sha256=f"p{name}")
    maker.load()
    with open_read_only(maker.warehouse) as connection:
        (b,) = connection.execute("SELECT DISTINCT cell FROM session_overview WHERE pte_sha256 = 'pb'").fetchall()[0]
        names: dict[str, Any] = {
            "model": "toy",
            "device": "host",
            "precision": "fp32",
            "variant": "sme2_off",
            "threads": 1,
        }
        change = SeriesChange(**names, word="slower", b=SideFacts(cell=b))
        facts = explain_change(Reader(connection), change)
        # and its page, which the list of comparisons links to, shows its sessions
        page = Pages(Site(Reader(connection), "warehouse.duckdb")).read(cell_page(b))
    assert [fact.title for fact in facts] == ["Verdict", "Next step"]
    assert page.answer == "Five sessions that were measured alike."
