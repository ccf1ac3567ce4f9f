"""However a session goes, it ends as one bundle that records how: succeeded, failed or invalid, with the reason.

The runners here are stand-ins, shell scripts that misbehave on purpose; the real one is measured in test_sweep.py.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from devices.local import LocalDevice
from tests.fixtures.stand_in import GOOD, a_context, measured
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
        ('truncate -s 1T "$etdump"; kill -SEGV $$', "runner_crashed", "was killed by signal 11 (SIGSEGV)"),
        ("echo first >&2; echo last >&2; exit 1", "runner_failed", "exited with code 1: last"),
        ("true", "no_etdump", "did not write an ETDump"),
        ('cp "$model" "$etdump"', "wrong_output", "output 0 is missing"),
    ],
)
def test_a_runner_that_misbehaves_is_a_failed_session_with_its_reason(
    tmp_path: Path, script: str, code: str, sentence: str
) -> None:
    record = measured(tmp_path, a_context(tmp_path, script + "\n"))
    assert (record.status, record.reason_code) == ("failed", code)
    assert sentence in str(record.reason)
    assert record.log_tail == ("first\nlast" if code == "runner_failed" else None)


@pytest.mark.fault
def test_a_runner_that_hangs_and_ignores_term_is_ended_at_its_deadline(tmp_path: Path) -> None:
    # given a runner that will not go, with a child that will not either
    script = "trap '' TERM; sleep 600 & echo $! >\"$etdump.child\"; wait; while :; do sleep 600; done\n"
    record = measured(tmp_path, a_context(tmp_path, script, deadline_s=SCALE))
    # then the session failed for that reason, well before its sleep is over
    assert (record.status, record.reason_code) == ("failed", "deadline_exceeded")
    assert record.reason == f"the runner was killed after its deadline of {SCALE:g} s"


@pytest.mark.fault
def test_a_device_without_space_fails_the_session_in_one_sentence(tmp_path: Path, full_disk: Path) -> None:
    context = replace(a_context(tmp_path, GOOD, b"x" * (4 << 20)), device=LocalDevice("local", str(full_disk / "root")))
    record = measured(tmp_path, context)
    assert (record.status, record.reason_code) == ("failed", "no_space_on_device")


def test_paths_with_spaces_and_quotes_are_just_paths(tmp_path: Path) -> None:
    odd = tmp_path / 'it\'s a "test" $HOME; `id`'
    odd.mkdir()
    assert measured(odd, a_context(odd, GOOD)).status == "succeeded"
