"""The report as a page: self-contained, escaped, the same in HTML and Markdown."""

import pytest

from tasks.pages.markdown import inline
from tasks.results.text import Code, Text
from tests.fixtures.report import CODE_SPAN, MS, Report, fill_every_section, markdown_tables, report_of
from tests.fixtures.warehouse import CONVOLUTION, BundleMaker

NASTY = "a|b\\|c<script>alert(1)</script>`x`\n**y**"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    maker = BundleMaker(tmp_path_factory.mktemp("filled"))
    fill_every_section(maker)
    return report_of(maker)


def test_the_page_loads_nothing(report: Report) -> None:
    assert all(target.startswith("#") for target in report.page.loaded)
    elsewhere = report.html.replace("url(#", "")  # a pattern of a drawing, which is in the page
    for loading in ("url(", "@import", "http://", "https://"):
        assert loading not in elsewhere


def test_every_tag_is_closed_and_every_link_has_a_target(report: Report) -> None:
    assert report.page.unclosed == []
    assert report.page.links
    for target in report.page.links:
        assert report[target.removeprefix("#")].text


def test_markdown_has_the_tables_of_the_html(report: Report) -> None:
    of_html = [pair for part in report.page.parts.values() for pair in zip(part.tables, part.bare, strict=True)]
    expected = [bare[1:] for table, bare in of_html if "Started UTC" not in table[0]]
    assert len(expected) == len(of_html) - 1  # the sessions are only in HTML
    tables = [table[1:] for table in markdown_tables(report.markdown)]
    assert [[[cell.replace("(emulated)", "emulated") for cell in row] for row in table] for table in tables] == expected


def test_names_cannot_break_out_of_html_or_markdown(maker: BundleMaker) -> None:
    run = (20 * MS, {CONVOLUTION: 12 * MS, f"native_call_{NASTY}": 4 * MS})
    maker.session([run], model__name=NASTY, device__name=NASTY)
    maker.session(status="failed", reason_code=NASTY, reason=NASTY, log_tail=f"```\n{NASTY}\n````", model__name=NASTY)
    report = report_of(maker)
    assert report.page.unclosed == []
    assert "alert(1)</script>" not in report.html
    one_line = NASTY.replace("\n", " ")
    assert report["latency"].column("Model") == [one_line]
    assert report["latency"].column("Device") == [one_line]
    tables = markdown_tables(report.markdown)
    assert {len(row) == len(table[0]) for table in tables for row in table} == {True}
    assert one_line in {row[0] for table in tables for row in table}
    before, log, after = report.markdown.split("`" * 5)
    assert log == f"text\n```\n{NASTY}\n````\n"
    assert "<script>" not in CODE_SPAN.sub("", before + after).replace("\\<", "")


@pytest.mark.parametrize(
    ("text", "in_table", "markdown"),
    [
        ((Code("plain"),), False, "`plain`"),
        ((Code("with `tick"),), False, "``with `tick``"),
        ((Code("`both`"),), False, "`` `both` ``"),
        ((Code("<b>"),), False, "`<b>`"),
        ((Code("two\nlines"),), False, "`two lines`"),
        ("*a* _b_ <c> [d] #1", False, "\\*a\\* \\_b\\_ \\<c\\> \\[d\\] \\#1"),
        ((Code("a|b"), " c|d"), True, "`a\\|b` c\\|d"),
    ],
)
def test_a_name_is_a_code_span_with_any_characters_and_words_are_not_interpreted(
    text: Text, in_table: bool, markdown: str
) -> None:
    assert inline(text, in_table=in_table) == markdown
