"""`model check --expect sme2`: only kernels of SME2 that were executed end it with 0, and nothing unknown does."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.device import Device
from devices.ondevice.facts import Facts
from flows import kernel_check
from tests.fixtures.command import Command, Ended
from tests.fixtures.documented import assert_documented
from tests.fixtures.warehouse import counts_of

MOPA = "kai_run_matmul_clamp_f32_f32p2vlx1_f32p2vlx1biasf32_sme2_mopa"
NEON = "kai_run_matmul_clamp_f32_qai8dxp4x8_qsi8cxp4x8_16x4_neon_i8mm"
PACK = "kai_run_lhs_pack_f32p2vlx1_f32_sme"


class StandIn:
    """Takes the place of an export, a runner, the device's facts and the session, which counts `calls`."""

    def __init__(self) -> None:
        self.facts = Facts(platform="linux-aarch64", sme2=True)
        self.calls: dict[str, tuple[int, int]] = {}
        self.exported = 0

    def export(self, *_: Any, **__: Any) -> list[Any]:
        self.exported += 1
        export = SimpleNamespace(
            model="toy", precision="fp32", seed=0, pte_sha256="p", inputs_sha256="i", pte_bytes=1000,
            executions=lambda *planned: planned, delegate_calls=[],
        )  # fmt: skip
        return [export]

    def measure(self, session: Any, context: Any, store: Any) -> Any:
        assert (session.cell.mode, session.cell.variant) == ("counts", "sme2_on")
        ended = {"status": "succeeded", "reason": None, "session_id": session.session_id, "accuracy": []}
        folder = Path(store.location) / session.sweep.sweep_id / session.session_id
        folder.mkdir(parents=True)
        content = counts_of(self.calls, session.cell.executions)["kernel_counts.json"]
        (folder / "kernel_counts.json").write_bytes(content)
        return SimpleNamespace(**ended)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setattr(Device, "machine_folder", str(tmp_path / "machine"))
    made = StandIn()
    monkeypatch.setattr(kernel_check, "export_cases", made.export)
    monkeypatch.setattr(kernel_check, "read_facts", lambda _: made.facts)
    monkeypatch.setattr(kernel_check, "add_runner_facts", lambda *_: made.facts)
    runner = SimpleNamespace(runner_sha256="r", platform="linux-aarch64", backends=frozenset())
    monkeypatch.setattr(kernel_check, "build_runner", lambda *_: runner)
    monkeypatch.setattr(kernel_check, "measure", made.measure)
    return made


@pytest.fixture
def expect(stand_in: StandIn, command: Command, tmp_path: Path) -> Any:
    """Run `etfarm model check linear --expect sme2` on this machine with these options."""

    def run(*options: object) -> Ended:
        return command("model", "check", "linear", "--expect", "sme2", "--data-dir", tmp_path / "var", *options)

    return run


def test_executed_sme2_kernels_are_listed_with_their_calls_and_times(stand_in: StandIn, expect: Any) -> None:
    stand_in.calls = {MOPA: (12, 8_000_000), PACK: (4, 4_000), NEON: (0, 0)}
    ended = expect()
    assert ended.code == 0
    assert f"  {MOPA}: 3 calls per run, 2.0000 ms" in ended.lines
    assert "counting added at most 0.0001 ms to a run" in ended.lines  # 4 calls of 12.5 ns
    document = json.loads(expect("--format", "json").out)
    assert_documented("model check --expect", document)
    assert (document["executed"], document["cases"][0]["sme2_calls_per_run"]) == (True, 3.0)
    assert document["cases"][0]["compiled"] == [MOPA, PACK, NEON]


@pytest.mark.parametrize(
    ("calls", "instead"),
    [
        ({NEON: (8, 9), PACK: (8, 9), MOPA: (0, 0)}, f"but {NEON} (2 calls per run)"),
        ({PACK: (8, 9)}, "but only kernels of XNNPACK, which have no names"),
    ],
)
def test_without_an_executed_sme2_kernel_the_kernels_that_ran_are_named(
    stand_in: StandIn, expect: Any, calls: dict[str, tuple[int, int]], instead: str
) -> None:
    stand_in.calls = calls
    ended = expect()
    assert ended.code == 1
    assert ended.lines[-1].startswith("failed: toy: no SME2 kernel was executed")
    assert instead in ended.lines[-1]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (Facts(platform="linux-x86_64", sme2=False), "kernels cannot be counted on linux-x86_64"),
        (Facts(platform="macos-arm64", sme2=True), "kernels cannot be counted on macos-arm64"),
        (Facts(), "kernels cannot be counted on an unknown platform"),
        (Facts(platform="linux-aarch64", sme2=False), "the device has no SME2"),
    ],
)
def test_a_device_that_cannot_show_it_is_an_error(stand_in: StandIn, expect: Any, facts: Facts, words: str) -> None:
    stand_in.facts = facts
    ended = expect()
    assert ended.code == 2
    assert words in ended.err


def test_options_that_contradict_each_other_are_refused(stand_in: StandIn, expect: Any, command: Command) -> None:
    assert "--max-portable" in expect("--max-portable", 5).err
    assert "--expect" in command("model", "check", "linear", "--device", "phone").err
    assert stand_in.exported == 0
