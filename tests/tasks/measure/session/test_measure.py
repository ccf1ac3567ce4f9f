"""However a session goes, it ends as one bundle that records how: succeeded, failed or invalid, with the reason.

The runners here are stand-ins, shell scripts that misbehave on purpose; the real one is measured in test_sweep.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from devices.device import CommandResult
from devices.errors import DeviceLost
from devices.local import LocalDevice
from devices.ondevice.facts import Facts
from tasks.bundle.record import SessionRecord
from tasks.etdump.xnntrace import selected_kernels
from tasks.measure.clock import ClockWatch
from tasks.measure.session.context import add_runner_facts, runner_command
from tests.fixtures.stand_in import GOOD, a_context, a_farm_context, a_session, measured, put_on_path
from tests.fixtures.waiting import SCALE


def test_a_session_that_goes_well_succeeds_and_marks_its_folder_on_the_device_for_removal(tmp_path: Path) -> None:
    context = a_context(tmp_path, GOOD)
    record = measured(tmp_path, context)
    assert (record.status, record.reason_code, record.exit_code) == ("succeeded", None, 0)
    assert record.accuracy is not None
    assert record.accuracy[0].max_abs_error == 0.0
    assert record.conditions["before"] is not None
    assert set(record.files) == {"stdout.txt", "stderr.txt", "model.etdump", "output-0.bin"}
    assert context.device.collected == [str(folder) for folder in (tmp_path / "root" / "sessions").iterdir()]


@pytest.mark.fault
@pytest.mark.parametrize(
    ("script", "code", "sentence"),
    [
        ('truncate -s 1T "$etdump"; kill -SEGV $$', "runner_crashed", "crashed with SIGSEGV"),
        ("echo Missing operators: a::b, a::c >&2; exit 2", "missing_operator", "has no kernel for a::b, a::c"),
        ("kill -KILL $$", "runner_killed", "was killed by SIGKILL"),
        ("echo first >&2; echo last >&2; exit 1", "runner_failed", "exited with code 1: last"),
        ("true", "no_etdump", "did not write an ETDump"),
        ('cp "$model" "$etdump"', "wrong_output", "output 0 is missing"),
        (f'{GOOD}rm -f "$etdump"; truncate -s 1T "$etdump"', "file_refused", "model.etdump "),
    ],
)
def test_a_runner_that_misbehaves_fails_its_session(tmp_path: Path, script: str, code: str, sentence: str) -> None:
    context = a_context(tmp_path, script + "\n")
    record = measured(tmp_path, context)
    assert (record.status, record.reason_code) == ("failed", code)
    assert sentence in str(record.reason)
    assert code != "runner_failed" or record.log_tail == "first\nlast"
    assert "model.etdump" not in record.files or code == "wrong_output"
    assert context.device.collected == [str(folder) for folder in (tmp_path / "root" / "sessions").iterdir()]


@pytest.mark.fault
def test_a_runner_that_hangs_and_ignores_term_is_ended_at_its_deadline(tmp_path: Path) -> None:
    # given a runner that will not go, with a child that will not either
    script = "trap '' TERM; sleep 600 & echo $! >\"$etdump.child\"; wait; while :; do sleep 600; done\n"
    record = measured(tmp_path, a_context(tmp_path, script, deadline_s=SCALE))
    assert (record.status, record.reason_code) == ("failed", "deadline_exceeded")
    assert record.reason == f"the runner was killed after its deadline of {SCALE:g} s"


@pytest.mark.fault
def test_a_device_without_space_fails_the_session_in_one_sentence(tmp_path: Path, full_disk: Path) -> None:
    context = replace(a_context(tmp_path, GOOD, b"x" * (4 << 20)), device=LocalDevice("local", str(full_disk / "root")))
    record = measured(tmp_path, context)
    assert (record.status, record.reason_code) == ("failed", "no_space_on_device")


class Clocks:
    """The clocks of a machine, each of which is read twice: `passed_s` lie between, and the wall clock jumps."""

    def __init__(self, passed_s: float, jump_s: float) -> None:
        self.time = iter([1000.0, 1000.0 + passed_s + jump_s]).__next__
        self.monotonic = iter([5.0, 5.0 + passed_s]).__next__


@pytest.mark.parametrize(
    ("passed_s", "jump_s", "contradiction"),
    [
        (12.1, 3600.0, "the clock of this machine jumped 3600.0 s forward while 12.1 s passed"),
        (12.1, -3600.0, "the clock of this machine jumped 3600.0 s back while 12.1 s passed"),
        (10.0, 2.0, None),
        (10.0, 2.02, "the clock of this machine jumped 2.0 s forward while 10.0 s passed"),
        (1000.0, -2.9, None),
        (1000.0, -3.1, "the clock of this machine jumped 3.1 s back while 1000.0 s passed"),
    ],
)
def test_clocks_contradict_each_other_beyond_what_ntp_slews(
    monkeypatch: pytest.MonkeyPatch, passed_s: float, jump_s: float, contradiction: str | None
) -> None:
    monkeypatch.setattr("tasks.measure.clock.time", Clocks(passed_s, jump_s))
    assert ClockWatch().contradiction() == (contradiction and f"{contradiction}; it was set or the machine slept")


@pytest.mark.fault
def test_a_session_whose_clock_is_set_is_invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.measure.clock.time", Clocks(12.1, -3600))
    record = measured(tmp_path, a_context(tmp_path, GOOD))
    assert (record.status, record.reason_code) == ("invalid", "clock")
    assert "jumped 3600.0 s back while 12.1 s passed" in str(record.reason)


# Refuses to clear, and to answer without a time stamp; lists one line per process that it is asked for.
STAND_IN = """
for word; do case $word in
    -c) echo "asked to clear" >&2; exit 9;;
    --pid=*) pid=${word#--pid=};;
    [0-9][0-9]-[0-9][0-9]' '*) since=$word;;
esac; done
[ -n "$since" ] || exit 8
echo "$since  $pid  $pid I XNNPACK : Using gemm microkernel 'xnn_f32_gemm_minmax_ukernel_6x8__neonfma'. (x, y.c:1)"
"""


def traced(folder: Path) -> SessionRecord:
    """Measure a session in mode trace on a phone, whose runner says which process it is."""
    context = replace(a_context(folder, "echo $$\n" + GOOD), facts=Facts(os="android"))
    return measured(folder, context, a_session(mode="trace"))


def test_a_trace_on_a_phone_keeps_what_its_runner_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(monkeypatch, tmp_path / "bin", logcat=STAND_IN)
    record = traced(tmp_path)
    # then its bundle has the log of that process, and the parser finds the kernel in it
    assert record.status == "succeeded", record.reason
    bundle = tmp_path / "bundles" / record.sweep.sweep_id / record.session_id
    log, pid = bundle / "logcat.txt", (bundle / "stdout.txt").read_text(encoding="utf-8").strip()
    assert f" {pid} " in log.read_text(encoding="utf-8")
    assert list(selected_kernels(log)) == ["xnn_f32_gemm_minmax_ukernel_6x8__neonfma"]


@pytest.mark.fault
def test_a_phone_that_was_lost_before_a_trace_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(monkeypatch, tmp_path / "bin", logcat=STAND_IN)
    call, lost = LocalDevice.run, [DeviceLost("local", "its connection ended")]

    def lose_the_first(device: LocalDevice, words: Sequence[str], *, deadline_s: float) -> CommandResult:
        if lost:
            raise lost.pop()
        return call(device, words, deadline_s=deadline_s)

    monkeypatch.setattr(LocalDevice, "run", lose_the_first)
    record = traced(tmp_path)
    assert record.status == "succeeded", record.reason


@pytest.mark.fault
def test_a_phone_without_a_readable_log_fails_the_session_with_the_reason(tmp_path: Path) -> None:
    record = traced(tmp_path)
    assert record.status == "failed"
    assert "cannot read its log (logcat: " in str(record.reason)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ('echo \'{"sme_hardware": true, "sme2_hardware": false}\'', (True, False)),
        ("echo '{\"sme2_hardware\": true}'", (None, None)),
        ('echo \'{"sme2_hardware": "yes"}\'', (None, None)),
        ("head -c 100000 /dev/zero | tr '\\0' '['", (None, None)),
        ('echo \'{"sme2_hardware": true, "x": "\\ud800"}\'', (None, None)),
        ("true", (None, None)),
    ],
)
def test_bad_versions_leave_sme2_unknown(tmp_path: Path, script: str, answer: tuple[bool | None, bool | None]) -> None:
    context = a_farm_context(tmp_path, f"{script}\n")
    facts = add_runner_facts(context.runner, context.device, context.spec, Facts(os="linux"))
    assert (facts.sme, facts.sme2) == answer


def test_a_registered_runner_gets_the_flags_of_the_stock_runner_only(tmp_path: Path) -> None:
    context = a_context(tmp_path, "")
    kinds = (context, replace(context, runner=replace(context.runner, kind="wheel")))
    registered, farm = ({word.partition("=")[0] for word in runner_command(a_session(), each, "/f")} for each in kinds)
    assert {"--model_path", "--num_executions", "--cpu_threads", "--etdump_path", "--output_file"} <= registered
    assert farm - registered == {"--stats_path", "--sme2", "--untraced_executions", "--list_mappings"}
    # and the sessions of the roof also read memory and caches
    of_roof = {word.partition("=")[0] for word in runner_command(a_session(model="roof"), kinds[1], "/f")}
    assert of_roof - farm == {"--memory_reads", "--cache_reads"}


@pytest.mark.parametrize(("loaded", "status"), [("mmap", "succeeded"), ("file", "invalid")])
def test_a_session_has_the_name_of_its_options_and_counts_only_if_they_had_an_effect(
    tmp_path: Path, loaded: str, status: str
) -> None:
    stats = f'{{"load_ns": 5, "threads_used": 1, "load_mode": "{loaded}"}}'
    context = a_farm_context(tmp_path, f"{GOOD}printf '%s' '{stats}' >\"$stats\"\n")
    record = measured(tmp_path, context, a_session(model="linear@load=mmap"))
    assert (record.status, record.model.name) == (status, "linear@load=mmap")
    assert "--load_mode=mmap" in record.command
    assert record.reason_code == (None if status == "succeeded" else "option_ignored")


def test_a_cache_that_a_killed_runner_left_is_removed_from_the_device(tmp_path: Path) -> None:
    context = a_farm_context(tmp_path, "echo packed >packed.cache; kill -KILL $$\n")
    record = measured(tmp_path, context, a_session(model="linear@packed_cache=true"))
    assert (record.status, record.signal) == ("failed", 9)
    (folder,) = (tmp_path / "root" / "sessions").iterdir()
    assert (folder / "stdout.txt").exists()
    assert not (folder / "packed.cache").exists()
