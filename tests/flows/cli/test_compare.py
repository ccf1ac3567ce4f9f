"""`etfarm compare`: bundles are loaded, compared, printed in each format, and a regression fails the command."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from junitparser import Failure, JUnitXml

from tasks.pages.comparison import markdown
from tasks.results.changes import Comparison, SeriesChange
from tasks.results.compare import comparison_headline
from tasks.results.text import Fact
from tests.fixtures.command import Command, Ended
from tests.fixtures.documented import assert_documented
from tests.fixtures.warehouse import BundleMaker

US = 1000
QUIET = (10_000, 10_010, 9_990, 10_005, 9_995)
NIGHTS = ("2026-11-01", "2026-11-02")


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    return BundleMaker(tmp_path)


@pytest.fixture
def compare(maker: BundleMaker, command: Command) -> Command:
    """Load all bundles at the first call, and run `etfarm compare` with these words."""

    def run(*words: object) -> Ended:
        if maker.warehouse.stat().st_mode & 0o200:
            maker.load()
            maker.warehouse.chmod(0o444)  # so that it is read in place
        return command("compare", *words, "--warehouse", maker.warehouse)

    return run


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nights: `slow` got slower, `toy` stayed, `short` lacks sessions, `gone` and `new` are in one night each."""
    maker = BundleMaker(tmp_path_factory.mktemp("nights"))
    for night, slow_us in zip(NIGHTS, (10_000, 12_000), strict=True):
        measure(maker, night, [slow_us + us - 10_000 for us in QUIET], model__name="slow", model__pte_sha256=night)
        measure(maker, night, QUIET, model__name="toy")
        measure(maker, night, QUIET[:3], model__name="short")
    measure(maker, NIGHTS[0], QUIET, model__name="gone")
    measure(maker, NIGHTS[1], QUIET, model__name="new")
    maker.load()
    maker.warehouse.chmod(0o444)  # so that it is read in place
    return maker.warehouse


@pytest.fixture
def compare_nights(command: Command, two_nights: Path) -> Command:
    """Run `etfarm compare` on the two nights with these words behind theirs."""
    return lambda *words: command("compare", *NIGHTS, *words, "--warehouse", two_nights)


def measure(maker: BundleMaker, night: str, times_us: Sequence[int], **changes: Any) -> None:
    """Write a session per time to the sweep of a night."""
    for minute, time_us in enumerate(times_us):
        maker.session(
            [time_us * US] * 3,
            sweep__sweep_id=f"smoke-{night}",
            sweep__night=night,
            started_at=f"{night}T01:{minute:02}:00+00:00",
            **changes,
        )


def rows_of(ended: Ended) -> list[dict[str, Any]]:
    assert ended.code == 0, ended.err
    rows: list[dict[str, Any]] = json.loads(ended.out)
    assert_documented("compare", rows)
    return rows


def test_two_nights_are_compared_and_what_is_in_one_only_is_listed(compare_nights: Command) -> None:
    ended = compare_nights()
    # then each pair has its sessions, times, ratio, interval and answer, and nothing is dropped
    assert ended.code == 0, ended.err
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0] == (
        "1 of 3 series slower: slow fp32 on host, SME2 off, one thread, 20.0 % (13.7 to 26.6 %); inconclusive: 2; "
        "sessions: 13 of A, 13 of B; margin 1 %."
    )
    assert lines[2:4] == ["A: night 2026-11-01", "B: night 2026-11-02"]
    (slow,) = (line for line in lines if line.startswith("slow host fp32 sme2_off 1 5 + 5 10 12 slower 20.0 % (13.7"))
    assert slow.endswith(" pte")
    assert "toy host fp32 sme2_off 1 5 + 5 10 10 inconclusive: nights differ by 5.5 % without a change" in lines
    assert "short host fp32 sme2_off 1 3 + 3 10 10 inconclusive: 2 more sessions of each side" in lines
    assert "only in A: gone fp32 on host, SME2 off, one thread (5 sessions)" in lines
    assert "only in B: new fp32 on host, SME2 off, one thread (5 sessions)" in lines
    assert lines[-2].startswith("A and B were not measured interleaved")
    assert "; nights differ by 5.5 % to 6.3 %, depending on the series, without a change, which the inter" in lines[-2]
    assert lines[-1] == "to know more, measure both interleaved: `etfarm compare A.pte B.pte`"


def test_programs_get_every_figure_and_the_cells(compare_nights: Command, command: Command, two_nights: Path) -> None:
    rows = rows_of(compare_nights("--format", "json"))
    slow = next(row for row in rows if row["model"] == "slow")
    figures = {"sessions_a": 5, "sessions_b": 5, "time_a_ms": 10.0, "time_b_ms": 12.0, "ratio": 1.2}
    assert slow == slow | figures
    assert 1.13 < slow["low"] < 1.14 < 1.26 < slow["high"] < 1.27
    assert (slow["answer"], slow["superiority"], slow["sweep_b"]) == ("different", 1.0, "smoke-2026-11-02")
    assert [(row["model"], row["answer"]) for row in rows if row["ratio"] is None] == [
        ("gone", "only in A"),
        ("new", "only in B"),
    ]
    # and as CSV the same rows
    table = list(csv.DictReader(io.StringIO(compare_nights("--format", "csv").out)))
    assert [row["cell_a"] for row in table] == [row["cell_a"] or "" for row in rows]
    # and the cells that are named can be compared directly, by the beginning of their ids
    cells = (slow["cell_a"][:8], slow["cell_b"][:8])
    direct = rows_of(command("compare", *cells, "--format", "json", "--warehouse", two_nights))
    assert [(row["cell_a"], row["ratio"]) for row in direct] == [(slow["cell_a"], 1.2)]


def test_nights_on_a_device_with_two_states_are_compared_within_them_and_a_line_states_it(
    maker: BundleMaker, compare: Command
) -> None:
    # given nights with three and five of eight sessions 15 % slower, and a model that became 25 % slower
    for night, slow, factor in ((NIGHTS[0], 5, 1.0), (NIGHTS[1], 3, 1.25)):
        states = [1.15] * slow + [1.0] * (8 - slow)
        times_us = [round(factor * state * (10_000 + number)) for number, state in enumerate(states)]
        measure(maker, night, times_us, model__pte_sha256=night)
    # then the table has the ratio within the states, and a line below states it
    out = compare(*NIGHTS).out
    assert "slower 25." in out
    assert "sessions of this device have two states, 15.0 % apart: A 3 fast and 5 slow, B 5 fast and 3 slow" in out
    [row] = rows_of(compare(*NIGHTS, "--format", "json"))
    assert 1.24 < row["ratio"] < 1.26
    assert row["time_b_ms"] / row["time_a_ms"] < 1.2
    assert row["note"].endswith("so the ratio is not that of the times")


def test_a_night_that_is_slower_with_the_same_content_is_the_device_and_no_regression(
    maker: BundleMaker, compare: Command
) -> None:
    for night, us in zip(NIGHTS, (0, 2_000), strict=True):
        measure(maker, night, [each + us for each in QUIET])
    ended = compare(*NIGHTS, "--fail-on", "regression")
    assert (ended.code, "device slower 20.0 % (" in ended.out) == (0, True), ended.err
    assert ended.out.startswith("No series slower of 1; device slower: 1; sessions: 5 of A, 5 of B; margin 1 %.\n")


def test_markdown_answers_in_its_first_line_and_folds_what_did_not_change(maker: BundleMaker, compare: Command) -> None:
    # given a model whose name is Markdown, with the same time, and one that is slower
    for night, slow in zip(NIGHTS, (0, 3_000), strict=True):
        measure(maker, night, QUIET, model__name="a|b")
        measure(maker, night, [us + slow for us in QUIET], model__name="./voice.py:make", model__pte_sha256=night)
    lines = compare(*NIGHTS, "--margin", "6", "--format", "markdown").out.splitlines()
    # then the answer is first, names are those of the pages, and what did not change is folded
    assert lines[0].startswith("**1 of 2 series slower: voice fp32 on host, SME2 off, one thread, 30.0 % (")
    assert "; not slower: 1; sessions: 10 of A, 10 of B; margin 6 %.**" in lines[0]
    rows = [line for line in lines if line.startswith("| ")]
    assert rows[2].startswith(r"| voice fp32 on host, SME2 off, one thread | 10 ms | 13 ms | slower 30.0 % (")
    explained = lines.index("<details><summary>What is known about the worst change</summary>")
    assert any(line.startswith("- Where it comes from: Sweep ") for line in lines[explained:])
    assert lines[explained + 2].startswith(r"- Verdict: voice fp32 on host, SME2 off, one thread: slower 30.0 % (")
    assert (
        lines.index(rows[2])
        < explained
        < lines.index("<details><summary>1 without a change, and how it was measured</summary>")
    )
    assert rows[-1].startswith(
        r"| a\|b fp32 on host, SME2 off, one thread | 10 ms | 10 ms | not slower: at most 5.5 % |"
    )


def test_a_comparison_is_written_to_each_file_in_the_format_of_its_ending(
    compare_nights: Command, tmp_path: Path
) -> None:
    files = {ending: tmp_path / f"answer.{ending}" for ending in ("md", "json", "xml", "svg")}
    ended = compare_nights(*(word for file in files.values() for word in ("--output", file)))
    assert ended.code == 0, ended.err
    # then Markdown and JSON are those of --format
    assert files["md"].read_text() == compare_nights("--format", "markdown").out
    assert json.loads(files["json"].read_text()) == rows_of(compare_nights("--format", "json"))
    # and JUnit has a test per series: one failed, two without an answer
    (suite,) = JUnitXml.fromfile(str(files["xml"]))
    assert (suite.tests, suite.failures, suite.skipped, suite.errors) == (3, 1, 2, 0)
    (failed,) = [case for case in suite if case.result and isinstance(case.result[0], Failure)]
    assert (failed.name, failed.classname) == ("slow fp32 sme2_off t1", "host")
    assert failed.result[0].message.startswith("slower 20.0 % (13.7 to 26.6 %)")
    # and the badge counts
    assert "1 slower, 2 inconclusive" in files["svg"].read_text()


def test_the_markdown_has_at_most_60_lines_whatever_was_compared() -> None:
    # given more of everything than is shown, and all twelve facts that an explanation may have
    of_series: dict[str, Any] = {"device": "host", "precision": "fp32", "variant": "sme2_off", "threads": 1}
    changed, same, only = (
        [SeriesChange(model=f"m{number}", word=word, **of_series) for number in range(25)]
        for word in ("slower", "same", "only in A")
    )
    sentences = [f"sentence {number}" for number in range(9)]
    out = markdown(
        Comparison(
            a="a",
            b="b",
            changes=changed + same,
            headline=comparison_headline(changed + same, 0.01),
            remarks=sentences,
            other_figures=sentences,
            uncompared=only,
            explained=[Fact(f"Fact {number}", ["One.", "Two."]) for number in range(12)],
        )
    )
    assert out.startswith("**25 of 50 series slower: worst ")
    assert len(out.splitlines()) <= 60
    assert "15 more: `--output x.json` has all" in out
    assert all(f"- Fact {number}: One. Two." in out for number in range(12))


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--fail-on", "regression"], 1, "regression: 1 of 3 slower in B by more than the margin"),
        (["--fail-on", "regression", "--margin", "25"], 0, ""),
        (["--fail-on", "different"], 1, "different: 1 of 3 different"),
        (["--fail-on", "unknown"], 1, "unknown: 4 of 5 unknown or without a counterpart"),
        (["--fail-on", "unknown", "--model", "toy", "--margin", "6"], 0, ""),
        (["--fail-on", "regression", "--fail-on", "unknown"], 1, "by more than the margin; unknown: 4 of 5"),
        (["--model", "tyo"], 2, "--model: neither A nor B has a cell with model `tyo`; did you mean `toy`?"),
        (["--model", "gone"], 2, "nothing to compare: no cell of the 1 of A (night 2026-11-01) matches"),
        (["--output", "x.html"], 2, "x.html: unknown output format; end its name in .md, .json, .xml, .svg"),
    ],
)
def test_a_result_that_fail_on_lists_and_a_mistake_decide_the_exit_code(
    compare_nights: Command, words: list[str], code: int, sentence: str
) -> None:
    ended = compare_nights(*words)
    assert (ended.code, ended.err.count("\n")) == (code, int(code > 0))
    assert sentence in ended.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["2026-11-01", "2026-11-09"], "did you mean `2026-11-0"),
        (["smoke-2026-11-01", "2026-11-01"], "A and B share 18 sessions; compare two without a common session"),
        (["x'; DROP TABLE cell; --", "host"], "is not a night, sweep"),
    ],
)
def test_words_that_name_nothing_to_compare_are_one_sentence(
    command: Command, two_nights: Path, words: list[str], sentence: str
) -> None:
    ended = command("compare", *words, "--warehouse", two_nights)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert sentence in ended.err


def test_a_model_that_got_faster_is_no_regression(command: Command, two_nights: Path) -> None:
    words = ("compare", *reversed(NIGHTS), "--fail-on", "regression", "--warehouse", two_nights)
    assert command(*words).code == 0


def test_sme2_devices_models_and_precisions_are_compared_inside_the_newest_sweep(
    maker: BundleMaker, compare: Command
) -> None:
    # given an older sweep, and a newer one with SME2 on and off, two devices, two models and two precisions
    measure(maker, NIGHTS[0], QUIET)
    arms: tuple[tuple[dict[str, Any], int], ...] = (
        ({}, 10_000),
        ({"variant": "sme2_on"}, 5_000),
        ({"device__name": "phone"}, 20_000),
        ({"model__name": "other"}, 30_000),
        ({"model__precision": "fp16"}, 7_000),
    )
    for changes, time_us in arms:
        measure(maker, NIGHTS[1], [time_us + us - 10_000 for us in QUIET], **changes)

    def ratios(*words: str) -> list[tuple[str, float]]:
        """The field that differs, and the ratio, of each pair."""
        rows = rows_of(compare(*words, "--format", "json"))
        fields = ("variant", "device", "model", "precision")
        return [
            (next(row[name] for name in fields if "->" in row[name]), row["ratio"])
            for row in rows
            if row["ratio"] is not None and row["sweep_a"] == row["sweep_b"] == "smoke-2026-11-02"
        ]

    # then each is matched by what it shares
    assert ratios("sme2_off", "sme2_on") == [("sme2_off -> sme2_on", 0.5)]
    assert ratios("host", "phone") == [("host -> phone", 2.0)]
    assert ratios("toy", "other") == [("toy -> other", 3.0)]
    assert ratios("fp32", "fp16") == [("fp32 -> fp16", 0.7)]


def test_an_upgrade_between_two_nights_is_named(maker: BundleMaker, compare: Command) -> None:
    # given a second night with a new ExecuTorch, and so another runner and a larger .pte file
    measure(maker, NIGHTS[0], QUIET)
    upgrade = {"runner__versions": {"executorch": "1.6.0", "runner": "1"}, "runner__runner_sha256": "r2"}
    measure(maker, NIGHTS[1], QUIET, model__pte_sha256="p2", model__pte_bytes=1250, **upgrade)
    # then two nights, versions or runners give the same pair, with what differs
    for words in (("1.5.1", "1.6.0"), ("r1", "r2"), NIGHTS):
        (row,) = rows_of(compare(*words, "--margin", "6", "--format", "json"))
        assert (row["answer"], row["differs"]) == ("same", "executorch 1.5.1 -> 1.6.0, pte, runner")
        assert (row["pte_bytes_a"], row["pte_bytes_b"]) == (1000, 1250)


@pytest.mark.parametrize(("transport", "kind"), [("adb", "emulated"), ("simulated", "simulated")])
def test_emulated_and_simulated_devices_are_labelled_and_have_no_times(
    transport: str, kind: str, maker: BundleMaker, compare: Command
) -> None:
    for night, us in zip(NIGHTS, (10_000, 20_000), strict=True):
        measure(maker, night, [us] * 5, device__transport=transport, device__emulated=True)
    ended = compare(*NIGHTS, "--fail-on", "regression", "--fail-on", "different", "--fail-on", "unknown")
    assert ended.code == 0, ended.err
    assert f"host ({kind})" in ended.out
    assert f"{kind}: no times" in ended.out
    assert ended.out.startswith(f"No series slower of 1; {kind}, without times: 1; sessions: 5 of A, 5 of B;")
    (row,) = rows_of(compare(*NIGHTS, "--format", "json"))
    assert [row[name] for name in ("time_a_ms", "time_b_ms", "ratio", "low", "high", "answer")] == [None] * 6
    assert (row["sessions_a"], row["emulated"]) == (5, True)


def test_inaccurate_outputs_are_never_faster(maker: BundleMaker, compare: Command) -> None:
    output = {"output": 0, "max_abs_error": 9.0, "max_rel_error": 9.0, "nonfinite_mismatches": 0, "is_inaccurate": True}
    measure(maker, NIGHTS[0], QUIET)
    measure(maker, NIGHTS[1], [each // 2 for each in QUIET], accuracy=[output])
    ended = compare(*NIGHTS)
    assert "inaccurate: B" in ended.out
    assert ended.out.startswith("No series slower of 1; inaccurate outputs: 1; ")
    (row,) = csv.DictReader(io.StringIO(compare(*NIGHTS, "--format", "csv").out))
    assert row["answer"] == "inaccurate"
    assert float(row["ratio"]) == pytest.approx(0.5, rel=1e-3)
    failed = compare(*NIGHTS, "--fail-on", "inaccurate")
    assert (failed.code, failed.err) == (1, "etfarm: compare failed: inaccurate: 1 of 1 with inaccurate outputs\n")
    assert compare(*NIGHTS, "--fail-on", "different").code == 0
