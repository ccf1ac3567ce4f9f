"""Whether an upgrade is safe: each thing that can get worse is named with its numbers, and nothing unknown is safe."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devices.errors import InputError
from tasks.pages.upgrade import WRITERS
from tasks.results.reader import Reader, open_reader
from tasks.results.upgrade import Upgrade, read_upgrade
from tests.fixtures.documented import assert_documented
from tests.fixtures.warehouse import INACCURATE, BundleMaker

MS = 1_000_000
B = "@export=1.5.1,runner=1.5.1"
PORTABLE = "delegate=portable"
SWEEP_ID = "smoke-2026-11-20"
FAILED: dict[str, Any] = {"status": "failed", "model__pte_sha256": None}
# What B has of each model; A takes 10 ms, loads in 5 ms and needs 100 MB. Time differs below and above 1 %, load time
# around 20 %, peak memory around 5 %, the size of the file around 1 %.
OF_B: dict[str, dict[str, Any]] = {
    "same": {},
    "time": {"ms": 10.3},
    "faster": {"ms": 8},
    # the same program on the same runner: the device changed
    "unchanged": {"ms": 10.3, "model__pte_sha256": "p1"},
    "load below": {"load_ns": 5.9 * MS},
    "load": {"load_ns": 6.1 * MS},
    "memory below": {"model_peak_memory_bytes": 104 * MS},
    "memory": {"model_peak_memory_bytes": 106 * MS},
    "size below": {"model__pte_bytes": 1_009_000},
    "size": {"model__pte_bytes": 1_011_000},
    "outputs": {"accuracy": INACCURATE},
    "export": {**FAILED, "reason_code": "export_failed", "reason": "no such operator"},
    "crash": {**FAILED, "reason_code": "model_crashed", "reason": "SIGSEGV"},
    "emulated": {"device__emulated": True},
}
NO_EXPORT = "does not export any more (export_failed): no such operator"
WORSE = {
    "time": "slower 3.0",
    f"same@{PORTABLE}": "slower 3.0",
    "load": "load time 5.004 ms -> 6.105 ms (+22.00 %, +21.",
    "memory": "peak memory 100.1 MB -> 106.1 MB (+6.00 %, +5.",
    "size": ".pte size 1 MB -> 1.011 MB (+1.1 %)",
    "outputs": "its outputs are inaccurate",
    "export": NO_EXPORT,
    "llm@tg64": NO_EXPORT,
    "llm@pp8": NO_EXPORT,
    "crash": "does not run any more (model_crashed): SIGSEGV",
}


def write(maker: BundleMaker, model: str, number: int, ms: float = 10, **changes: Any) -> None:
    """Write a session whose figures scatter by a few parts in a thousand."""
    scatter = 1 + 0.0005 * (number % 5)
    stats = {"load_ns": 5 * MS, "model_peak_memory_bytes": 100 * MS}
    stats = {name: round(changes.pop(name, value) * scatter) for name, value in stats.items()}
    runs = [] if changes.get("status") == "failed" else [round(ms * scatter * MS)] * 3
    fields = {"model__pte_bytes": 1_000_000, "sweep__on_demand": True, "repetition": number, "stats": stats}
    maker.session(runs, model__name=model, **{**fields, **changes})


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    maker = BundleMaker(tmp_path_factory.mktemp("upgrade"))
    for number in range(8):
        for model, changes in OF_B.items():
            device = {name: value for name, value in changes.items() if name.startswith("device")}
            write(maker, model, number, **device)
            write(maker, f"{model}{B}", number, **{"model__pte_sha256": "p2", **changes})
        # another delegate of a model is compared with itself
        write(maker, f"same@{PORTABLE}", number, 20)
        write(maker, f"same@{PORTABLE},{B[1:]}", number, 20.6, model__pte_sha256="p2")
        write(maker, "only A", number)
        # an upgrade does not cause what the device or its load did
        for model, code, is_failed in (("loaded", "load", number == 0), ("lost", "device_lost", True)):
            write(maker, model, number)
            failed: dict[str, Any] = {"status": "failed", "reason_code": code, "reason": f"a {code}"}
            write(maker, f"{model}{B}", number, **(failed if is_failed else {}))
        # a language model whose export fails has no cases
        for case in ("tg64", "pp8"):
            write(maker, f"llm@{case}", number)
        write(maker, f"llm{B}", number, **OF_B["export"])
        # a model that never exported is not made worse by the upgrade
        for model in ("broken", f"broken{B}"):
            write(maker, model, number, **OF_B["export"])
    assert maker.load().refused == []
    with open_reader(maker.warehouse) as opened:
        yield opened


@pytest.fixture(scope="module")
def upgrade(reader: Reader) -> Upgrade:
    return read_upgrade(reader, SWEEP_ID, "default", "export=1.5.1,runner=1.5.1")


def test_what_gets_worse_is_named_with_both_figures_and_nothing_below_its_limit_is(upgrade: Upgrade) -> None:
    worse = {row.model: row.worse for row in upgrade.rows if row.worse}
    assert worse.keys() == WORSE.keys()
    for model, phrase in WORSE.items():
        assert [phrase in each for each in worse[model]] == [True], worse[model]
    assert upgrade.answer == "not safe"
    assert f"worse in {len(WORSE)} of {len(upgrade.rows)} cells" in upgrade.headline


def test_what_could_not_be_answered_is_not_safe(upgrade: Upgrade) -> None:
    unknown = {row.model: row.unknown for row in upgrade.rows if row.unknown}
    assert unknown.keys() == {"emulated", "only A", "broken", "lost"}
    assert unknown["lost"] == ["did not run with B: a device_lost"]
    assert "no such operator" in unknown["broken"][0]
    assert "emulated: no times" in unknown["emulated"][0]


def test_every_surface_states_the_same(upgrade: Upgrade) -> None:
    document = json.loads(WRITERS[".json"](upgrade))
    assert_documented("upgrade check", document)
    assert document["answer"] == "not safe"
    for suffix in (".html", ".md"):
        text = WRITERS[suffix](upgrade)
        assert all(part in text for part in (upgrade.headline, "SIGSEGV", "memory below"))


def test_an_upgrade_of_equal_versions_is_safe(tmp_path: Path) -> None:
    maker = BundleMaker(tmp_path)
    for number in range(8):
        for model in ("same", f"same{B}"):
            write(maker, model, number)
    maker.load()
    with open_reader(maker.warehouse) as opened:
        upgrade = read_upgrade(opened, SWEEP_ID, "default", "export=1.5.1,runner=1.5.1")
        assert (upgrade.answer, upgrade.findings) == ("safe", [])
        # and a version that was not measured is no answer
        with pytest.raises(InputError, match=r"no session with export=1\.4\.1; it measured default, export=1\.5\.1"):
            read_upgrade(opened, SWEEP_ID, "default", "export=1.4.1")


def test_a_device_without_a_session_is_not_safe(tmp_path: Path) -> None:
    maker = BundleMaker(tmp_path)
    for number in range(8):
        for model in ("same", f"same{B}"):
            write(maker, model, number, device__name="phone")
    maker.load()
    with open_reader(maker.warehouse) as opened:
        upgrade = read_upgrade(opened, SWEEP_ID, "default", "export=1.5.1,runner=1.5.1", ["phone", "board"])
    assert (upgrade.answer, upgrade.findings) == ("inconclusive", ["board: not measured"])
    assert "board" in upgrade.headline
    assert json.loads(WRITERS[".json"](upgrade))["not_measured"] == ["board"]


@pytest.mark.parametrize(
    ("later", "answer"),
    [({"model__pte_sha256": "b" * 64}, "safe"), (OF_B["export"], "not safe")],
    ids=["pte", "export"],
)
def test_after_a_change_of_the_model_only_its_newest_sessions_count(
    tmp_path: Path, later: dict[str, Any], answer: str
) -> None:
    # given a day on which B was slow to load, and the model was changed then
    maker = BundleMaker(tmp_path)
    for number in range(8):
        write(maker, "m", number)
        write(maker, f"m{B}", number, load_ns=9 * MS)
    for number in range(8):
        write(maker, "m", number, started_at="2026-11-20T05:00:00+00:00", model__pte_sha256="b" * 64)
        write(maker, f"m{B}", number, started_at="2026-11-20T05:00:00+00:00", **later)
    assert maker.load().refused == []
    with open_reader(maker.warehouse) as opened:
        upgrade = read_upgrade(opened, SWEEP_ID, "default", "export=1.5.1,runner=1.5.1")
    assert upgrade.answer == answer
    assert "9." not in upgrade.rows[0].load
