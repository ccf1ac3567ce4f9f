"""However a session goes, it ends as one bundle that records how: succeeded, failed or invalid, with the reason.

The runners here are stand-ins, shell scripts that misbehave on purpose; the real one is measured in test_sweep.py.
"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from devices.local import LocalDevice
from devices.ondevice.job import kill_leftovers
from tasks.measure.plan import DISCARDED_INDEX, FIRST_SESSION
from tasks.measure.session.measure import Bench, measure
from tasks.store.find import bundles_of
from tasks.store.store import LocalStore
from tests.fixtures.paths import ROOT
from tests.fixtures.plans import NIGHT
from tests.fixtures.stand_in import GOOD, a_bench, a_session, measured
from tests.fixtures.waiting import SCALE


def test_a_session_that_goes_well_succeeds_and_marks_its_folder_on_the_device_for_removal(tmp_path: Path) -> None:
    bench = a_bench(tmp_path, GOOD)
    record = measured(tmp_path, bench)
    assert (record.status, record.reason_code, record.exit_code) == ("succeeded", None, 0)
    assert record.accuracy is not None
    assert record.accuracy[0].max_abs_error == 0.0
    assert record.conditions["before"] is not None
    assert set(record.files) == {"stdout.txt", "stderr.txt", "model.etdump", "output-0.bin"}
    assert bench.device.collected == [str(folder) for folder in (tmp_path / "root" / "sessions").iterdir()]


@pytest.mark.fault(stage="run", done="the runner causes {code}", holds="the session fails with its reason")
@pytest.mark.parametrize(
    ("script", "code", "sentence"),
    [
        ("kill -SEGV $$", "runner_crashed", "was killed by signal 11 (SIGSEGV)"),
        ("echo no such model >&2; exit 2", "runner_failed", "exited with code 2: no such model"),
        (
            "echo 'executor_runner: ExecuTorch crashed (SIGABRT) while it loaded the model' >&2; kill -ABRT $$",
            "model_crashed",
            "ExecuTorch crashed with signal 6 (SIGABRT) while it loaded the model whose .pte file has SHA-256 ",
        ),
        ("true", "no_etdump", "did not write an ETDump"),
        (': >"$etdump"', "bad_etdump", "model.etdump"),
        ('cp "$model" "$etdump"', "wrong_output", "output 0 is missing"),
    ],
)
def test_a_runner_that_misbehaves_is_a_failed_session_with_its_reason(
    tmp_path: Path, script: str, code: str, sentence: str
) -> None:
    record = measured(tmp_path, a_bench(tmp_path, script + "\n"))
    assert (record.status, record.reason_code) == ("failed", code)
    assert sentence in str(record.reason)


def test_the_log_of_a_failed_runner_is_kept(tmp_path: Path) -> None:
    record = measured(tmp_path, a_bench(tmp_path, "echo first >&2; echo last >&2; exit 1\n"))
    assert record.log_tail == "first\nlast"


@pytest.mark.fault(stage="run", done="a runner hangs and ignores TERM", holds="it is killed at its deadline")
def test_a_runner_that_hangs_and_ignores_term_is_ended_at_its_deadline(tmp_path: Path) -> None:
    # given a runner that will not go, with a child that will not either
    script = "trap '' TERM; sleep 600 & echo $! >\"$etdump.child\"; wait; while :; do sleep 600; done\n"
    record = measured(tmp_path, a_bench(tmp_path, script, deadline_s=SCALE))
    # then the session failed for that reason, well before its sleep is over
    assert (record.status, record.reason_code) == ("failed", "deadline_exceeded")
    assert record.reason == f"the runner was killed after its deadline of {SCALE:g} s"


def test_the_first_session_is_always_discarded(tmp_path: Path) -> None:
    record = measured(tmp_path, a_bench(tmp_path, GOOD), a_session(index=DISCARDED_INDEX))
    assert (record.status, record.reason_code) == ("invalid", FIRST_SESSION)


@pytest.mark.fault(stage="push", done="the disk of the device is full", holds="the session fails with that reason")
def test_a_device_without_space_fails_the_session_in_one_sentence(tmp_path: Path, full_disk: Path) -> None:
    bench = replace(a_bench(tmp_path, GOOD, b"x" * (4 << 20)), device=LocalDevice("local", str(full_disk / "root")))
    record = measured(tmp_path, bench)
    assert (record.status, record.reason_code) == ("failed", "no_space_on_device")


def test_paths_with_spaces_and_quotes_are_just_paths(tmp_path: Path) -> None:
    odd = tmp_path / 'it\'s a "test" $HOME; `id`'
    odd.mkdir()
    assert measured(odd, a_bench(odd, GOOD)).status == "succeeded"


_CONTROLLER = """
import sys
from pathlib import Path
from tests.fixtures.stand_in import LocalStore, a_bench, a_session, measure
folder = Path(sys.argv[1])
measure(a_session(), a_bench(folder, sys.argv[2]), LocalStore(folder / "bundles"))
"""


@pytest.mark.fault(stage="run", done="kill -9 of the farm", holds="no bundle is left, and the next start makes one")
def test_a_farm_killed_during_a_session_leaves_no_bundle_and_the_next_start_makes_one(tmp_path: Path) -> None:
    # given a runner that says that it runs, and a farm that is killed there
    ran = tmp_path / "ran"
    os.mkfifo(ran)
    script = f"echo ran >'{ran}'; sleep 600\n"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    farm = subprocess.Popen([sys.executable, "-c", _CONTROLLER, str(tmp_path), script], env=environment)
    ran.read_text(encoding="utf-8")
    farm.kill()
    farm.wait()
    assert list(bundles_of(tmp_path / "bundles", NIGHT.sweep_id)) == []
    # when the session is run again, by whoever got the lease and ended what was left
    bench = a_bench_again(tmp_path, GOOD)
    kill_leftovers(bench.device)
    record = measured(tmp_path, bench)
    # then it is one bundle, and a good one
    assert record.status == "succeeded"
    assert len(list(bundles_of(tmp_path / "bundles", NIGHT.sweep_id))) == 1


def a_bench_again(folder: Path, script: str) -> Bench:
    """The same device as before the kill, with a runner that behaves now."""
    second = folder / "second"
    second.mkdir()
    return replace(a_bench(second, script), device=LocalDevice("local", str(folder / "root")))


@pytest.mark.fault(
    stage="bundle", done="the bundle cannot be written", holds="the next start collects the finished job"
)
def test_a_job_that_ended_while_the_farm_was_dead_is_collected_not_run_again(tmp_path: Path) -> None:
    # given a job that came to its end, but whose bundle was never written
    counted = f"echo x >>'{tmp_path}/count'; " + GOOD
    bench = a_bench(tmp_path, counted)
    blocked = tmp_path / "bundles"
    blocked.write_text("a file where the bundles should be", encoding="utf-8")
    with pytest.raises(Exception, match="cannot write the bundle"):
        measure(a_session(), bench, LocalStore(blocked))
    blocked.unlink()
    # when the session is started again
    record = measured(tmp_path, bench)
    # then its results are there and the runner ran once
    assert record.status == "succeeded"
    assert (tmp_path / "count").read_text(encoding="utf-8") == "x\n"
