"""Series as small multiples."""

from datetime import date, timedelta

from tasks.pages.charts import Panel
from tasks.pages.sections.panels import MAX_PANELS, series_panels
from tasks.results.series import SeriesRow
from tests.tasks.pages.rows import row

NIGHTS = [date(2026, 11, 1) + timedelta(days=number) for number in range(5)]


def series(device: str, verdict: str = "no change", rank: int = 9, **changes: object) -> SeriesRow:
    fields = {"precision": "fp32", "variant": "sme2_on", "threads": 2, "night": NIGHTS[-1], "time_ms": 12.0} | changes
    return row(
        SeriesRow, model="voice", device=device, series_id="s", verdict=verdict, rank=rank, ratio=1.2, low=1.19,
        high=1.21, since=NIGHTS[3], **fields,
    )  # fmt: skip


def test_a_panel_states_time_change_and_axis_and_marks_the_onset_and_gaps() -> None:
    # given a series that got slower in the fourth night, one without a time in a night, and one that was not measured
    slow, quiet = series("slow", "regression", 1), series("quiet", variant="sme2_off")
    times: dict[tuple[str, str], list[float | None]] = {
        ("s", "slow"): [10.0, 10.0, 10.0, 12.0, 12.0],
        ("s", "quiet"): [10.0, None, 10.01, 10.0, 12.0],
    }
    old = series("old", night=NIGHTS[0])
    drawing = series_panels([quiet, old, slow], times, NIGHTS)
    # then the worst is first, and what all share is in the title
    first, second, third = drawing.panels
    assert "fp32, two threads, the worst first: time in 5 nights, 2026-11-01 to 2026-11-05" in drawing.title
    assert (first.device, first.conditions, first.tone, first.onset) == ("slow", "SME2 on", "bad", 3)
    assert (first.value, first.change, first.axis) == ("12.0 ms", "\u25b2 regression +20.0\u00a0%", "10.0 to 12.0 ms")
    assert first.nights == [0.0, 0.0, 0.0, 1.0, 1.0]
    assert second.path.startswith("M0.0 38.0h0M50.0 ")
    assert (third.axis, third.change) == ("no time in these nights", "no change +20.0\u00a0%, 2026-11-01")


def test_noise_does_not_fill_the_height_of_a_panel() -> None:
    [panel] = series_panels([series("quiet")], {("s", "quiet"): [10.0, 10.1, 10.0, 10.1, 10.0]}, NIGHTS).panels
    shares = [share for share in panel.nights if share is not None]
    assert max(shares) - min(shares) < 0.11
    assert isinstance(panel, Panel)


def test_the_panels_after_the_worst_are_counted() -> None:
    rows = [series(f"phone-{number}") for number in range(MAX_PANELS + 3)]
    drawing = series_panels(rows, {}, NIGHTS)
    assert (len(drawing.panels), "".join(drawing.hidden)[:11]) == (MAX_PANELS, "3 more rows")
