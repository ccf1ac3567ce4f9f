"""What the report states about language models, given sessions of their prefill and their decoding."""

from typing import Any

from tests.fixtures.report import MS, report_of
from tests.fixtures.warehouse import BundleMaker


def both_phases(maker: BundleMaker, **changes: Any) -> None:
    for case, tokens, kv_depth, ms in (("prefill128", 128, 0, 64), ("decode", 1, 128, 4)):
        of_model: dict[str, Any] = {"model__name": f"llm@{case}", "model__tokens": tokens, "model__kv_depth": kv_depth}
        maker.session([ms * MS] * 3, **of_model, **changes)


def rows_of(maker: BundleMaker) -> list[list[str]]:
    tables = [
        table for table in report_of(maker)["latency"].tables if any(head.startswith("Prompt") for head in table[0])
    ]
    return [row for table in tables for row in table[1:]]


def test_the_phases_of_a_model_are_in_one_row(maker: BundleMaker) -> None:
    both_phases(maker)
    assert rows_of(maker) == [
        ["llm", "host", "fp32", "off", "1", "128", "64.000", "2,000.0", "128", "4.000", "250.0", "1", "1"]
    ]
    assert report_of(maker).contains("a text cannot end early", "latency")


def test_an_emulated_device_has_counts_and_no_times(maker: BundleMaker) -> None:
    both_phases(maker, device__emulated=True)
    assert [row[5:] for row in rows_of(maker)] == [["128", "–", "–", "128", "–", "–", "1", "1"]]  # noqa: RUF001


def test_without_a_language_model_nothing_is_said_of_prefill(maker: BundleMaker) -> None:
    maker.session([MS] * 3)
    assert rows_of(maker) == []
    assert not report_of(maker).contains("Prefill", "latency")
