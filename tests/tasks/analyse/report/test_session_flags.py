"""What the report states about sessions whose runs are unusual."""

from tests.fixtures.report import report_of
from tests.fixtures.warehouse import BundleMaker

STEADY = [1_000_000, 1_003_000, 998_000, 1_001_000, 1_005_000, 997_000, 1_002_000, 999_000, 1_004_000, 996_000] * 5
DRIFTING = [run + 2_000 * index for index, run in enumerate(STEADY)]
TWO_MODES = [run + 300_000 * (index % 2) for index, run in enumerate(STEADY)]
SLOW_START_AND_OUTLIER = [run + 200_000 * (index in (0, 1, 2, 20)) for index, run in enumerate(STEADY)]


def test_the_flags_of_a_session_are_in_its_row_and_unusual_sessions_are_counted(maker: BundleMaker) -> None:
    # given a session of each kind, and one with too few runs to tell
    for index, runs in enumerate((STEADY, DRIFTING, TWO_MODES, SLOW_START_AND_OUTLIER, STEADY[:5])):
        maker.session(runs, index=index, started_at=f"2026-11-20T01:0{index}:00+00:00")
    report = report_of(maker)
    # then
    assert report["provenance"].column("Flags", table=-1) == [
        "–",  # noqa: RUF001
        "drift +7 %",
        "two modes",
        "slow start (3 runs), 4 outliers",
        "–",  # noqa: RUF001
    ]
    assert report.contains("Unusual sessions: 1 with drift above 5 % and 1 with two modes.", "latency")


def test_steady_sessions_and_emulated_devices_have_no_flags(maker: BundleMaker) -> None:
    maker.session(STEADY)
    maker.session(DRIFTING, device__name="emulator", device__emulated=True)
    report = report_of(maker)
    assert "Unusual sessions" not in report.html
    assert "drift" not in report["provenance"].text
