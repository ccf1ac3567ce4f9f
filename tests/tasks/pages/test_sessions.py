"""The sections on sessions: those without a result, and where figures come from."""

from tasks.bundle.failure_kinds import remedy
from tasks.pages.sections.sessions import failures
from tests.fixtures.report import MS
from tests.tasks.pages.conftest import Part, Sweep, with_sessions
from tests.tasks.pages.rows import answers_of


def only_a_crash(sweep: Sweep) -> None:
    reason = "the runner was ended by signal 11 (SIGSEGV)"
    ended = {"status": "failed", "reason_code": "runner_crashed", "reason": reason, "log_tail": "loading\nlast words"}
    sweep.session(model__pte_sha256=None, **ended)


@with_sessions(only_a_crash)
def test_a_failure_has_its_reason_its_log_and_the_next_step(sweep: Sweep) -> None:
    section = sweep["failures"].words
    assert section.startswith("One session has no result: runner_crashed on host: one session failed")
    remedy_words = remedy("runner_crashed").replace("`", "")
    for sentence in ("The runner was ended by signal 11 (SIGSEGV).", "last words", f"Next: {remedy_words}"):
        assert sentence in section
    assert "No session of this sweep succeeded, so there is no latency." in sweep["latency"].words
    assert "No result for one session: host (runner_crashed)." in sweep.head


def repeated_and_discarded(sweep: Sweep) -> None:
    sweep.session(status="failed", reason_code="device_lost", reason="the cable", attempt=1)
    sweep.session([MS], attempt=2)
    discarded = {"status": "invalid", "reason_code": "first_session", "reason": "discarded"}
    sweep.session(session_id="d" * 16, repetition=-1, **discarded)


@with_sessions(repeated_and_discarded)
def test_sessions_that_need_nobody_are_counted_apart_and_not_listed(sweep: Sweep) -> None:
    section = sweep["failures"].words
    assert "Every planned session has a result." in section
    assert "One attempt failed and succeeded when repeated:" in section
    assert "One additional session was discarded automatically" in section
    assert "d" * 16 not in section
    assert "No result for" not in sweep.head


def similar(sweep: Sweep) -> None:
    for number, log in enumerate(("the same", "the same", "another")):
        ended = {"status": "failed", "reason_code": "no_stats", "reason": f"refused {number // 2}"}
        sweep.session(log_tail=log, repetition=number, **ended)


@with_sessions(similar)
def test_similar_failures_are_one_entry_with_each_log_once(sweep: Sweep) -> None:
    section = sweep["failures"]
    assert "no_stats on host: three sessions failed" in section.words
    assert len(section.column("Session")) == 3
    assert section.words.count("Last lines of the log of") == 2


def test_dropped_sessions_and_bundles_that_could_not_be_loaded_are_named() -> None:
    # given a sweep without a failed session, of which 12 bundles were refused and 8 sessions dropped
    answers = answers_of()
    answers.not_loaded = [f"{number}/model.etdump: the file is missing" for number in range(12)]
    answers.dropped = "8 dropped (`--finish-by 06:00`)"
    section = Part.of(failures(answers))
    assert section.words.startswith("12 bundles could not be loaded and are in no figure: 0/model.etdump: the file is")
    assert "\u2026 and 2 more; etfarm warehouse load lists them." in section.words
    assert "8 dropped (--finish-by 06:00); start the sweep again with --night 2026-11-20" in section.words
    assert "Every planned session" not in section.words


def hot_session(sweep: Sweep) -> None:
    before = {"taken_at": "2026-11-20T01:00:00+00:00", "temperature_c": 31.5, "battery_percent": 80, "load_1m": 0.1}
    conditions = {"before": before, "after": {**before, "temperature_c": 36}}
    sweep.session([MS], session_id="c0ffee" + "0" * 10, conditions=conditions, model__pte_sha256="p1")


@with_sessions(hot_session)
def test_every_figure_can_be_traced_to_its_sessions(sweep: Sweep) -> None:
    section = sweep["provenance"]
    devices, conditions, runners, models, sessions = section.tables
    assert devices[1][:3] == ["host", "local", "board"]
    assert [row[2] for row in conditions[1:]] == ["31.5", "36.0"]
    assert runners[1][:3] == ["r1", "source1", "linux-aarch64"]
    assert models[1][:3] == ["toy", "fp32", "p1"]
    assert (sessions[1][0], sessions[1][10]) == ("c0ffee" + "0" * 10, "31.5 \u2192 36.0")
    assert f"bundles/{sweep.answers.sweep.sweep_id}/<session>" in section.words
