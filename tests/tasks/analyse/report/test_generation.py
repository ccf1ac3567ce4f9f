"""What the report states about language models, given sessions of their prefill and their decoding."""

from tests.fixtures.report import MS, report_of
from tests.fixtures.warehouse import BundleMaker


def rows_of(maker: BundleMaker) -> list[list[str]]:
    tables = [
        table for table in report_of(maker)["latency"].tables if any(head.startswith("Prompt") for head in table[0])
    ]
    return [row for table in tables for row in table[1:]]


def test_the_phases_of_a_model_are_in_one_row(maker: BundleMaker) -> None:
    for case, tokens, kv_depth, ms in (("prefill128", 128, 0, 64), ("decode", 1, 128, 4)):
        maker.session([ms * MS] * 3, model__name=f"llm@{case}", model__tokens=tokens, model__kv_depth=kv_depth)
    assert rows_of(maker) == [
        ["llm", "host", "fp32", "off", "1", "128", "64.000", "2,000.0", "128", "4.000", "250.0", "1", "1"]
    ]
    assert report_of(maker).contains("a text cannot end early", "latency")


def test_without_a_language_model_nothing_is_said_of_prefill(maker: BundleMaker) -> None:
    maker.session([MS] * 3)
    assert rows_of(maker) == []
    assert not report_of(maker).contains("Prefill", "latency")
