"""A model that could not be exported is `failed` with its reason wherever a night is shown, not "too little data"."""

import json
from pathlib import Path
from typing import Any

import pytest

from sql.warehouse import open_read_only
from tasks.pages.sections.sessions import failures
from tasks.pages.site.site import Site
from tasks.results.reader import Reader, open_answers
from tests.fixtures.command import Command
from tests.fixtures.documented import assert_documented
from tests.fixtures.nights import WHY, failed_night_of, fields_of, night_of
from tests.fixtures.pages import Pages
from tests.fixtures.warehouse import BundleMaker
from tests.tasks.pages.conftest import Part

REASON = f"2 of 2 sessions failed (export_failed): {WHY}"
HEADLINE = "2 of 3 series failed; cannot be judged, too little data: 1."


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> BundleMaker:
    """The first night of a farm: a model failed in fp32, with and without SME2, and was measured in fp16."""
    maker = BundleMaker(tmp_path_factory.mktemp("farm"))
    for variant in ("sme2_on", "sme2_off"):
        failed_night_of(maker, 1, 2, variant=variant)
    night_of(maker, 1, sessions=2, model__precision="fp16")
    maker.load()
    return maker


def test_every_format_of_the_verdicts_names_the_failure(command: Command, maker: BundleMaker, tmp_path: Path) -> None:
    files = {form: tmp_path / f"night.{form}" for form in ("md", "json", "xml", "svg")}
    outputs = [word for file in files.values() for word in ("--output", file)]
    ended = command("verdicts", "--warehouse", maker.warehouse, "--fail-on", "suspected", *outputs)
    texts = {form: file.read_text(encoding="utf-8") for form, file in files.items()}
    # then each has the count or the reason, and --fail-on does not take it for a success
    assert (ended.code, HEADLINE in ended.lines) == (3, True)
    (incident,) = [line for line in ended.lines if line.startswith("toy failed since 2026-11-01 ")]
    assert REASON in incident
    assert command("verdicts", "--warehouse", maker.warehouse).code == 0
    document = json.loads(texts["json"])
    assert_documented("verdicts", document)
    (incident_data,) = document["incidents"]
    assert (incident_data["kind"], incident_data["state"], incident_data["series"]) == ("failure", "confirmed", 2)
    answers = [
        tuple(row[name] for name in ("precision", "verdict", "reason", "incident")) for row in document["verdicts"]
    ]
    assert answers[:2] == [("fp32", "failed", REASON, incident_data["incident"])] * 2
    assert (texts["xml"].count('type="export_failed"'), WHY in texts["xml"], "2 failed" in texts["svg"]) == (
        2,
        True,
        True,
    )
    first, *rest = texts["md"].splitlines()
    assert first.startswith("**INCOMPLETE: failed: toy fp32 on host: 2 of 2 sessions failed (")
    assert HEADLINE in rest
    assert sum(line.startswith("| toy fp32") and line.endswith(f"{WHY} |") for line in rest) == 2


def test_a_model_that_crashes_with_sme2_alone_is_one_sentence_in_every_place(command: Command, tmp_path: Path) -> None:
    # given a night in which a model crashed with SME2 at two thread counts, and ran without
    maker = BundleMaker(tmp_path / "farm")
    crash: dict[str, Any] = {"status": "failed", "reason_code": "model_crashed", "reason": "by SIGSEGV", "signal": 11}
    for threads in (1, 2):
        for number in range(2):
            maker.session(**fields_of(1) | crash, repetition=number, variant="sme2_on", threads=threads)
        night_of(maker, 1, sessions=2, threads=threads)
    maker.load()
    contrast = "crashes with SME2 on (SIGSEGV), runs with SME2 off (two sessions)"
    # then the incident, the page of the night and the report have the sentence once, and JSON the kind and the signal
    ended = command("verdicts", "--warehouse", maker.warehouse)
    assert sum(contrast in line for line in ended.lines if "incident" in line) == 1
    document = json.loads(command("verdicts", "--warehouse", maker.warehouse, "--format", "json").out)
    kinds = [(row["verdict"], row["failure_kind"], row["failure_signal"]) for row in document["verdicts"]]
    assert kinds == [("failed", "model_crashed", 11)] * 2 + [("insufficient data", None, None)] * 2
    with open_read_only(maker.warehouse) as connection:
        night = Pages(Site(Reader(connection), "x")).read("nights/2026-11-01.html")
    assert night.words["failed"].count(f"toy fp32 on host: {contrast}") == 1
    with open_answers(maker.warehouse, None) as answers:
        assert Part.of(failures(answers)).words.count(f"toy fp32 on host: {contrast}") == 1


def test_the_signal_of_a_series_is_that_of_its_most_frequent_kind(command: Command, tmp_path: Path) -> None:
    # given one session that crashed, and two that failed without a signal
    maker = BundleMaker(tmp_path / "farm")
    for number, (kind, signal) in enumerate([("model_crashed", 11), ("runner_failed", None), ("runner_failed", None)]):
        ended = {"status": "failed", "reason_code": kind, "reason": "why", "signal": signal}
        maker.session(**fields_of(1) | ended, repetition=number)
    maker.load()
    (row,) = json.loads(command("verdicts", "--warehouse", maker.warehouse, "--format", "json").out)["verdicts"]
    assert (row["verdict"], row["failure_kind"], row["failure_signal"]) == ("failed", "runner_failed", None)


def test_the_home_page_and_the_feed_name_it_with_its_reason_once(maker: BundleMaker) -> None:
    with open_read_only(maker.warehouse) as connection:
        pages = Pages(Site(Reader(connection), "x"))
        home, night, models = (pages.read(name) for name in ("index.html", "nights/2026-11-01.html", "models.html"))
        feed, model = pages.html("feed.atom"), pages.read("models/toy.html")
    assert home.answer == "One open incident. 2 of 3 series failed; cannot be judged: 1."
    assert night.answer == HEADLINE
    assert REASON in home.words["incidents"]
    assert night.words["failed"].count(f"toy fp32 on host: {REASON}.") == 1
    assert models.column("all", "Series") == ["2 failed, 1 insufficient data"]
    assert "toy failed since 2026-11-01" in feed
    assert WHY in model.words["explained"]
