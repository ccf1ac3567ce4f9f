"""Named questions: given sessions, a question with its parameters, the expected rows."""

import re
from typing import Any

import pytest

from sql import schema
from sql.question import questions
from sql.warehouse import open_read_only
from tests.fixtures.nights import fields_of
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, LINEAR, MEAN, BundleMaker

MS = 1_000_000


def ask(maker: BundleMaker, name: str, columns: str, **parameters: str) -> list[tuple[Any, ...]]:
    """Load all bundles and return these columns of a question's rows."""
    maker.load()
    question = questions()[name]
    assert set(parameters) <= set(question.parameters)
    with open_read_only(maker.warehouse) as connection:
        answer = connection.execute(question.text, dict.fromkeys(question.parameters) | parameters)
        names = [name for name, *_ in answer.description or []]
        rows = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    return [tuple(row[column] for column in columns.split()) for row in rows]


EMULATED: dict[str, Any] = {"device__name": "qemu", "device__emulated": True}


def test_what_got_slower_compares_the_newest_night_since_a_date_with_the_one_before(maker: BundleMaker) -> None:
    # given three nights of one model that gets slower twice, and one that gets faster
    for day, slow_ms, fast_ms in ((18, 10, 10), (19, 12, 9), (20, 18, 8)):
        maker.session([slow_ms * MS] * 3, **fields_of(day))
        maker.session([fast_ms * MS] * 3, model__name="fast", **fields_of(day))
        maker.session([slow_ms * MS] * 3, **fields_of(day), **EMULATED)
    columns = "model before_ms after_ms ratio"
    # then only the slower one is listed, against the last night before the date; emulated devices never
    assert ask(maker, "what-got-slower", columns) == [("toy", 12.0, 18.0, 1.5)]
    assert ask(maker, "what-got-slower", columns, since="2026-11-19") == [("toy", 10.0, 18.0, 1.8)]
    assert ask(maker, "what-got-slower", columns, model="fast") == []


@pytest.mark.parametrize(
    ("since", "ms_before", "ratio", "compared_with"),
    [
        pytest.param("2026-11-17", 10.0, 1.5, "its first night: none is older", id="before the first night"),
        pytest.param("2026-11-18", 10.0, 1.5, "its first night: none is older", id="the first night"),
        pytest.param("2026-11-19", 10.0, 1.5, "the night before", id="the second night"),
        pytest.param("2026-11-20", 10.0, 1.5, "the night before", id="the night of the regression"),
        pytest.param("2026-11-21", 12.0, 1.25, "the night before", id="the newest night"),
    ],
)
def test_what_got_slower_is_answered_for_every_night_that_since_names(
    maker: BundleMaker, since: str, ms_before: float, ratio: float, compared_with: str
) -> None:
    # given a model that gets slower on its third night and again on its fourth, and one with a single night
    for day, ms in ((18, 10), (19, 10), (20, 12), (21, 15)):
        maker.session([ms * MS] * 3, **fields_of(day))
    maker.session([10 * MS] * 3, model__name="new", **fields_of(21))
    # then it is listed, and without an earlier night it is compared with its first one
    columns = "model before_ms after_ms ratio compared_with"
    answer = ask(maker, "what-got-slower", columns, since=since)
    assert answer == [("toy", ms_before, 15.0, ratio, compared_with)]


def test_what_got_slower_leaves_out_series_that_ended_before_the_date(maker: BundleMaker) -> None:
    for day, ms in ((18, 10), (19, 12)):
        maker.session([ms * MS] * 3, **fields_of(day))
    assert ask(maker, "what-got-slower", "model", since="2026-11-20") == []


def test_what_to_delegate_first_ranks_portable_operators_by_their_share(maker: BundleMaker) -> None:
    maker.session([(10 * MS, {LINEAR: 6 * MS, MEAN: 3 * MS})] * 3)
    maker.session([(10 * MS, {LINEAR: 2 * MS, MEAN: 8 * MS})] * 3, model__name="other")
    maker.session([(10 * MS, {MEAN: 9 * MS})] * 3, **EMULATED)
    columns = "model operator share"
    assert ask(maker, "what-to-delegate-first", columns) == [("other", "mean", 0.8), ("toy", "mean", 0.3)]
    assert ask(maker, "what-to-delegate-first", columns, model="toy") == [("toy", "mean", 0.3)]


def test_sme2_brings_nothing_where_it_gains_less_than_2_percent(maker: BundleMaker) -> None:
    for model, on_ms, device in (("gains", 5, {}), ("same", 10, {}), ("loses", 20, {}), ("toy", 10, EMULATED)):
        maker.session([10 * MS] * 3, variant="sme2_off", model__name=model, **device)
        maker.session([on_ms * MS] * 3, variant="sme2_on", model__name=model, **device)
    assert ask(maker, "where-sme2-brings-nothing", "model speedup") == [("loses", 0.5), ("same", 1.0)]


def test_the_noisiest_series_come_first_relative_to_their_median(maker: BundleMaker) -> None:
    for model, medians_ms in (("calm", (10, 10, 11)), ("noisy", (10, 15, 20)), ("single", (10,))):
        for median_ms in medians_ms:
            maker.session([median_ms * MS] * 3, model__name=model)
    for median_ms in (1, 9):
        maker.session([median_ms * MS] * 3, **EMULATED)
    assert ask(maker, "noisiest-series", "model sessions median_ms relative_range") == [
        ("noisy", 3, 15.0, 10 / 15),
        ("calm", 3, 10.0, 0.1),
    ]


def test_utilization_is_the_part_of_a_devices_time_in_which_a_runner_ran(maker: BundleMaker) -> None:
    # given two sessions of 3 s in 20 s on one device, one of 9 s in 9 s on another
    times: dict[str, Any] = {"started_at": "2026-11-20T01:00:11+00:00", "ended_at": "2026-11-20T01:00:20+00:00"}
    maker.session([MS], wall_s=3.0)
    maker.session([MS], wall_s=3.0, **times)
    maker.session([MS], wall_s=9.0, device__name="phone")
    columns = "device sessions runner_s span_s utilization"
    assert ask(maker, "device-utilization", columns) == [("host", 2, 6.0, 20.0, 0.3), ("phone", 1, 9.0, 9.0, 1.0)]
    assert ask(maker, "device-utilization", "device", device="phone") == [("phone",)]


def test_the_cost_of_a_sweep_is_given_by_device(maker: BundleMaker) -> None:
    # given a success and a failure of 9 s each, one hour apart in all
    maker.session([MS])
    later: dict[str, Any] = {"started_at": "2026-11-20T01:59:51+00:00", "ended_at": "2026-11-20T02:00:00+00:00"}
    maker.session(status="failed", reason_code="crashed", reason="it crashed", **later)
    columns = "device sessions succeeded device_hours lost_s s_per_success"
    assert ask(maker, "sweep-cost", columns, night="2026-11-20") == [("host", 2, 1, 1.0, 9.0, 3600.0)]
    assert ask(maker, "sweep-cost", columns, night="2026-11-21") == []


def test_what_differs_lists_the_fields_in_which_two_cells_differ(maker: BundleMaker) -> None:
    # given two cells of one model, exported twice
    maker.session([10 * MS] * 3)
    maker.session([20 * MS] * 3, model__pte_sha256="p2")
    maker.load()
    cells = dict(maker.ask("SELECT pte_sha256, cell FROM session_overview"))
    # when they are compared
    answer = ask(maker, "what-differs", "field of_cell of_other", cell=cells["p1"], other=cells["p2"])
    # then the file and the time are listed, and nothing that is equal
    fields = {field: (one, other) for field, one, other in answer}
    assert fields["pte_sha256"] == ("p1", "p2")
    assert fields["time_ms"] == ("10.0", "20.0")
    assert not {"cell", "device", "model", "sweep_id", "sessions"} & set(fields)


def test_the_slowest_operators_come_first(maker: BundleMaker) -> None:
    maker.session([(10 * MS, {LINEAR: 6 * MS, MEAN: 3 * MS})] * 3)
    maker.session([(99 * MS, {LINEAR: 98 * MS})] * 3, model__name="other")
    maker.session([(999 * MS, {LINEAR: 998 * MS})] * 3, **EMULATED)
    assert ask(maker, "slowest-operators", "operator kind time_ms", model="toy") == [
        ("Fully Connected", "delegated", 6.0),
        ("mean", "portable", 3.0),
    ]
    assert ask(maker, "slowest-operators", "model device")[0] == ("other", "host")


def test_the_newest_failures_come_first_with_their_reasons(maker: BundleMaker) -> None:
    for day, reason in ((18, "no memory"), (20, "it crashed")):
        maker.session(status="failed", reason_code="failed", reason=reason, **fields_of(day))
    columns = "sweep_id reason"
    newest, oldest = ("nightly-2026-11-20", "it crashed"), ("nightly-2026-11-18", "no memory")
    assert ask(maker, "newest-failures", columns) == [newest, oldest]
    assert ask(maker, "newest-failures", columns, since="2026-11-19") == [newest]


def test_the_hottest_devices_come_first(maker: BundleMaker) -> None:
    for device, temperature_c in (("cool", 30.0), ("hot", 50.0), ("unknown", None)):
        conditions = {"taken_at": "2026-11-20T01:00:00+00:00", "temperature_c": temperature_c}
        maker.session([MS], device__name=device, conditions__before=conditions)
    maker.session([MS], conditions__before={"temperature_c": 99.0}, **EMULATED)
    hottest = [("hot", 50.0), ("cool", 30.0), ("unknown", None)]
    assert ask(maker, "hottest-devices", "device max_temperature_c") == hottest


def gate(limit: str, bound: float, value: float | None, waited_s: float = 0, **changes: Any) -> dict[str, Any]:
    return {"limit": limit, "bound": bound, "value": value, "waited_s": waited_s, **changes}


def test_the_longest_waits_of_the_newest_night_come_first(maker: BundleMaker) -> None:
    # given a phone that waited for a cool processor, once in vain, and an earlier night
    maker.session([MS], gates=[gate("max_die_c", 50, 49, 120, worst=71), gate("min_free_memory_mb", 500, 800)])
    maker.session(
        status="invalid", reason_code="thermal", reason="too hot", gates=[gate("max_die_c", 50, 62, 600, worst=68)]
    )
    maker.session([MS], gates=[gate("min_free_memory_mb", 500, 700, 8, worst=300)])
    maker.session([MS], device__name="mac", gates=[gate("max_die_c", 50, None, note="the device does not report it")])
    maker.session([MS], gates=[gate("max_load_1m", 2, 1, 900, worst=7)], **fields_of(19))
    # then each device's limits are listed with what they cost
    columns = "device limit_name waited_s longest_s worst bound sessions waited_sessions outside_sessions"
    newest = [
        ("host", "max_die_c", 720.0, 600.0, 71.0, 50.0, 2, 2, 1),
        ("host", "min_free_memory_mb", 8.0, 8.0, 300.0, 500.0, 2, 1, 0),
        ("mac", "max_die_c", 0.0, 0.0, None, 50.0, 1, 0, 0),
    ]
    assert ask(maker, "longest-waits", columns, since="2026-11-20") == newest
    assert ask(maker, "longest-waits", columns)[3] == ("host", "max_load_1m", 900.0, 900.0, 7.0, 2.0, 1, 1, 0)
    # and a limit that was not applied has its reason
    assert ask(maker, "longest-waits", "unread_sessions note", device="mac") == [(1, "the device does not report it")]


def test_portable_weight_is_ranked_by_model(maker: BundleMaker) -> None:
    for model, portable_ms in (("light", 1), ("heavy", 7)):
        maker.session([(10 * MS, {LINEAR: 2 * MS, MEAN: portable_ms * MS})] * 3, model__name=model)
    maker.session([(10 * MS, {MEAN: 10 * MS})] * 3, **EMULATED)
    assert ask(maker, "portable-weight", "model portable_ms share") == [("heavy", 7.0, 0.7), ("light", 1.0, 0.1)]


def test_sme2_coverage_is_given_by_model_and_emulated_devices_have_calls_only(maker: BundleMaker) -> None:
    operators = {CONVOLUTION_SME2: 6 * MS, LINEAR: 2 * MS}
    maker.session([(10 * MS, operators)] * 3, variant="sme2_on")
    maker.session([(10 * MS, {CONVOLUTION: 8 * MS})] * 3, variant="sme2_off")
    maker.session([(10 * MS, operators)] * 3, variant="sme2_on", **EMULATED)
    assert ask(maker, "sme2-coverage", "device sme_call_share sme_time_share sme2_time_share evidence") == [
        ("host", 0.5, 0.75, None, "not proven"),
        ("qemu", 0.5, None, None, "not proven"),
    ]


def test_generation_speed_is_given_by_model_and_emulated_devices_never(maker: BundleMaker) -> None:
    for device in ({}, EMULATED):
        for case, tokens, kv_depth, ms in (("prefill16", 16, 0, 8), ("decode", 1, 16, 2)):
            name = f"llm@{case}"
            maker.session([ms * MS] * 3, model__name=name, model__tokens=tokens, model__kv_depth=kv_depth, **device)
    assert ask(maker, "generation-speed", "device model test ms tokens_per_s", model="llm") == [
        ("host", "llm", "pp16", 8.0, 2000.0),
        ("host", "llm", "tg1 @ d16", 2.0, 500.0),
    ]
    assert ask(maker, "generation-speed", "model", model="toy") == []


def test_the_recipes_of_a_language_model_are_side_by_side_the_largest_first(maker: BundleMaker) -> None:
    # given two prompts and two depths in fp16 and at 4 bits, whose text differs from that of fp32
    for precision, pte_bytes, ms, agreements in (
        ("int4_dynamic", 4_000_000, 1, (0.5, 1.0)),
        ("fp16", 9_000_000, 2, (1, 1)),
    ):
        of_recipe: dict[str, Any] = {"model__precision": precision, "model__pte_bytes": pte_bytes}
        of_recipe |= {"model__pte_sha256": precision, "model__perplexity": 20.0 - ms}
        for case, tokens, scale in (("pp16", 16, 8), ("pp32", 32, 20), ("pp16_d32", 16, 9)):
            chunk: dict[str, Any] = {"model__kv_depth": 32, "model__prompt_tokens": 48} if "_d" in case else {}
            named = {"model__name": f"llm@{case}", "model__tokens": tokens, "model__kv_depth": 0, **of_recipe, **chunk}
            maker.session([scale * ms * MS] * 3, **named)
        for depth, agreement in zip((0, 32), agreements, strict=True):
            compared = {"max_abs_error": 0.0, "max_rel_error": 0.0, "nonfinite_mismatches": 0, "output": 0}
            accuracy = [
                {"reference": reference, "top1_agreement": share, "is_inaccurate": agreement < 1, **compared}
                for reference, share in (("eager", 0.25), ("fp32", agreement))
            ]
            named = {"model__name": f"llm@tg_d{depth}", "model__tokens": 1, "model__kv_depth": depth, **of_recipe}
            time = (4 + depth) * ms * MS
            maker.session([(time, {MEAN: time // 4})] * 3, model__steps=8, accuracy=accuracy, **named)
    # then each recipe has one row: its longest prompt, its greatest depth, its least agreement with fp32, the worst
    # accuracy of its cases, and the share of portable operators at that depth
    columns = (
        "precision pte_mb pp pp_tokens_per_s tg tg_tokens_per_s perplexity tokens_equal accuracy tg_portable_share"
    )
    assert ask(maker, "generation-recipes", columns, model="llm") == [
        ("fp16", 9.0, "pp32", 800.0, "tg8 @ d32", pytest.approx(1000 / 72), 18.0, 1.0, "not compared", 0.25),
        ("int4_dynamic", 4.0, "pp32", 1600.0, "tg8 @ d32", pytest.approx(1000 / 36), 19.0, 0.5, "inaccurate", 0.25),
    ]


def test_every_question_has_a_summary_and_reads_public_views_only() -> None:
    views = {file.name for file in schema.views() if not file.name.startswith("_")}
    assert len(questions()) >= 12
    for question in questions().values():
        assert question.text.startswith("-- "), question.name
        assert "?" in question.summary, question.name
        named = set(re.findall(r"(?<!DISTINCT )(?:FROM|JOIN) \(?(?:SELECT [\w, ]+ FROM )?(\w+)", question.text))
        own = set(re.findall(r"^(\w+) AS \($", question.text, re.MULTILINE))
        assert named - own <= views, question.name


def test_every_question_that_shows_times_leaves_emulated_devices_out() -> None:
    for question in questions().values():
        if re.search(r"_ms\b|temperature", question.text):
            assert "_has_times(emulated)" in question.text, question.name
