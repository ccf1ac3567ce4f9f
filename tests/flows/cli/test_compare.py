"""`etfarm compare`: bundles are loaded, compared, printed in each format, and a regression fails the command."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from junitparser import Failure, JUnitXml

from sql.warehouse import open_read_only
from tasks.pages.comparison import markdown
from tasks.results.changes import Comparison, SeriesChange
from tasks.results.compare import comparison_headline, read_file_commits
from tasks.results.reader import Reader
from tasks.results.text import Fact
from tests.fixtures.command import Command, Ended
from tests.fixtures.documented import assert_documented
from tests.fixtures.warehouse import INACCURATE, BundleMaker

QUIET = (10_000, 10_010, 9_990, 10_005, 9_995)
NIGHTS = ("2026-11-01", "2026-11-02")
OTHERS = ("2026-11-03", "2026-11-04")
NEWEST = "2026-11-05"


def measure(maker: BundleMaker, night: str, times_us: Sequence[int], **changes: Any) -> None:
    """Write a session per time to the sweep of a night."""
    for minute, time_us in enumerate(times_us):
        names: dict[str, Any] = {"sweep__sweep_id": f"smoke-{night}", "sweep__night": night}
        maker.session([time_us * 1000] * 3, **names, started_at=f"{night}T01:{minute:02}:00+00:00", **changes)


def slower_by(us: int) -> list[int]:
    return [us + each for each in QUIET]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nights, two others in which each model has a kind of change, and one with every kind of cell."""
    maker = BundleMaker(tmp_path_factory.mktemp("nights"))
    # `slow` got slower, `toy` stayed, `short` lacks sessions, `gone` and `new` are in one night each
    for night, slow_us in zip(NIGHTS, (0, 2_000), strict=True):
        measure(maker, night, slower_by(slow_us), model__name="slow", model__pte_sha256=night)
        measure(maker, night, QUIET, model__name="toy")
        measure(maker, night, QUIET[:3], model__name="short")
    measure(maker, NIGHTS[0], QUIET, model__name="gone")
    measure(maker, NIGHTS[1], QUIET, model__name="new")
    for number, night in enumerate(OTHERS):
        # three and five of eight sessions are 15 % slower, and the model became 25 % slower
        states = [1.15] * (5 - 2 * number) + [1.0] * (3 + 2 * number)
        times_us = [round((1 + number / 4) * state * (10_000 + at)) for at, state in enumerate(states)]
        measure(maker, night, times_us, model__name="states", model__pte_sha256=night)
        measure(maker, night, slower_by(2_000 * number), model__name="same-content")
        measure(maker, night, QUIET, model__name="a|b", device__name="pi")
        voice: dict[str, Any] = {"model__name": "./voice.py:make", "model__pte_sha256": night}
        voice["sweep__source"] = {"commit": str(number) * 40, "is_dirty": bool(number)}
        measure(maker, night, slower_by(3_000 * number), **voice, device__name="pi")
        for kind, transport in (("emulated", "adb"), ("simulated", "simulated")):
            device = {"device__name": kind, "device__transport": transport, "device__emulated": True}
            measure(maker, night, [10_000 * (1 + number)] * 5, **device)
    measure(maker, OTHERS[0], QUIET, model__name="wrong")
    measure(maker, OTHERS[1], [each // 2 for each in QUIET], model__name="wrong", accuracy=INACCURATE)
    for variant, more_us in (("sme2_off", 0), ("sme2_on", -5_000)):
        measure(maker, NEWEST, slower_by(more_us), variant=variant)
    maker.load()
    maker.warehouse.chmod(0o444)  # so that it is read in place
    return maker.warehouse


@pytest.fixture
def compare(command: Command, warehouse: Path) -> Command:
    """Run `etfarm compare` with these words."""
    return lambda *words: command("compare", *words, "--warehouse", warehouse)


Compared = Callable[..., tuple[Ended, list[dict[str, Any]]]]


@pytest.fixture
def compared(compare: Command, tmp_path: Path) -> Compared:
    """Run `etfarm compare` with these words; return how it ended, and the rows that programs get."""

    def run(*words: str, code: int = 0) -> tuple[Ended, list[dict[str, Any]]]:
        ended = compare(*words, "--output", tmp_path / "rows.json")
        assert ended.code == code, ended.err
        rows: list[dict[str, Any]] = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
        assert_documented("compare", rows)
        return ended, rows

    return run


def test_two_nights_are_compared_and_what_is_in_one_only_is_listed(compare: Command) -> None:
    lines = [" ".join(line.split()) for line in compare(*NIGHTS).out.splitlines()]
    assert lines[0] == (
        "1 of 3 series slower: slow fp32 on host, SME2 off, one thread, 20.0 % (13.7 to 26.6 %); inconclusive: 2; "
        "sessions: 13 of A, 13 of B; margin 1 %."
    )
    mean = "Geometric mean of B / A over 3 series: +6.3 %."
    assert lines[2:5] == ["A: night 2026-11-01", "B: night 2026-11-02", mean]
    (slow,) = (
        line for line in lines if line.startswith("slow host fp32 SME2 off 1 5 + 5 10.0 12.0 slower 20.0 % (13.7")
    )
    assert slow.endswith(" pte")
    assert "toy host fp32 SME2 off 1 5 + 5 10.0 10.0 inconclusive: nights differ by 5.5 % without a change" in lines
    assert "short host fp32 SME2 off 1 3 + 3 10.0 10.0 inconclusive: 2 more sessions of each side" in lines
    assert "only in A: gone fp32 on host, SME2 off, one thread (5 sessions)" in lines
    assert "only in B: new fp32 on host, SME2 off, one thread (5 sessions)" in lines
    assert lines[-2].startswith("A and B were not measured interleaved")


def test_programs_get_every_figure_and_the_cells(compare: Command, compared: Compared) -> None:
    rows = json.loads(compare(*NIGHTS, "--format", "json").out)
    slow = next(row for row in rows if row["model"] == "slow")
    figures = {"sessions_a": 5, "sessions_b": 5, "time_a_ms": 10.0, "time_b_ms": 12.0, "ratio": 1.2}
    assert slow == slow | figures
    assert 1.13 < slow["low"] < 1.14 < 1.26 < slow["high"] < 1.27
    assert (slow["answer"], slow["superiority"], slow["sweep_b"]) == ("different", 1.0, "smoke-2026-11-02")
    alone = [(row["model"], row["answer"]) for row in rows if row["ratio"] is None]
    assert alone == [("gone", "only in A"), ("new", "only in B")]
    table = list(csv.DictReader(io.StringIO(compare(*NIGHTS, "--format", "csv").out)))
    assert [row["cell_a"] for row in table] == [row["cell_a"] or "" for row in rows]
    # and the cells that are named can be compared directly, by the beginning of their ids
    _, direct = compared(slow["cell_a"][:8], slow["cell_b"][:8])
    assert [(row["cell_a"], row["ratio"]) for row in direct] == [(slow["cell_a"], 1.2)]


def test_nights_on_a_device_with_two_states_are_compared_within_them_and_a_line_states_it(compared: Compared) -> None:
    ended, [row] = compared(*OTHERS, "--model", "states")
    assert "slower 25." in ended.out
    states = "sessions of this device have two states, 15.0 % apart: A 3 fast and 5 slow, B 5 fast and 3 slow"
    assert states in ended.out
    assert 1.24 < row["ratio"] < 1.26
    assert row["time_b_ms"] / row["time_a_ms"] < 1.2
    assert row["cause"] is not None


def test_a_night_that_is_slower_with_the_same_content_is_the_device_and_no_regression(compared: Compared) -> None:
    ended, [row] = compared(*OTHERS, "--model", "same-content", "--fail-on", "regression")
    assert "device slower 20.0 % (" in ended.out
    assert ended.out.startswith("No series slower of 1; device slower: 1; sessions: 5 of A, 5 of B; margin 1 %.\n")
    # so it has no cause in the model
    assert row["cause"] is None


def test_a_comparison_is_written_to_each_file_in_the_format_of_its_ending(compare: Command, tmp_path: Path) -> None:
    files = {ending: tmp_path / f"answer.{ending}" for ending in ("md", "json", "xml", "svg")}
    words = (*OTHERS, "--device", "pi", "--margin", "6")
    ended = compare(*words, *(word for file in files.values() for word in ("--output", file)))
    assert ended.code == 0, ended.err
    # then Markdown has the answer first, names are those of the pages, and what did not change is folded
    lines = files["md"].read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("**voice fp32 on pi +30.0 % (+23.2 to ")
    assert lines[2].startswith("1 of 2 series slower: voice fp32 on pi, SME2 off, one thread, 30.0 % (")
    assert "; not slower: 1; sessions: 10 of A, 10 of B; margin 6 %." in lines[2]
    rows = [line for line in lines if line.startswith("| ")]
    assert rows[2].startswith(r"| voice fp32 on pi, SME2 off, one thread | 10 ms | 13 ms | slower 30.0 % (")
    explained = lines.index("<details><summary>What is known about the worst change</summary>")
    assert any(line.startswith("- Where it comes from: Sweep ") for line in lines[explained:])
    assert lines[explained + 2].startswith(r"- Verdict: voice fp32 on pi, SME2 off, one thread: slower 30.0 % (")
    folded = lines.index("<details><summary>1 without a change, and how it was measured</summary>")
    assert lines.index(rows[2]) < explained < folded
    assert rows[-1].startswith(r"| a\|b fp32 on pi, SME2 off, one thread | 10 ms | 10 ms | not slower: at most 5.5 % |")
    answers = {row["model"]: row["answer"] for row in json.loads(files["json"].read_text())}
    assert answers == {"voice": "different", "a|b": "same"}
    # and JUnit has a test per series, of which one failed, and the badge counts
    (suite,) = JUnitXml.fromfile(str(files["xml"]))
    assert (suite.tests, suite.failures, suite.skipped, suite.errors) == (2, 1, 0, 0)
    (failed,) = [case for case in suite if case.result and isinstance(case.result[0], Failure)]
    assert (failed.name, failed.classname) == ("voice fp32, SME2 off, one thread", "pi")
    assert failed.result[0].message.startswith("slower 30.0 % (")
    assert "1 slower" in files["svg"].read_text()


def test_commits_of_nights_and_of_files_that_nights_measured_are_stated(compared: Compared, warehouse: Path) -> None:
    _, rows = compared(*OTHERS, "--model", "voice")
    commits = ("0" * 40, "1" * 40 + "-dirty")
    assert [(row["commit_a"], row["commit_b"]) for row in rows] == [commits]
    with open_read_only(warehouse) as connection:
        assert read_file_commits(Reader(connection), [*OTHERS, "unknown"]) == dict(zip(OTHERS, commits, strict=True))


def test_the_markdown_has_at_most_60_lines_whatever_was_compared() -> None:
    # given more of everything than is shown, and all twelve facts that an explanation may have
    of_series: dict[str, Any] = {"device": "host", "precision": "fp32", "variant": "sme2_off", "threads": 1}
    changed, same, only = (
        [SeriesChange(model=f"m{number}", word=word, **of_series) for number in range(25)]
        for word in ("slower", "same", "only in A")
    )
    sentences = [f"sentence {number}" for number in range(9)]
    said: dict[str, Any] = {"remarks": sentences, "other_figures": sentences, "uncompared": only}
    said["headline"] = comparison_headline(changed + same, 0.01)
    said["explained"] = [Fact(f"Fact {number}", ["One."]) for number in range(12)]
    out = markdown(Comparison(a="a", b="b", changes=changed + same, **said))
    assert out.startswith("**25 of 50 series slower: worst ")
    assert len(out.splitlines()) <= 60
    assert "15 more: `--output x.json` has all" in out
    assert all(f"- Fact {number}: One." in out for number in range(12))


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ([*NIGHTS, "--fail-on", "regression"], 1, "regression: 1 of 3 slower in B by more than the margin"),
        ([*NIGHTS, "--fail-on", "regression", "--margin", "25"], 0, ""),
        ([*reversed(NIGHTS), "--fail-on", "regression"], 0, ""),
        ([*NIGHTS, "--fail-on", "unknown", "--model", "toy", "--margin", "6"], 0, ""),
        ([*NIGHTS, "--fail-on", "regression", "--fail-on", "unknown"], 1, "; unknown: 4 of 5 unknown or without a cou"),
        ([*OTHERS, "--model", "wrong", "--fail-on", "inaccurate"], 1, "inaccurate: 1 of 1 with inaccurate outputs"),
        ([*OTHERS, "--model", "wrong", "--fail-on", "different"], 3, "INCOMPLETE: no result that"),
        ([*NIGHTS, "--model", "tyo"], 2, "--model: neither A nor B has a cell with model `tyo`; did you mean `toy`?"),
        ([*NIGHTS, "--output", "x.html"], 2, "x.html: unknown output format; end its name in .md, .json, .xml, .svg"),
        (["2026-11-01", "2026-11-09"], 2, "nearest: 2026-11-0"),
        (["smoke-2026-11-01", "2026-11-01"], 2, "A and B share 18 sessions; compare two without a common session"),
        (["x'; DROP TABLE cell; --", "host"], 2, "is not a night, sweep"),
    ],
)
def test_fail_on_and_mistakes_decide_the_exit_code(
    compare: Command, words: list[str], code: int, sentence: str
) -> None:
    ended = compare(*words)
    assert (ended.code, ended.err.count("\n"), bool(ended.out)) == (code, int(code > 0), code != 2)
    assert sentence in ended.err


def test_sme2_is_compared_inside_the_newest_sweep(compared: Compared) -> None:
    _, (row,) = compared("sme2_off", "sme2_on")
    assert (row["variant"], row["ratio"]) == ("sme2_off -> sme2_on", 0.5)
    assert row["sweep_a"] == row["sweep_b"] == f"smoke-{NEWEST}"


@pytest.mark.parametrize("kind", ["emulated", "simulated"])
def test_emulated_and_simulated_devices_are_labelled_and_have_no_times(compared: Compared, kind: str) -> None:
    fails = [word for kind in ("regression", "different", "unknown") for word in ("--fail-on", kind)]
    ended, (row,) = compared(*OTHERS, "--device", kind, *fails, code=3)
    assert (f"{kind} ({kind})" in ended.out, f"{kind}: no times" in ended.out) == (True, True), ended
    assert ended.out.startswith(f"No series slower of 1; {kind}, without times: 1; sessions: 5 of A, 5 of B;")
    assert [row[name] for name in ("time_a_ms", "time_b_ms", "ratio", "low", "high", "answer")] == [None] * 6
    assert (row["sessions_a"], row["emulated"]) == (5, True)


@pytest.mark.parametrize("option", [("--margin", "2"), ("--priority", "5"), ("--sweep", "nightly-2026-11-01")])
def test_an_option_that_means_nothing_with_executorch_is_refused(compare: Command, option: tuple[str, str]) -> None:
    ended = compare("--executorch", "1.5.0", "own", "--model", "toy_cnn", *option)
    assert (ended.code, ended.err.partition(" out ")[0]) == (2, f"etfarm: leave {option[0]}")
