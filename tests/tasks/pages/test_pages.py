"""The report as a page: self-contained, escaped, the same in HTML and Markdown, complete without any result."""

import pytest

from tasks.bundle.remedy import remedy
from tasks.pages.markdown import inline
from tasks.results.text import Code, Text
from tests.fixtures.report import CODE_SPAN, MS, Report, fill_every_section, markdown_tables, report_of
from tests.fixtures.warehouse import CONVOLUTION, BundleMaker

NASTY = "a|b\\|c<script>alert(1)</script>`x`\n**y**"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report in which no section is empty."""
    maker = BundleMaker(tmp_path_factory.mktemp("filled"))
    fill_every_section(maker)
    return report_of(maker)


def test_the_page_loads_nothing(report: Report) -> None:
    assert all(target.startswith("#") for target in report.loaded)
    for loading in ("url(", "@import", "http://", "https://"):
        assert loading not in report.html


def test_every_tag_is_closed_and_every_link_has_a_target(report: Report) -> None:
    assert report.unclosed == []
    assert report.loaded
    for target in report.loaded:
        assert report[target.removeprefix("#")].text


def test_markdown_has_the_tables_of_the_html(report: Report) -> None:
    shown = [table for part in report.parts for table in part.tables]
    listed_in_html_alone = [table for table in shown if "Started UTC" in table[0]]
    assert len(listed_in_html_alone) == 1
    expected = [table[1:] for table in shown if table not in listed_in_html_alone]
    found = [table[1:] for table in markdown_tables(report.markdown)]
    assert [[_bare(row) for row in table] for table in found] == [[_bare(row) for row in table] for table in expected]


def _bare(row: list[str]) -> list[str]:
    return [cell.replace("(emulated)", "emulated") for cell in row]


def test_names_cannot_break_out_of_html_or_markdown(maker: BundleMaker) -> None:
    run = (20 * MS, {CONVOLUTION: 12 * MS, f"native_call_{NASTY}": 4 * MS})
    maker.session([run], model__name=NASTY, device__name=NASTY)
    maker.session(status="failed", reason_code=NASTY, reason=NASTY, log_tail=f"```\n{NASTY}\n````", model__name=NASTY)
    report = report_of(maker)
    assert report.unclosed == []
    assert "alert(1)</script>" not in report.html
    one_line = NASTY.replace("\n", " ")
    assert report["latency"].column("Model") == [one_line]
    assert report["latency"].column("Device") == [one_line]
    tables = markdown_tables(report.markdown)
    assert {len(row) == len(table[0]) for table in tables for row in table} == {True}
    assert one_line in {row[0] for table in tables for row in table}
    fence = "`" * 5
    before, log, after = report.markdown.split(f"{fence}")
    assert log == f"text\n```\n{NASTY}\n````\n"
    assert "<script>" not in CODE_SPAN.sub("", before + after).replace("\\<", "")


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ((Code("plain"),), "`plain`"),
        ((Code("with `tick"),), "``with `tick``"),
        ((Code("`both`"),), "`` `both` ``"),
        ((Code("<b>"),), "`<b>`"),
        ((Code("two\nlines"),), "`two lines`"),
        ("*a* _b_ <c> [d] #1", "\\*a\\* \\_b\\_ \\<c\\> \\[d\\] \\#1"),
    ],
)
def test_a_name_is_a_code_span_with_any_characters_and_words_are_not_interpreted(text: Text, markdown: str) -> None:
    assert inline(text) == markdown


def test_a_bar_in_a_table_is_escaped_in_names_and_words() -> None:
    assert inline((Code("a|b"), " c|d"), in_table=True) == "`a\\|b` c\\|d"


def test_a_warehouse_with_only_failures_has_a_report(maker: BundleMaker) -> None:
    maker.session(
        status="failed",
        reason_code="runner_crashed",
        reason="the runner was ended by signal 11 (SIGSEGV)",
        log_tail="loading\nlast words",
        model__pte_sha256=None,
    )
    report = report_of(maker)
    assert report.contains("No session of this sweep succeeded, so there is no latency.", "latency")
    assert report.contains("runner_crashed on host: one session failed", "failures")
    assert report.contains("The runner was ended by signal 11 (SIGSEGV).", "failures")
    assert report.contains("last words", "failures")
    assert report.contains(f"Next: {remedy('runner_crashed')}", "failures")
    assert "<pre>loading\nlast words</pre>" in report.html
    assert "```text\nloading\nlast words\n```" in report.markdown


def test_what_needs_nobody_is_counted_apart_and_not_listed(maker: BundleMaker) -> None:
    # given an attempt that was repeated with success, and the session that is always discarded
    maker.session(status="failed", reason_code="device_lost", reason="the cable", attempt=1)
    maker.session([MS], attempt=2)
    maker.session(status="invalid", reason_code="first_session", reason="discarded", repetition=-1, session_id="d" * 16)
    report = report_of(maker)
    # then every planned session has a result
    failures = report["failures"]
    assert "Every planned session has a result." in failures.words
    assert "One attempt failed and succeeded when repeated:" in failures.words
    assert not report.contains("No result for")
    assert "One additional session was discarded automatically" in failures.words
    assert "d" * 16 not in failures.text


def test_similar_failures_are_one_entry_with_each_log_once(maker: BundleMaker) -> None:
    for index in range(3):
        log = "the same" if index < 2 else "another"
        maker.session(status="failed", reason_code="runner_failed", reason="it refused", log_tail=log, repetition=index)
    report = report_of(maker)
    assert report.contains("runner_failed on host: three sessions failed", "failures")
    assert len(report["failures"].column("Session")) == 3
    assert report.html.count("<pre>") == 2


@pytest.mark.parametrize("reason_code", ["thermal", "export_failed", "device_lost", "never heard of", None])
def test_every_reason_has_a_next_step(reason_code: str | None) -> None:
    step = remedy(reason_code)
    assert step[0].isupper()
    assert step.endswith(".")
    assert len(step) > 20
