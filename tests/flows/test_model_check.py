"""A check of a model: one time with its spread, under the lease of this machine, and which operators are portable."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from devices.device import Device
from devices.errors import DeviceBusy
from devices.local import LocalDevice
from devices.ondevice.lease import acquire, current_holder
from flows import model_check
from flows.model_check import SESSIONS, check_model
from tasks.bundle.accuracy import Accuracy, SampleRecord
from tasks.bundle.memory_plan import LiveBuffer, MemoryPlan
from tasks.bundle.runner_stats import Stats
from tasks.export.accuracy_limits import recipe_limits
from tasks.measure.session.accuracy import References, compare_outputs
from tests.fixtures.command import Command, Ended
from tests.fixtures.documented import assert_documented
from tests.fixtures.jobs import in_background
from tests.fixtures.waiting import ENOUGH_S, change_policy, wait_for
from tests.fixtures.warehouse import CONVOLUTION, MEAN, etdump_of

US = 1000
OUTPUT = np.linspace(1, 2, 100, dtype="float32")
LISTED = [
    {"operator": "aten.mean.dim", "count": 2, "reason": None},
    {"operator": "<built-in function mul>", "count": 1, "reason": None},
    {"operator": "aten.sym_size.int", "count": 1, "reason": None},
]

PLAN = MemoryPlan(
    arenas_bytes=[600_000], instructions=1, live_bytes=600_000, live_at=0, live_operator="XnnpackBackend",
    buffers=[LiveBuffer(bytes=600_000, producer="input", last_user="XnnpackBackend", first=0, last=0)],
    named_bytes=13_900_000, payload_bytes={"XnnpackBackend": 30_000},
)  # fmt: skip

MEMORY = Stats(
    start_anonymous_bytes=3_000_000, start_file_bytes=4_000_000, load_anonymous_bytes=18_000_000,
    load_file_bytes=5_000_000, model_anonymous_bytes=26_000_000, model_file_bytes=5_000_000,
    model_peak_memory_bytes=35_500_000,
)  # fmt: skip


class StandIn:
    """Takes the place of an export, of a runner and of sessions; `portable_us` are those of the sessions."""

    def __init__(self, machine: Path) -> None:
        self.portable_us = [2] * SESSIONS
        self.delegate_calls = [(0, 0, "XnnpackBackend")]
        self.accuracy: list[list[Accuracy]] = [[]] * SESSIONS
        self.fault_notes: list[str] = []
        self.export: Any = None
        self.measured = 0
        self.holders: list[str] = []
        self.builds: list[dict[str, Any]] = []
        self.device = LocalDevice("here", str(machine))

    def build(self, *_: object, **about: Any) -> Any:
        self.builds.append(about)
        return SimpleNamespace(runner_sha256="r", platform="linux-x86_64", backends=frozenset({"XnnpackBackend"}))

    def measure(self, session: Any, bench: Any, store: Any) -> Any:
        """Write the ETDump of a session whose convolution takes 80 us and the rest 10 us."""
        self.holders.append(str(current_holder(self.device)))
        portable_us, accuracy = self.portable_us[self.measured], self.accuracy[self.measured]
        self.measured += 1
        if portable_us < 0:
            failed: dict[str, Any] = {"status": "failed", "reason": "it crashed", "session_id": "x", "accuracy": None}
            return SimpleNamespace(**failed, log_tail="", files={}, stats=None)
        folder = Path(store.location) / session.sweep.sweep_id / session.session_id
        folder.mkdir(parents=True)
        run = ((90 + portable_us) * US, {CONVOLUTION: 80 * US, MEAN: portable_us * US})
        (folder / "model.etdump").write_bytes(etdump_of([run] * 12))
        ended = {"status": "succeeded", "reason": None, "session_id": session.session_id, "accuracy": accuracy}
        files = {"files": {"model.etdump": ""}, "model": SimpleNamespace(backends=None)}
        return SimpleNamespace(**ended, **files, stats=MEMORY)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    monkeypatch.setattr(Device, "machine_folder", str(tmp_path / "machine"))
    change_policy(monkeypatch, "LEASE", max_pause_s=0.1)
    made = StandIn(tmp_path / "root")
    export = made.export = SimpleNamespace(
        model="toy", precision="fp32", seed=0, pte_sha256="p", inputs_sha256="i", pte_bytes=1000, export_s=1.0,
        trial="succeeded", portable=LISTED, executions=lambda *planned: planned, delegate_calls=made.delegate_calls,
        delegated=[{"operator": "aten.convolution.default", "count": 1}],
        left_out=[{"step": "a_pass", "method": None, "reason": "why"}], layers=[], type_changes=[], stored_bytes={},
        memory=PLAN, notes=["exported without a_pass: why"],
        fault_notes=made.fault_notes, samples=None, delegates=None,
    )  # fmt: skip
    monkeypatch.setattr(model_check, "export_cases", lambda *_, **__: [export])
    monkeypatch.setattr(model_check, "build_runner", made.build)
    monkeypatch.setattr(model_check, "measure", made.measure)
    return made


@pytest.fixture
def check(stand_in: StandIn, command: Command, tmp_path: Path) -> Callable[..., Ended]:
    """Run `etfarm model check toy` with these options, from the first session on."""

    def run(*options: object) -> Ended:
        stand_in.measured = 0
        return command("model", "check", "toy", "--data-dir", tmp_path / "var", *options)

    return run


def test_one_disturbed_session_shows_in_the_range_and_not_in_the_share(
    stand_in: StandIn, check: Callable[..., Ended]
) -> None:
    # given five sessions of one file, in one of which the portable operator dominates
    stand_in.portable_us = [2, 1, 2, 910, 2]
    ended = check()
    # then the shares are those of the sessions in the middle, with the range of all
    assert ended.code == 0
    assert "time: 0.0920 ms (five sessions, 0.0910 to 1.0000 ms), 1 thread, SME2 off" in ended.lines
    shares = "of that: 87.0 % (8.0 to 87.9 %) delegated, 2.2 % (1.1 to 91.0 %) portable, 10.9 % unattributed"
    assert shares in ended.lines
    assert "  aten.mean.dim x 2: 2.2 % (1.1 to 91.0 %)" in ended.lines
    # and operators on shapes and numbers are not portable
    assert "operators: 1 delegated to XNNPACK, 2 portable" in ended.lines
    assert "sym_size" not in ended.out
    assert "built-in" not in ended.out
    # and what the export left out is there, and the answer
    assert "exported without a_pass: why" in ended.lines
    assert ended.lines[-1] == "ready for a sweep"
    # and its memory is there in four lines
    first = ended.lines.index("memory: 600 kB planned")
    assert ended.lines[first + 1 : first + 4] == [
        "largest live set: 600 kB at instruction 0 of 1 (XnnpackBackend): 600 kB from an input, last used by "
        "XnnpackBackend (over 1 of 1 instructions)",
        "data of the program: 13.9 MB weights that delegates share, 30 kB payload of XnnpackBackend",
        "measured: 7 MB before loading, 23 MB loaded, 31 MB after the first run, 35.5 MB at the peak",
    ]
    # and a limit is compared with the share of the middle
    told = "portable operators take 2.2 % (1.1 to 91.0 %) of the time, more than 2 %"
    for limit, code in ((2, 1), (3, 0)):
        ended = check("--max-portable", limit)
        assert (ended.code, told in ended.out) == (code, code == 1)
    # and the machine was held meanwhile, and is released
    assert {holder.partition(" (")[0] for holder in stand_in.holders} == {"check of toy fp32"}
    assert current_holder(stand_in.device) is None


@pytest.mark.parametrize(
    ("precision", "snr_db", "told", "remedy"),
    [
        ("fp32", 60.5, None, ""),
        (
            "fp32",
            59.5,
            "output 0 in 1 of 5 sessions: SNR 59.5 dB, limit 60 dB, against eager",
            "the mode numerics of a",
        ),
        ("as_is", 59.5, "output 0 in 1 of 5 sessions: SNR 59.5 dB, limit 60 dB, against", "export the file again, or"),
    ],
)
def test_outputs_that_a_sweep_would_call_inaccurate_fail_the_check(
    stand_in: StandIn,
    check: Callable[..., Ended],
    tmp_path: Path,
    precision: str,
    snr_db: float,
    told: str | None,
    remedy: str,
) -> None:
    # given outputs of which only those of the second session may be wrong
    OUTPUT.tofile(tmp_path / "want.bin")
    (OUTPUT * (1 + 10 ** (-snr_db / 20))).astype("float32").tofile(tmp_path / "output-0.bin")
    eager = [{"file": "want.bin", "dtype": "float32", "shape": [100]}]
    judged = compare_outputs(References(tmp_path, eager, [], recipe_limits("fp32", None)), tmp_path)
    stand_in.accuracy[1:2], stand_in.export.precision = [judged], precision
    # when the model is checked
    ended = check()
    # then the check fails exactly if they are beyond the limit of a sweep, and names the figure and the limit
    assert ended.code == (1 if told else 0)
    assert ("ready for a sweep" in ended.out) == (told is None)
    assert told is None or f"failed: toy: inaccurate: {told}" in ended.lines[-1]
    # and what helps: no precision is more exact, and the layers of a file cannot be read
    assert remedy in ended.lines[-1]
    assert "precision" not in ended.lines[-1]
    # and times and errors are shown in both cases
    assert any(line.startswith("time: 0.0920 ms") for line in ended.lines)
    document = json.loads(check("--format", "json").out)
    error = max(each.max_abs_error or 0 for each in judged)
    assert (document["ready"], document["cases"][0]["max_abs_error"]) == (told is None, error)


@pytest.mark.parametrize("is_inaccurate", [True, False])
def test_samples_are_stated_and_judge_the_model(
    stand_in: StandIn, check: Callable[..., Ended], is_inaccurate: bool
) -> None:
    record = SampleRecord(
        samples=4, below=1, worst="b.png", median_snr_db=30.0, score=0.5, reference_score=0.75, machine="lab",
        sha256="0" * 64,
    )  # fmt: skip
    row = Accuracy(
        output=0, reference="samples", max_abs_error=1.0, max_rel_error=None, snr_db=2.0, nonfinite_mismatches=0,
        min_snr_db=5.0, is_inaccurate=is_inaccurate, samples=record,
    )  # fmt: skip
    stand_in.accuracy = [[row]] * SESSIONS
    ended = check()
    levels = "SNR median 30.0 dB, worst 2.0 dB (b.png); 1 below 5 dB (25.0 %)"
    sentence = f"4 samples, executed on lab at the export: {levels}"
    assert f"outputs for {sentence}; score 0.5, in eager PyTorch 0.75" in ended.lines
    assert ended.code == int(is_inaccurate)
    assert (sentence in ended.lines[-1]) == is_inaccurate
    document = json.loads(check("--format", "json").out)
    assert_documented("model check", document)
    assert document["cases"][0]["samples"][0]["worst_snr_db"] == 2.0


def test_what_is_random_or_wrong_in_the_export_fails_the_check_and_is_the_cause(
    stand_in: StandIn, check: Callable[..., Ended]
) -> None:
    stand_in.fault_notes.append("random in evaluation mode: aten.rand")
    ended = check()
    assert (ended.code, ended.lines[-1]) == (1, "failed: toy: random in evaluation mode: aten.rand")


@pytest.mark.parametrize(("portable_us", "code"), [([2, 1, 2, 910, 2], 0), ([2, -1], 1)])
def test_programs_get_the_same_as_one_document_and_a_session_that_fails_ends_the_check(
    stand_in: StandIn, check: Callable[..., Ended], portable_us: list[int], code: int
) -> None:
    stand_in.portable_us = portable_us
    ended = check("--format", "json")
    document = json.loads(ended.out)
    assert_documented("model check", document)
    (case,) = document["cases"]
    assert (ended.code, document["ready"], len(document["problems"])) == (code, code == 0, code)
    assert (case["problem"], len(case["sessions_ms"])) == ((None, 5) if code == 0 else ("failed: it crashed", 0))
    assert [each["operator"] for each in case["operators"]][: 1 - code] == ["aten.mean.dim"][: 1 - code]
    assert stand_in.measured == len(portable_us)


def test_a_model_for_a_backend_that_the_farms_runner_lacks_fails_before_anything_is_run(
    stand_in: StandIn, check: Callable[..., Ended]
) -> None:
    stand_in.delegate_calls.append((0, 1, "CoreMLBackend"))
    ended = check()
    told = "failed: toy: its program calls CoreMLBackend, which the farm's runner for linux-x86_64 does not have; "
    assert (ended.code, stand_in.measured, told in ended.out) == (1, 0, True)


def test_a_delegate_that_this_machine_cannot_run_is_exported_and_not_run(
    stand_in: StandIn, check: Callable[..., Ended]
) -> None:
    # given a program for a backend without a registered runner
    stand_in.export.model = "toy@delegate=my.parts:make"
    stand_in.delegate_calls[:] = [(0, 0, "CoreMLBackend")]
    ended = check("--format", "json")
    assert_documented("model check", json.loads(ended.out))
    # then what it takes is stated, and why it is not run, which is not a failure
    ended = check()
    assert (ended.code, stand_in.measured, stand_in.builds) == (0, 0, [])
    assert "operators: 1 delegated to Core ML, 2 portable" in ended.lines
    assert ended.lines[-3].startswith("not run here: my.parts:make: your own partitioner needs a registered ")
    assert ended.lines[-1] == "not run here; ready for a sweep on a device that can run it"


def test_a_pte_file_is_checked_with_a_runner_for_the_backends_that_it_calls(
    stand_in: StandIn, check: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_check, "why_no_runner", lambda *_: None)
    stand_in.export.precision = "as_is"
    for calls, backends in ((["XnnpackBackend"], set()), (["XnnpackBackend", "OpenvinoBackend"], {"OpenvinoBackend"})):
        stand_in.delegate_calls[:] = [(0, number, backend) for number, backend in enumerate(calls)]
        check()
        assert set(stand_in.builds.pop()["backends"]) == backends


def test_a_check_waits_for_a_sweep_on_this_machine_and_reports_the_wait(stand_in: StandIn, tmp_path: Path) -> None:
    # given a sweep on this machine
    told: list[str] = []
    with acquire(stand_in.device, "nightly-2026-01-02"):
        # when a model is checked that may not wait, it is an error
        with pytest.raises(DeviceBusy, match="is held by nightly"):
            list(check_model("toy", "fp32", tmp_path / "var", wait_s=0.1))
        # and else it waits, and names the sweep
        cases = in_background(lambda: list(check_model("toy", "fp32", tmp_path / "var", tell=told.append)))
        wait_for(lambda: len(told) > 1, "the check to wait")
        assert " is held by nightly-2026-01-02 (process " in told[1]
        assert stand_in.measured == 0
    # and it measures as soon as the sweep has ended
    assert cases.result(ENOUGH_S)[0].problem is None
    assert stand_in.measured == SESSIONS
