"""The report as a page: complete in itself, escaped, the same in HTML and Markdown, and useful when all went wrong."""

from pathlib import Path

import pytest

from tasks.report.markdown import inline
from tasks.report.page import Code
from tasks.report.sections.failures import next_step
from tests.fixtures.report import CODE_SPAN, Report, markdown_tables
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, MEAN, Farm, profile_of

MS = 1_000_000
NASTY = "a|b\\|c<script>alert(1)</script>`x`\n**y**"


@pytest.fixture
def farm(tmp_path: Path) -> Farm:
    return Farm(tmp_path)


def report_of(farm: Farm) -> Report:
    farm.load()
    return Report(farm.warehouse, farm.bundles.parent / "reports")


def whole_farm(farm: Farm) -> None:
    """Sessions that fill every section."""
    facts = {"device__facts": {"model": "board", "sme2": True}}
    output = {"output": 0, "max_abs_error": 1e-6, "max_rel_error": 1e-3, "nonfinite_mismatches": 0}
    conditions = {"before": {"temperature_c": 30.0}, "after": {"temperature_c": 33.0}}
    for variant, name in (("sme2_off", CONVOLUTION), ("sme2_on", CONVOLUTION_SME2)):
        run = (20 * MS, {name: 12 * MS, MEAN: 4 * MS})
        portable = [{"operator": "aten.mean.dim", "count": 1, "reason": "a reason"}]
        for index in range(2):
            farm.session(
                [run],
                variant=variant,
                index=index,
                accuracy=[output],
                conditions=conditions,
                model__portable=portable,
                **facts,
            )
        farm.session([MS], mode="profile", variant=variant, files=profile_of(kai_run_sme2_mopa=9), **facts)
    farm.session(
        status="failed", reason_code="runner_crashed", reason="it fell", log_tail="last words", index=7, **facts
    )


def test_the_page_loads_nothing_from_anywhere(farm: Farm) -> None:
    whole_farm(farm)
    report = report_of(farm)
    assert all(target.startswith("#") for target in report.loaded)
    assert "url(" not in report.html
    assert "@import" not in report.html
    assert "http://" not in report.html
    assert "https://" not in report.html


def test_every_tag_is_closed_and_every_link_inside_leads_somewhere(farm: Farm) -> None:
    whole_farm(farm)
    report = report_of(farm)
    assert report.unclosed == []
    assert report.loaded
    for target in report.loaded:
        assert report[target.removeprefix("#")].text


def test_markdown_holds_the_tables_of_the_html(farm: Farm) -> None:
    whole_farm(farm)
    report = report_of(farm)
    anchors = ("latency", "sme2", "time", "operators", "portable", "accuracy", "failures", "provenance")
    shown = [table for anchor in anchors for table in report[anchor].tables]
    listed_in_html_alone = [table for table in shown if "Started UTC" in table[0]]
    assert len(listed_in_html_alone) == 1
    expected = [table[1:] for table in shown if table not in listed_in_html_alone]
    found = [table[1:] for table in markdown_tables(report.markdown)]
    assert [[_bare(row) for row in table] for table in found] == [[_bare(row) for row in table] for table in expected]


def _bare(row: list[str]) -> list[str]:
    return [cell.replace("(emulated)", "emulated") for cell in row]


def test_names_cannot_break_out_of_html_or_markdown(farm: Farm) -> None:
    run = (20 * MS, {CONVOLUTION: 12 * MS, f"native_call_{NASTY}": 4 * MS})
    farm.session([run], model__name=NASTY, device__name=NASTY)
    farm.session(status="failed", reason_code=NASTY, reason=NASTY, log_tail=f"```\n{NASTY}\n````", model__name=NASTY)
    report = report_of(farm)
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
    ("name", "code"),
    [
        ("plain", "`plain`"),
        ("with `tick", "``with `tick``"),
        ("`both`", "`` `both` ``"),
        ("<b>", "`<b>`"),
        ("two\nlines", "`two lines`"),
    ],
)
def test_a_name_is_a_code_span_whatever_is_in_it(name: str, code: str) -> None:
    assert inline((Code(name),)) == code


def test_a_bar_in_a_table_is_escaped_in_names_and_words() -> None:
    assert inline((Code("a|b"), " c|d"), in_table=True) == "`a\\|b` c\\|d"


def test_words_mean_nothing_to_markdown() -> None:
    assert inline("*a* _b_ <c> [d] #1") == "\\*a\\* \\_b\\_ \\<c\\> \\[d\\] \\#1"


def test_a_warehouse_of_failures_alone_has_a_report(farm: Farm) -> None:
    farm.session(
        status="failed",
        reason_code="runner_crashed",
        reason="the runner was ended by signal 11 (SIGSEGV)",
        log_tail="loading\nlast words",
        model__pte_sha256=None,
    )
    report = report_of(farm)
    assert report.says("No session of this sweep succeeded, so there is no latency.", "latency")
    assert report.says("runner_crashed on host: one session failed", "failures")
    assert report.says("The runner was ended by signal 11 (SIGSEGV).", "failures")
    assert report.says("last words", "failures")
    assert report.says(f"Next: {next_step('runner_crashed')}", "failures")
    assert "<pre>loading\nlast words</pre>" in report.html
    assert "```text\nloading\nlast words\n```" in report.markdown


def test_an_attempt_that_was_made_good_is_told_apart(farm: Farm) -> None:
    farm.session(status="failed", reason_code="device_lost", reason="the cable", attempt=1)
    farm.session([MS], attempt=2)
    report = report_of(farm)
    assert report.says("Every session has a result.", "failures")
    assert report.says("One attempt that a later one made good:", "failures")
    assert not report.says("Without a result to this day")


def test_a_session_that_is_discarded_by_rule_is_counted_and_not_listed(farm: Farm) -> None:
    farm.session([MS])
    farm.session(status="invalid", reason_code="first_session", reason="by rule", index=-1, session_id="d" * 16)
    failures = report_of(farm)["failures"]
    assert failures.tables == []
    assert "d" * 16 not in failures.text
    assert "One session more, the first on each device, was discarded by rule" in " ".join(failures.text.split())


def test_failures_alike_are_one_entry_with_each_log_once(farm: Farm) -> None:
    for index in range(3):
        log = "the same" if index < 2 else "another"
        farm.session(status="failed", reason_code="runner_failed", reason="it said no", log_tail=log, index=index)
    report = report_of(farm)
    assert report.says("runner_failed on host: three sessions failed", "failures")
    assert len(report["failures"].column("Session")) == 3
    assert report.html.count("<pre>") == 2


@pytest.mark.parametrize("reason_code", ["thermal", "export_failed", "device_lost", "never heard of", None])
def test_every_reason_has_a_next_step(reason_code: str | None) -> None:
    step = next_step(reason_code)
    assert step[0].isupper()
    assert step.endswith(".")
    assert len(step) > 20
