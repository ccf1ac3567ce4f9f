"""What people look at first: the heat map, and the devices that need attention."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from tasks.pages.charts import HeatCell, HeatRow
from tasks.pages.sections import incidents
from tasks.pages.sections.heat_map import heat_map
from tasks.pages.sections.worst_series import worst_first
from tasks.results.addresses import model_page
from tasks.results.devices import DeviceBuildRow, DeviceRow
from tasks.results.glances.device_attention import read_attention
from tasks.results.glances.histories import HistoryRow
from tasks.results.glances.incident_cards import IncidentCard
from tasks.results.glances.judged_figures import FigureRow
from tasks.results.incidents import IncidentRow
from tasks.results.series import NightRow, SeriesRow, counts_in_words
from tasks.results.sessions import NightFailureRow
from tasks.results.table import build_table
from tasks.results.text import Link, plain_text
from tasks.results.verdicts import VerdictRow
from tests.tasks.pages.rows import reader_of, row, verdict

NIGHT = date(2026, 11, 20)


def figure_of(judged: VerdictRow, **values: Any) -> FigureRow:
    fields: dict[str, Any] = {"series_id": judged.series_id, "verdict": judged.verdict, "ratio": judged.ratio}
    return row(FigureRow, **(fields | values), backend="XnnpackBackend")


def test_the_heat_map_draws_a_change_by_its_size_and_counts_what_it_leaves_out() -> None:
    # given two changes, 60 models without one, and the roof of the device, which is not a model
    rows = [
        verdict("regression", ratio=1.3, series_id="a", model="a"),
        verdict("improvement", ratio=0.92, series_id="b", model="b"),
        *(verdict("no change", series_id=f"m{number}", model=f"m{number:02}") for number in range(60)),
        verdict("device slower", ratio=1.3, series_id="roof", model="roof"),
    ]
    memory = figure_of(rows[0], metric="peak memory", verdict="no change", ratio=1.0)
    drawn = heat_map(reader_of(*map(figure_of, rows[:60]), memory), NIGHT, rows)
    # then those that changed are first, with mark, change and colour
    cells = [(cell.mark, cell.change, cell.style) for line in drawn.rows[:3] for cell in line.cells]
    assert cells == [("\u25b2", "+30.0", "worse-4"), ("\u25bc", "-8.0", "better-2"), ("\u00b7", "", "same")]
    assert drawn.hidden.startswith("2 more rows, ")
    assert "All: fp32, SME2 off, one thread." in drawn.caption
    # and the script has each figure that was judged
    figures = drawn.data["figures"]
    assert {name: each["changes"] for name, each in figures.items()} == {
        "latency": {0: "w4+30.0", 1: "b2-8.0"},
        "peak memory": {},
    }
    assert [each["codes"] for each in figures.values()] == ["aeo58", "o-59"]


def test_the_heat_map_names_a_series_by_its_id_only_where_its_row_has_another_on_the_device() -> None:
    lowered = "b@delegate=openvino"
    models = (("a1", "a"), ("a2", "a"), ("b", lowered))
    rows = [verdict("no change", series_id=name, model=model) for name, model in models]
    drawn = heat_map(reader_of(*map(figure_of, rows[::2])), NIGHT, rows)
    assert drawn.data["ids"] == {0: "a1"}
    # and a row has the title of its case, its links the name
    assert [plain_text(row.model) for row in drawn.rows] == ["`a`", "`b (OpenVINO)`"]
    assert [link.to for row in drawn.rows for link in row.model if isinstance(link, Link)] == [
        model_page("a"), model_page(lowered)
    ]  # fmt: skip
    assert drawn.data["models"] == {1: lowered}


def test_a_device_needs_attention_if_absent_or_with_a_new_build_or_failures_not_of_the_model() -> None:
    nights = {"absent": date(2026, 11, 18), "lost": NIGHT, "fine": NIGHT, "new": NIGHT}
    devices = [row(DeviceRow, device=name, night=night, sessions=9, succeeded=8) for name, night in nights.items()]
    failures = [
        row(NightFailureRow, device=name, reason_code=code, status="failed", sessions=1, session_id="1")
        for name, code in (("lost", "device_lost"), ("fine", "export_failed"))
    ]
    since = {"night_before": date(2026, 11, 18), "since": date(2026, 11, 19), "build_before": "6.1.84"}
    build = row(DeviceBuildRow, device="new", **since, build="6.1.99")
    reader = reader_of(*devices, *failures, build)
    lines = {each.device: plain_text(each.line) for each in read_attention(reader, NIGHT, [])}
    assert [*lines] == ["absent", "lost", "new", "fine"]
    assert lines["absent"] == "absent: not measured, last in the night of 2026-11-18"
    assert lines["lost"].startswith("lost: 1 of 9 sessions failed or invalid: `device_lost` 1")
    assert lines["new"].startswith("new: another build since 2026-11-19 (6.1.84 \u2192 6.1.99): ")
    assert "etfarm compare 2026-11-18 2026-11-19 --device new" in lines["new"]
    assert lines["fine"] == "fine: "


def test_a_card_names_the_newest_commit_and_the_first_operator_of_the_cause() -> None:
    newest = {"id": "3f0c1a2" + 33 * "0", "author": "Ada", "subject": "Fold"}
    commits = [newest, newest | {"id": "1"}]
    names: dict[str, Any] = {"models": ["voice"], "devices": ["a", "b", "c"], "precisions": ["fp16"], "series": 3}
    cause = "`Convolution (NHWC, F32)` +0.2 ms (+16.3 %), unexplained -0.1 ms"
    incident = row(IncidentRow, kind="model", onset=NIGHT, commits=commits, cause=cause, **names)
    facts = {title: plain_text(text) for title, text in IncidentCard(incident, None, ("", "")).facts}
    assert facts == {
        "Since": "2026-11-20: fp16 on 3 devices, 3 series",
        "Who": "3f0c1a2 by Ada: Fold; 1 by Ada: Fold",
        "Where": "`Convolution (NHWC, F32)` +0.2 ms (+16.3 %)",
    }

    # and an operator that takes longer is not where another figure is worse
    assert "Where" not in dict(IncidentCard(replace(incident, metric="peak memory"), None, ("", "")).facts)


def test_a_card_names_the_series_of_its_figures_and_how_many_sessions_of_all_failed() -> None:
    names: dict[str, Any] = {"models": ["toy"], "devices": ["a", "b"], "precisions": ["fp16", "fp32"], "series": 5}
    names |= {"worst_device": "b", "worst_precision": "fp16", "onset": NIGHT, "reason": "8 of 8 sessions failed"}
    failed = IncidentCard(row(IncidentRow, kind="failure", failed_sessions=40, **names), None, ("", ""))
    assert failed.figures_of == "fp16 on b"
    assert dict(failed.facts)["Why"] == ("40 sessions of 5 series failed; fp16 on b: 8 of 8 sessions failed",)
    inaccurate = IncidentCard(row(IncidentRow, kind="accuracy", **names | {"reason": "NaN"}), None, ("", ""))
    assert dict(inaccurate.facts)["Why"] == ("one of 5 series, fp16 on b: NaN",)


def test_the_card_of_a_share_states_points_as_the_heat_map_does() -> None:
    figures = {"value": 0.164, "baseline_value": 0.12, "ratio": 0.164 / 0.12, "low": 1.2, "high": 1.5}
    names: dict[str, Any] = {"kind": "model", "subject": "toy", "models": ["toy"], "devices": ["a"], "series": 1}
    names |= {"worst_device": "a", "onset": NIGHT}
    incident = row(IncidentRow, metric="portable share", precisions=["fp32"], **names, **figures)
    assert IncidentCard(incident, None, ("", "")).change == ("+4.4 points", "+2.4 to +6.0 points")
    assert incident.change == "+4.4 points (+2.4 to +6.0)"
    texts = {cell.text for cell in build_table([incident]).rows[0]}
    assert texts >= {"+4.4 points", "+2.4 to +6.0 points"}
    assert IncidentCard(replace(incident, metric="latency"), None, ("", "")).change == ("+36.7 %", "+20.0 to +50.0 %")


@pytest.mark.parametrize(
    ("model", "who"),
    [
        ("voice_tiny@decode", "1 by Ada: Keep the cache of Voice Tiny in fp32; and 2 more"),
        ("mobilevit_xs", "2 by Ada: Fold the norm of MobileViT; and 2 more"),
        ("other", "0 by Ada: Quantize the head; 1 by Ada: Keep the cache of Voice Tiny in fp32; and 1 more"),
    ],
)
def test_of_several_commits_a_card_names_those_about_its_model_or_else_the_newest_two(model: str, who: str) -> None:
    subjects = ("Quantize the head", "Keep the cache of Voice Tiny in fp32", "Fold the norm of MobileViT")
    commits = [{"id": str(at), "author": "Ada", "subject": subject} for at, subject in enumerate(subjects)]
    names: dict[str, Any] = {"models": [model], "devices": ["a"], "precisions": ["fp32"], "series": 1}
    incident = row(IncidentRow, kind="model", onset=NIGHT, commits=commits, **names)
    assert plain_text(dict(IncidentCard(incident, None, ("", "")).facts)["Who"]) == who


def test_counts_are_those_of_the_newest_night_and_series_without_it_are_stated() -> None:
    rows = [row(SeriesRow, verdict="no change", night=NIGHT - timedelta(days)) for days in (0, 0, 1)]
    assert counts_in_words(rows) == "2 series: no change 2; 1 more, last measured before 2026-11-20."


def test_a_page_about_series_states_open_incidents_before_times_without_a_change() -> None:
    values = {"state": "confirmed", "kind": "model", "metric": "peak memory", "ratio": 1.35}
    incident = row(IncidentRow, **values, subject="toy", devices=["host"], models=["toy"], worst_device="host")
    cards = [IncidentCard(incident, None, ("", ""))]
    answer, tone = incidents.answer(cards, [row(SeriesRow, verdict="no change")])
    assert plain_text(answer).startswith("One open incident: toy: peak memory worse +35.0 %. Times of 1 series: ")
    assert tone == "bad"


@pytest.mark.parametrize(("days", "place"), [(2, 2), (0, 0), (-40, None)])
def test_an_onset_before_the_nights_of_a_card_is_not_marked_in_them(days: int, place: int | None) -> None:
    history = row(HistoryRow, nights=[NIGHT + timedelta(number) for number in range(4)])
    incident = row(IncidentRow, onset=NIGHT + timedelta(days))
    assert IncidentCard(incident, history, ("", "")).onset_at == place


def test_a_phone_does_not_call_what_was_not_judged_no_change() -> None:
    cells = [HeatCell("", "", style, "") for style in ("same", "quiet", "same", "worse-1", "none")]
    assert HeatRow(("voice",), "", cells).rest == "no change on 2, not judged on 1"
    assert HeatRow(("voice",), "", cells[3:]).rest == ""


def test_a_verdict_of_an_older_night_states_it_in_the_lists() -> None:
    # given a model of the newest night, and one that was measured last before it
    rows = {name: row(SeriesRow, model=name, verdict="regression", rank=1) for name in ("now", "gone")}
    rows["gone"] = replace(rows["gone"], night=date(2026, 11, 1))
    cells = worst_first(reader_of(row(NightRow)), {name: [each] for name, each in rows.items()}, "model")
    assert {name: of_model[4].text for name, of_model in cells.items()} == {
        "now": "regression",
        "gone": "regression, 2026-11-01",
    }
