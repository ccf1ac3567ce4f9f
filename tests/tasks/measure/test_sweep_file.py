"""A sweep file describes what is measured; a mistake in it is one sentence."""

from pathlib import Path

import pytest

from devices.errors import InputError
from tasks.measure.sweep_file import read_sweep
from tests.fixtures.paths import DEPLOYMENTS


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", [*sorted((DEPLOYMENTS / "sweeps").glob("*.yaml"))], ids=lambda path: path.stem)
def test_the_sweeps_that_come_with_the_farm_are_valid(path: Path) -> None:
    assert read_sweep(path).name == path.stem


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("name: a\nmodels: [linear]\nexecutoins: 3\n", 3, "`executoins`: unknown key; the keys are "),
        ("name: a\nmodels:\n  - linear\n  - mobilnet\n", 4, "unknown model `mobilnet`"),
        ("name: a\nmodels: [linear]\nprecisions: [fp64]\n", 3, "unknown precision `fp64`; use one of fp32, fp16, "),
        ("name: A b\nmodels: [linear]\n", 1, "lower-case letters, digits"),
        ("name: a\nmodels: [linear]\nthreads: [1, 1]\n", 3, "duplicate entry `1`"),
        ("name: a\nmodels: [linear]\nthreads: [all, 2]\n", 3, "the first entry must be a number; write `all` after it"),
        ("name: a\nmodels: [linear]\nlimits:\n  max_temp: 3\n", 4, "the keys are max_background_cpu_percent, "),
        ("name: a\nmodels: [linear]\nlimits:\n  max_die_c: .inf\n", 4, "`limits.max_die_c`: input should be a finite"),
        ("name: a\nmodels: [linear]\nseed: 9223372036854775808\n", 3, "`seed`: input should be less than "),
        (
            "name: a\nmodels: [linear]\nfinish_by: 22:30\n",
            3,
            'write "22:30" in quotes or a number in base 10',
        ),
        (
            "name: a\nmodels:\n  - {factory: linear, accuracy: {}}\n",
            3,
            "`accuracy` is empty; set `min_snr_db`, `top1` or both",
        ),
        ("name: a\nmodels:\n  - {factory: linear, accuracy: {top1: 1.1}}\n", 3, "less than or equal to 1"),
        ("name: a\nmodels:\n  - {factory: linear, accuracy: {snr: 9}}\n", 3, "min_snr_db"),
        ('name: a\nmodels: [linear]\nfinish_by: "24:10"\n', 3, "`finish_by`: a time consists of hours and minutes"),
    ],
)
def test_a_mistake_is_one_sentence_with_file_line_and_what_would_be_right(
    tmp_path: Path, text: str, line: int, sentence: str
) -> None:
    # given a file with one mistake
    path = written(tmp_path, text)
    # when it is read
    with pytest.raises(InputError) as refused:
        read_sweep(path)
    # then one sentence names the place and the way on
    assert str(refused.value).startswith(f"{path}:{line}: ")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_warm_up_must_leave_executions_to_measure(tmp_path: Path) -> None:
    path = written(tmp_path, "name: a\nmodels: [linear]\nexecutions: 3\nwarmup_executions: 3\n")
    with pytest.raises(InputError, match=r"executions \(3\) must be more than warmup_executions \(3\)"):
        read_sweep(path)


@pytest.mark.parametrize(("sessions", "problem"), [(8, r"sessions \(8\) is the maximum"), (9, None)])
def test_a_sweep_that_may_end_early_has_sessions_to_save(tmp_path: Path, sessions: int, problem: str | None) -> None:
    path = written(tmp_path, f"name: a\nmodels: [linear]\ninterval_percent: 2\nsessions: {sessions}\n")
    if problem is None:
        assert read_sweep(path).interval_percent == 2
    else:
        with pytest.raises(InputError, match=problem):
            read_sweep(path)
