"""The report's first section: did it get slower?"""

from typing import Any

from tests.fixtures.nights import night_of, night_of_operators
from tests.fixtures.report import report_of
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, BundleMaker


def test_a_regression_is_the_first_thing_that_a_reader_meets(maker: BundleMaker) -> None:
    # given a steady week, then two nights on which one of two models is 10 % slower, from another .pte file
    for day in range(1, 10):
        night_of(maker, day, 1.1 if day > 7 else 1.0, model__pte_sha256="p2" if day > 7 else "p1")
        night_of(maker, day, model__name="steady")
    # when the report of the last night is written
    report = report_of(maker)
    # then its head and its first section name the model, the change, since when and what changed
    assert report.contains(
        "Slower: toy fp32 on host with SME2 off and one thread (+10.0 %; eight sessions, 95 % interval +"
    )
    assert report.contains("regression")
    part = report["verdicts"]
    assert part.words.startswith("1 Did it get slower?")
    answer = "1 of 2 series slower: toy fp32 on host with SME2 off and one thread +10.0 % since 2026-11-08"
    assert f"{answer}; without a change: 1." in part.words
    assert part.column("Model") == ["toy"]
    assert part.column("Verdict") == ["regression"]
    assert part.column("Change") == ["+10.0"]
    assert part.column("Since") == ["2026-11-08"]
    assert part.column("What changed") == [".pte file"]
    assert part.column("Model", table=-1) == ["steady"]


def test_a_change_is_listed_with_the_operator_that_caused_it(maker: BundleMaker) -> None:
    # given a night on which one of two operators takes twice as long
    for day, factor in ((1, 1), (2, 2)):
        night_of_operators(
            maker, day, {CONVOLUTION: 6_000_000 * factor, LINEAR: 4_000_000}, model__pte_sha256=f"p{day}"
        )
    # then its name is beside the verdict
    part = report_of(maker)["verdicts"]
    assert part.column("Cause") == [
        "Convolution (NHWC, F32) IGEMM +6.000 ms (+100.0 %), compared with 2026-11-01: "
        "changes of the device since then are included"
    ]


def test_a_first_night_has_nothing_to_compare_with(maker: BundleMaker) -> None:
    night_of(maker, 1)
    report = report_of(maker)
    assert report.contains("Nothing to compare with: one series without an earlier night that counts.", "verdicts")
    assert report["verdicts"].tables == []
    # so the head counts no regressions, not even 0
    assert not report.contains("regression")


def test_emulated_devices_are_not_judged(maker: BundleMaker) -> None:
    night_of(maker, 1, device__emulated=True)
    assert "Nothing to judge: no series of a real device was measured." in report_of(maker)["verdicts"].words


def test_other_figures_that_changed_are_in_a_table_with_both_values(maker: BundleMaker) -> None:
    # given a model whose file and memory doubled overnight, with two variants, and an unchanged latency
    for day in range(1, 4):
        size = 2 if day == 3 else 1
        changes: dict[str, Any] = {
            "model__pte_bytes": size * 4_000_000,
            "model__pte_sha256": f"p{size}",
            "stats": {"load_ns": 5_000_000, "peak_memory_bytes": size * 48_400_000, "threads_used": 1},
        }
        night_of(maker, day, **changes)
        night_of(maker, day, variant="sme2_on", **changes)
    # when the report of the last night is written
    report = report_of(maker)
    part = report["verdicts"]
    # then the file is listed once and the memory for each variant, with both values
    assert part.column("Figure") == ["peak memory", "peak memory", ".pte size"]
    assert part.column("Before") == ["48.4 MB", "48.4 MB", "4 MB"]
    assert part.column("After") == ["96.8 MB", "96.8 MB", "8 MB"]
    assert part.column("What changed") == [".pte file"] * 3
    assert report.contains("toy fp32: .pte size 4 MB -> 8 MB")
    # and the latency is counted apart
    assert "No series slower: 2 of 2 without a change; other figures worse: 3." in part.words
    assert part.column("Verdict", table=1) == ["no change", "no change"]
    assert report.contains("regressions3")
