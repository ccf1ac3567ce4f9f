"""Whether a comparison passes: the word, the number of the worst series, and the exit code agree in every case."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.judge.comparison import SideComparison
from tasks.pages.comment import first_line
from tasks.pages.markdown import escaped
from tasks.results.changes import Comparison, SeriesChange, SideFacts
from tasks.results.compare import measured_fields
from tasks.results.gate import build_gate, fail_reasons, repository_address
from tasks.results.night import night_comparison, night_gate
from tasks.results.verdicts import FailingVerdict, VerdictRow
from tests.tasks.pages.rows import verdict

RATIO = SideComparison(8, 8, 10.0, 11.2, 1.123, 1.101, 1.148, "different", None, 1.0)
SIDES: dict[str, Any] = {
    "a": SideFacts(cell="a1", commit="4" * 40),
    "b": SideFacts(cell="b2", commit="c" * 40 + "-dirty"),
}


def change(result: SideComparison | None, inaccurate_sides: str = "", **fields: Any) -> SeriesChange:
    measured = {name: fields.pop(name) for name in ("is_of_device", "without_times") if name in fields}
    names: dict[str, Any] = {
        "model": "voice",
        "device": "pixel-8",
        "precision": "fp16",
        "variant": "sme2_on",
        "threads": 1,
    }
    return SeriesChange(**names, **SIDES | fields, **measured_fields(result, 0.01, inaccurate_sides, **measured))


SLOWER = change(RATIO)
FASTER = change(replace(RATIO, ratio=0.8, low=0.78, high=0.82))
SAME = change(replace(RATIO, ratio=1.002, low=0.997, high=1.017, answer="same"))
UNKNOWN = change(replace(RATIO, low=0.95, answer="unknown"))
OF_DEVICE = change(RATIO, is_of_device=True)
WRONG = change(RATIO, "B")
REPAIRED = change(RATIO, "A", a=SideFacts(accuracy="inaccurate"), b=SideFacts(accuracy="accurate"))
SIMULATED = change(None, without_times="simulated")
BROKEN = replace(SIMULATED, word="failed", answer="failed", in_words="failed: no answer")
EVERY = (SLOWER, FASTER, SAME, UNKNOWN, OF_DEVICE, WRONG, REPAIRED, SIMULATED, BROKEN)
FAIL_ON = ("regression", "inaccurate", "different", "unknown")


def compared(*changes: SeriesChange) -> Comparison:
    return Comparison(a="A", b="B", changes=changes, headline="")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ([SLOWER], "FAIL: voice fp16 on pixel-8 +12.3 % (+10.1 to +14.8 %)"),
        ([SAME], "PASS: voice fp16 on pixel-8 +0.2 % (-0.3 to +1.7 %)"),
        ([FASTER], "PASS: voice fp16 on pixel-8 -20.0 % (-22.0 to -18.0 %)"),
        ([UNKNOWN], "PASS: voice fp16 on pixel-8 +12.3 % (-5.0 to +14.8 %), inconclusive"),
        ([WRONG], "FAIL: voice fp16 on pixel-8 inaccurate outputs of B"),
        ([REPAIRED], "PASS: voice fp16 on pixel-8 inaccurate outputs of A"),
        (
            [SAME, replace(SLOWER, device="mac"), replace(SLOWER, ratio=1.2)],
            "FAIL: voice fp16 on pixel-8, SME2 on, one thread: +20.0 % (+10.1 to +14.8 %); 2 of 3 series fail",
        ),
        (
            [SAME, replace(FASTER, device="mac")],
            "PASS: voice fp16 on pixel-8 +0.2 % (-0.3 to +1.7 %), worst of 2 series",
        ),
        (
            [SIMULATED],
            "INCOMPLETE: no result that counts: voice fp16 on pixel-8, SME2 on, one thread: simulated: no times",
        ),
        ([SAME, BROKEN], "INCOMPLETE: voice fp16 on pixel-8, SME2 on, one thread: failed: no answer"),
        (
            [SLOWER, BROKEN],
            "FAIL: voice fp16 on pixel-8, SME2 on, one thread: +12.3 % (+10.1 to +14.8 %); 1 of 2 series fail",
        ),
        ([], "INCOMPLETE: nothing was measured"),
    ],
)
def test_the_first_line_is_the_word_and_the_worst_series_with_its_sign(changes: list[SeriesChange], line: str) -> None:
    assert build_gate(compared(*changes), ["regression"]).line == line


@given(st.lists(st.sampled_from(EVERY), max_size=4), st.sets(st.sampled_from(FAIL_ON)), st.booleans())
def test_the_exit_code_agrees_with_the_word_in_every_case(
    changes: list[SeriesChange], fail_on: set[str], has_failure: bool
) -> None:
    comparison = compared(*changes)
    gate = build_gate(comparison, fail_on, ["ears could not be compared"] if has_failure else [])
    # then success is never stated of what failed or of nothing, and what --fail-on names always fails
    counts = any(change in (SLOWER, FASTER, SAME, UNKNOWN, OF_DEVICE, REPAIRED) for change in changes)
    is_incomplete = has_failure or BROKEN in changes or not counts
    expected = (1, "FAIL") if fail_reasons(comparison, fail_on) else (3, "INCOMPLETE") if is_incomplete else (0, "PASS")
    assert (gate.exit_code, gate.word) == (expected if fail_on else (0, ""))
    assert bool(gate.reasons) >= (gate.exit_code > 0)


def test_a_series_that_fails_for_two_reasons_and_one_without_a_counterpart_count_once() -> None:
    both = build_gate(compared(SLOWER, replace(SAME, device="mac")), ["regression", "different"])
    assert both.line.endswith("; 1 of 2 series fail")
    alone = [replace(SIMULATED, word="only in B", device=device) for device in ("x", "y", "z")]
    gate = build_gate(replace(compared(SAME, SAME), uncompared=alone), ["unknown"])
    assert gate.line.endswith("; 3 of 5 series fail")


def test_without_a_result_that_fails_there_is_no_word() -> None:
    assert build_gate(compared(SLOWER), []).line == "voice fp16 on pixel-8 +12.3 % (+10.1 to +14.8 %)"


@pytest.mark.parametrize(("before", "after", "fails"), [("inaccurate", "accurate", False), ("inaccurate", None, True)])
def test_a_gate_on_regressions_passes_outputs_that_b_repairs(before: str, after: str | None, fails: bool) -> None:
    comparison = compared(replace(REPAIRED, a=SideFacts(accuracy=before), b=SideFacts(accuracy=after)))
    assert bool(fail_reasons(comparison, ["regression"])) is fails
    assert fail_reasons(comparison, ["inaccurate"]) == ["inaccurate: 1 of 1 with inaccurate outputs"]
    assert fail_reasons(comparison, ["different", "unknown"]) == []


def test_the_commits_of_both_sides_and_the_page_follow_and_are_links_where_the_host_is_known() -> None:
    comparison = compared(SLOWER)
    gate = build_gate(comparison, ["regression"])
    comparison = replace(comparison, gate=gate, link=f"https://farm.example.org/{gate.page}")
    first = first_line(comparison, escaped).partition(" \u00b7 ")[2]
    dirty = "`ccccccc` with uncommitted changes"
    assert first == f"{dirty} against `4444444` \u00b7 [page](https://farm.example.org/comparisons/cells/a1..b2.html)"
    of_github = repository_address({"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r"})
    linked = first_line(replace(comparison, repository=of_github), escaped)
    assert f"[`4444444`](https://github.com/o/r/commit/{'4' * 40})" in linked
    # and two sides of one commit, such as two devices, have none
    assert "4444444" not in first_line(compared(replace(SLOWER, b=SLOWER.a)), escaped)


NO_EARLIER = "Nothing to compare with: one series without an earlier night that counts."
NIGHT = date(2026, 11, 2)
REGRESSION = verdict("regression", ratio=1.1, low=1.08, high=1.12)
LATER = verdict("regression", ratio=1.1, low=1.08, high=1.12, series_id="new", measured_later=date(2026, 11, 28))
MEMORY = verdict("regression", metric="peak memory", value=9e7, baseline_value=4e7)


@pytest.mark.parametrize(
    ("verdicts", "fail_on", "line"),
    [
        ([REGRESSION], "regression", "FAIL: toy fp32 on host +10.0 % (+8.0 to +12.0 %)"),
        ([verdict("no change", ratio=1.0, low=0.98, high=1.02), MEMORY], "regression", f"FAIL: {MEMORY.line}"),
        ([REGRESSION], "never", "toy fp32 on host +10.0 % (+8.0 to +12.0 %)"),
        ([verdict("suspected", ratio=1.1)], "regression", "PASS: toy fp32 on host +10.0 %"),
        ([verdict("new")], "regression", f"INCOMPLETE: {NO_EARLIER}"),
        ([LATER], "regression", "PASS: 1 of 1 series measured later."),
        ([verdict("new"), LATER], "regression", f"INCOMPLETE: {NO_EARLIER}"),
        ([REGRESSION, LATER], "regression", "FAIL: toy fp32 on host +10.0 % (+8.0 to +12.0 %)"),
        ([verdict("failed", reason="no answer")], "suspected", "INCOMPLETE: failed: toy fp32 on host: no answer"),
    ],
)  # fmt: skip
def test_a_night_has_the_same_first_line(verdicts: list[VerdictRow], fail_on: FailingVerdict, line: str) -> None:
    comparison = night_comparison(str(NIGHT), verdicts)
    assert night_gate(comparison, NIGHT, verdicts, fail_on).line == line
