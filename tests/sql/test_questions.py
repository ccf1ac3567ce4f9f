"""Named questions: given sessions, a question with its parameters, the expected rows."""

import re
from pathlib import Path
from typing import Any

import pytest

from sql import schema
from sql.question import questions
from sql.warehouse import open_read_only
from tests.fixtures.memory import MAPPED, MIB, PLAN
from tests.fixtures.nights import fields_of, night_of
from tests.fixtures.warehouse import COMPARED, CONVOLUTION, CONVOLUTION_SME2, LINEAR, MEAN, BundleMaker

MS = 1_000_000


def ask(farm: BundleMaker, name: str, columns: str, **parameters: str) -> list[tuple[Any, ...]]:
    """Return these columns of a question's rows."""
    question = questions()[name]
    assert set(parameters) <= set(question.parameters)
    with open_read_only(farm.warehouse) as connection:
        answer = connection.execute(question.text, dict.fromkeys(question.parameters) | parameters)
        names = [name for name, *_ in answer.description or []]
        rows = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    return [tuple(row[column] for column in columns.split()) for row in rows]


def gate(limit: str, bound: float, value: float | None, waited_s: float = 0, **changes: Any) -> dict[str, Any]:
    return {"limit": limit, "bound": bound, "value": value, "waited_s": waited_s, **changes}


def write_sessions(maker: BundleMaker) -> None:
    """Write the sessions of all questions; some are on a device of their own, and also on an emulated one."""
    write_nights(maker)
    write_operators(maker)
    write_devices(maker)
    write_texts(maker)
    maker.session([MS], device__name="memory", model__memory=PLAN, stats=MAPPED)


def write_nights(maker: BundleMaker) -> None:
    # a model that gets slower on its third night and again on its fourth, one that gets faster, a single night, an end
    nights: dict[str, tuple[int, ...]] = {"slower": (10, 10, 12, 15), "faster": (10, 10, 9, 8), "ended": (10, 12)}
    for model, times_ms in nights.items():
        for day, ms in enumerate(times_ms, 18):
            for emulated in (False, True):
                fields = fields_of(day) | {"model__name": model, "device__emulated": emulated}
                maker.session([ms * MS] * 3, device__name="nights", **fields)
    maker.session([10 * MS], model__name="new", device__name="nights", **fields_of(21))
    for day, ms in ((20, 1), (21, 2)):  # no model, although it gets slower
        maker.session([ms * MS] * 3, model__name="roof", device__name="nights", **fields_of(day))
    for model, times_ms in {"calm": (10, 10, 11), "noisy": (10, 15, 20)}.items():
        for ms in times_ms:
            maker.session([ms * MS] * 3, model__name=model, device__name="noise")
    maker.session([10 * MS], model__name="single", device__name="noise")
    for ms in (1, 9):
        maker.session([ms * MS] * 3, device__name="noise", device__emulated=True)


def write_operators(maker: BundleMaker) -> None:
    for emulated, model, operators in (
        (False, "toy", {LINEAR: 6 * MS, MEAN: 3 * MS}), (False, "other", {LINEAR: 1 * MS, MEAN: 8 * MS}),
        (True, "toy", {MEAN: 9 * MS}),
    ):  # fmt: skip
        fields: dict[str, Any] = {"model__name": model, "device__name": "operators", "device__emulated": emulated}
        maker.session([(10 * MS, operators)] * 3, **fields)
    for model, on_ms, emulated in (("gains", 5, False), ("same", 10, False), ("loses", 20, False), ("toy", 10, True)):
        fields = {"model__name": model, "device__name": "pairs", "device__emulated": emulated}
        maker.session([10 * MS] * 3, variant="sme2_off", **fields)
        maker.session([on_ms * MS] * 3, variant="sme2_on", **fields)
    covered: dict[str, Any] = {"variant": "sme2_on", "device__name": "coverage"}
    for emulated in (False, True):
        run = (10 * MS, {CONVOLUTION_SME2: 6 * MS, LINEAR: 2 * MS})
        maker.session([run] * 3, device__emulated=emulated, **covered)
    maker.session([(10 * MS, {CONVOLUTION: 8 * MS})] * 3, **covered | {"variant": "sme2_off"})
    # an older night of a model that has other times
    older = fields_of(19) | {"device__name": "operators", "model__name": "toy"}
    maker.session([(20 * MS, {LINEAR: 12 * MS, MEAN: 7 * MS})] * 3, **older)
    # one model, exported twice
    for pte, ms in (("p1", 10), ("p2", 20)):
        maker.session([ms * MS] * 3, model__pte_sha256=pte, device__name="differs")


def write_devices(maker: BundleMaker) -> None:
    for variant, times in ("sme2_off", {1: 4, 2: 2}), ("sme2_on", {1: 1, 2: 3}):
        for threads, ms in times.items():
            maker.session([ms * MS], device__name="threads", variant=variant, threads=threads)
    for threads in (1, 2):  # of a newer sweep, on another device
        maker.session([MS], **fields_of(21), device__name="newer threads", threads=threads)
    # two sessions of 3 s in 20 s, and a success and a failure of 9 s each, one hour apart in all
    failed: dict[str, Any] = {"status": "failed", "reason_code": "runner_crashed", "reason": "it crashed"}
    for name, start, changes in (("used", "01:00:11", {}), ("cost", "01:59:51", failed)):
        maker.session([MS], device__name=name, wall_s=3.0)
        started_at = f"2026-11-20T{start}+00:00"
        maker.session([MS], device__name=name, wall_s=3.0, started_at=started_at, **changes)
    for day, reason in ((18, "no memory"), (20, "it crashed")):
        maker.session(**failed | fields_of(day) | {"reason": reason, "device__name": "failing"})
    for device, temperature_c in (("cool", 30.0), ("hot", 50.0), ("unknown", None)):
        conditions = {"taken_at": "2026-11-20T01:00:00+00:00", "temperature_c": temperature_c}
        maker.session([MS], device__name=device, conditions__before=conditions)
    maker.session([MS], conditions__before={"temperature_c": 99.0}, device__emulated=True)
    # a phone that waited for a cool processor, once in vain, and an earlier night
    maker.session([MS], gates=[gate("max_die_c", 50, 49, 120, worst=71), gate("min_free_memory_mb", 500, 800)])
    in_vain: dict[str, Any] = {"status": "invalid", "reason_code": "thermal", "reason": "too hot"}
    maker.session([MS], gates=[gate("max_die_c", 50, 62, 600, worst=68)], **in_vain)
    maker.session([MS], gates=[gate("min_free_memory_mb", 500, 700, 8, worst=300)])
    maker.session([MS], device__name="mac", gates=[gate("max_die_c", 50, None, note="the device does not report it")])
    maker.session([MS], gates=[gate("max_load_1m", 2, 1, 900, worst=7)], **fields_of(19))


def write_texts(maker: BundleMaker) -> None:
    for emulated in (False, True):
        for case, tokens, kv_depth, ms in (("prefill16", 16, 0, 8), ("decode", 1, 16, 2)):
            phase: dict[str, Any] = {"model__tokens": tokens, "model__kv_depth": kv_depth, "device__name": "text"}
            maker.session([ms * MS] * 3, model__name=f"text@{case}", device__emulated=emulated, **phase)
    # two prompts and two depths in fp16 and at 4 bits, whose text differs from that of fp32
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
            accuracy = [
                COMPARED | {"reference": reference, "top1_agreement": share, "is_inaccurate": agreement < 1}
                for reference, share in (("eager", 0.25), ("fp32", agreement))
            ]
            named = {"model__name": f"llm@tg_d{depth}", "model__tokens": 1, "model__kv_depth": depth, **of_recipe}
            time = (4 + depth) * ms * MS
            maker.session([(time, {MEAN: time // 4})] * 3, model__steps=8, accuracy=accuracy, **named)


ITS_FIRST = "its first night: none is older"


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, [("slower", 12, 15, 1.25, "the night before"), ("ended", 10, 12, 1.2, "the night before")]),
        ({"since": "2026-11-17"}, [("slower", 10, 15, 1.5, ITS_FIRST), ("ended", 10, 12, 1.2, ITS_FIRST)]),
        ({"since": "2026-11-18"}, [("slower", 10, 15, 1.5, ITS_FIRST), ("ended", 10, 12, 1.2, ITS_FIRST)]),
        ({"since": "2026-11-20"}, [("slower", 10, 15, 1.5, "the night before")]),
        ({"since": "2026-11-21"}, [("slower", 12, 15, 1.25, "the night before")]),
        ({"model": "faster"}, []),
    ],
    ids=str,
)
def test_what_got_slower_compares_the_newest_night_since_a_date_with_the_one_before(
    farm: BundleMaker, parameters: dict[str, str], expected: list[Any]
) -> None:
    columns = "model before_ms after_ms ratio compared_with"
    assert ask(farm, "what-got-slower", columns, device="nights", **parameters) == expected


def test_what_got_slower_has_the_ratio_of_the_verdict_and_no_improvement_or_night_without_a_change(
    maker: BundleMaker,
) -> None:
    # given a model that became three times as slow and moved a little after that, one that became faster and moved a
    # little after that, and one that only moved a little
    factors = {"slower": (3.0, 3.0, 3.06), "faster": (0.5, 0.5, 0.52), "calm": (1.0, 1.0, 1.01)}
    for model, of_nights in factors.items():
        for day, factor in enumerate((*[1.0] * 7, *of_nights), 1):
            pte = "p2" if factor not in (1.0, 1.01) else "p1"
            night_of(maker, day, factor, 8 if day > 7 else 5, model__name=model, model__pte_sha256=pte)
    maker.load()
    [(verdict,)] = maker.ask("SELECT ratio FROM verdict WHERE is_newest AND model = 'slower'")
    # then the newest night is compared with the baseline, and a date is compared with the last night before it
    columns = "model verdict ratio compared_with"
    assert ask(maker, "what-got-slower", columns) == [("slower", "regression", pytest.approx(verdict), "its baseline")]
    of_date = ask(maker, "what-got-slower", "model ratio", since="2026-11-10")
    assert [(model, round(ratio, 2)) for model, ratio in of_date] == [
        ("faster", 1.04),
        ("slower", 1.02),
        ("calm", 1.01),
    ]


# question, its parameters, columns; and rows
ANSWERS: list[tuple[str, dict[str, str], str, list[Any]]] = [
    ("noisiest-series", {"device": "noise"}, "model sessions median_ms relative_range",
        [("noisy", 3, 15, 10 / 15), ("calm", 3, 10, 0.1)]),
    ("threads", {"device": "threads"}, "variant threads time_ms recommended_threads",
        [("sme2_off", 1, 4, 2), ("sme2_off", 2, 2, 2), ("sme2_on", 1, 1, 1), ("sme2_on", 2, 3, 1)]),
    ("threads", {"device": "threads", "sweep": "another"}, "threads", []),
    ("what-to-delegate-first", {"device": "operators"}, "model operator share",
        [("other", "mean", 0.8), ("toy", "mean", 0.3)]),
    ("what-to-delegate-first", {"model": "toy", "device": "operators"}, "model operator share", [("toy", "mean", 0.3)]),
    ("slowest-operators", {"device": "operators"}, "model operator kind time_ms",
        [("other", "mean", "portable", 8), ("toy", "Fully Connected", "delegated", 6), ("toy", "mean", "portable", 3),
         ("other", "Fully Connected", "delegated", 1)]),
    ("slowest-operators", {"device": "operators", "sweep": "nightly-2026-11-19"}, "operator time_ms",
        [("Fully Connected", 12), ("mean", 7)]),
    ("portable-weight", {"device": "operators"}, "model portable_ms share", [("other", 8, 0.8), ("toy", 3, 0.3)]),
    ("memory-by-owner", {"device": "memory"}, "moment owner bytes file_bytes total_bytes",
        [(moment, owner, size * MIB, of_files * MIB, total * MIB)
         for moment, total, temporary in (("first run", 96, []), ("peak", 100, [("temporary", 4, 0)]))
         for owner, size, of_files in (
             ("program file", 28, 28), ("packed weights", 28, 0), ("start-up and libraries", 25, 22),
             ("planned arenas", 9, 0), ("first run", 6, 0), *temporary)]),
    ("where-sme2-brings-nothing", {"device": "pairs"}, "model speedup", [("loses", 0.5), ("same", 1)]),
    # an emulated device has calls, and no times
    ("sme2-coverage", {"device": "coverage"}, "emulated sme_call_share sme_time_share sme2_time_share evidence",
        [(True, 0.5, None, None, "not proven"), (False, 0.5, 0.75, None, "not proven")]),
    ("device-utilization", {"device": "used"}, "sessions runner_s span_s utilization", [(2, 6, 20, 0.3)]),
    ("sweep-cost", {"device": "cost", "night": "2026-11-20"},
        "sessions succeeded device_hours lost_s s_per_success", [(2, 1, 1, 9, 3600)]),
    ("sweep-cost", {"night": "2026-11-22"}, "device", []),
    ("newest-failures", {"device": "failing"}, "sweep_id reason",
        [("nightly-2026-11-20", "it crashed"), ("nightly-2026-11-18", "no memory")]),
    ("newest-failures", {"device": "failing", "since": "2026-11-19"}, "reason", [("it crashed",)]),
    ("hottest-devices", {}, "device max_temperature_c", [("hot", 50), ("cool", 30), ("unknown", None)]),
    ("longest-waits", {},
        "device limit_name waited_s longest_s worst bound sessions waited_sessions outside_sessions unread_sessions",
        [("host", "max_die_c", 720, 600, 71, 50, 2, 2, 1, 0),
         ("host", "min_free_memory_mb", 8, 8, 300, 500, 2, 1, 0, 0),
         ("mac", "max_die_c", 0, 0, None, 50, 1, 0, 0, 1), ("host", "max_load_1m", 900, 900, 7, 2, 1, 1, 0, 0)]),
    ("longest-waits", {"device": "mac", "since": "2026-11-20"}, "note", [("the device does not report it",)]),
    ("generation-speed", {"model": "text"}, "device model test ms tokens_per_s",
        [("text", "text", "pp16", 8, 2000), ("text", "text", "tg1 @ d16", 2, 500)]),
    ("generation-speed", {"model": "toy"}, "model", []),
    # each recipe has its longest prompt, its greatest depth, its least agreement with fp32, the worst accuracy of its
    # cases, and the share of portable operators at that depth; the largest comes first
    ("generation-recipes", {"model": "llm"},
        "precision pte_mb pp pp_tokens_per_s tg tg_tokens_per_s perplexity tokens_equal accuracy tg_portable_share",
        [("fp16", 9, "pp32", 800, "tg8 @ d32", pytest.approx(1000 / 72), 18, 1, "not compared", 0.25),
         ("int4_dynamic", 4, "pp32", 1600, "tg8 @ d32", pytest.approx(1000 / 36), 19, 0.5, "inaccurate", 0.25)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters", "columns", "expected"), ANSWERS)
def test_a_question_is_answered(
    farm: BundleMaker, name: str, parameters: dict[str, str], columns: str, expected: list[Any]
) -> None:
    assert ask(farm, name, columns, **parameters) == expected


def test_what_differs_lists_the_fields_in_which_two_cells_differ(farm: BundleMaker) -> None:
    # given two cells of one model, exported twice
    cells = dict(farm.ask("SELECT pte_sha256, cell FROM session_overview WHERE device = 'differs'"))
    # when they are compared
    answer = ask(farm, "what-differs", "field of_cell of_other", cell=cells["p1"], other=cells["p2"])
    # then the file and the time are listed, and nothing that is equal
    fields = {field: (one, other) for field, one, other in answer}
    assert fields["pte_sha256"] == ("p1", "p2")
    assert fields["time_ms"] == ("10.0", "20.0")
    assert not {"cell", "device", "model", "sweep_id", "sessions"} & set(fields)


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
            # the view verdict is about devices with times only
            assert re.search(r"_has_times\(emulated\)|FROM verdict\b", question.text), question.name


def test_a_sweep_that_states_an_option_hides_no_answer_about_the_default(tmp_path: Path) -> None:
    # given a night with the default, and a later sweep with another way to load alone
    maker = BundleMaker(tmp_path)
    for day, model in ((20, "toy@tg64"), (21, "toy@load=mmap,tg64")):
        maker.session([(10 * MS, {LINEAR: 5 * MS})] * 3, model__name=model, **fields_of(day))
    maker.load()
    asked = ask(maker, "slowest-operators", "model", model="toy")
    assert sorted(set(asked)) == [("toy@load=mmap,tg64",), ("toy@tg64",)]
