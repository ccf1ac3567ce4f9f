"""What the words of a comparison name: each kind by itself, and one sentence for what fits nothing or two things."""

from datetime import datetime
from pathlib import Path

import pytest

from devices.errors import InputError
from tasks.judge.arms import Arm, ArmName, find_arms, name_of_folder

OLD, NEW = "nightly-2026-11-01", "nightly-2026-11-02"
CELL, CELL_2, SESSION = "3f0c1a2b4d5e6f70", "3f0c1a9999999999", "aaaaaa2b4d5e6f70"


def names_of(sweep_id: str, day: int, **values: list[str]) -> list[ArmName]:
    own = {"sweep": [sweep_id], "night": [f"2026-11-{day:02}"], **values}
    at = datetime(2026, 11, day, 1)
    return [ArmName(kind, value, sweep_id, at) for kind, listed in own.items() for value in listed]


DEVICES = ["mac", "pixel"]
NAMES = [
    *names_of(OLD, 1, variant=["sme2_off", "sme2_on"], device=DEVICES, model=["toy", "mac"], precision=["fp32"]),
    *names_of(OLD, 1, executorch=["1.5.1"], runner=["abcdef01", "abcdef02"], cell=[CELL, CELL_2], session=[SESSION]),
    *names_of(NEW, 2, variant=["sme2_off"], device=DEVICES, model=["toy"], executorch=["1.6.0"]),
]


@pytest.mark.parametrize(
    ("a", "b", "arms"),
    [
        ("2026-11-01", "2026-11-02", (Arm("night", "2026-11-01", None), Arm("night", "2026-11-02", None))),
        (OLD, NEW, (Arm("sweep", OLD, None), Arm("sweep", NEW, None))),
        ("2026-11-01", NEW, (Arm("night", "2026-11-01", None), Arm("sweep", NEW, None))),
        ("3f0c1a2", "3f0c1a9", (Arm("cell", CELL, None), Arm("cell", CELL_2, None))),
        (CELL, "aaaaaa", (Arm("cell", CELL, None), Arm("session", SESSION, None))),
        ("abcdef01", "abcdef02", (Arm("runner", "abcdef01", OLD), Arm("runner", "abcdef02", OLD))),
        ("device:mac", "pixel", (Arm("device", "mac", NEW), Arm("device", "pixel", NEW))),
        ("sme2_off", "sme2_on", (Arm("variant", "sme2_off", OLD), Arm("variant", "sme2_on", OLD))),
        ("1.5.1", "1.6.0", (Arm("executorch", "1.5.1", OLD), Arm("executorch", "1.6.0", NEW))),
    ],
)
def test_each_word_names_its_kind_in_the_newest_sweep_that_has_both(a: str, b: str, arms: tuple[Arm, Arm]) -> None:
    assert find_arms(a, b, NAMES) == arms
    # and in a sweep that is named, both are looked up there
    assert find_arms("device:mac", "pixel", NAMES, OLD) == (Arm("device", "mac", OLD), Arm("device", "pixel", OLD))


@pytest.mark.parametrize(
    ("a", "b", "sweep_id", "sentence"),
    [
        ("2026-11-03", "2026-11-02", None, "`2026-11-03` is not a night, sweep, device"),
        ("pixle", "mac", None, "with timing results; did you mean `pixel`?"),
        ("zzz", "mac", None, "with timing results; list the sweeps with"),
        ("3f0c1", CELL, None, "with timing results; an id needs at least 6 digits"),
        ("3f0c1a", SESSION, None, "`3f0c1a` begins 2 ids of a cell; write more digits"),
        ("mac", "pixel", None, "`mac` is a device and a model; write device:mac or model:mac"),
        ("toy", "pixel", None, "`toy` is a model and `pixel` a device; compare two of one kind"),
        ("toy", "toy", None, "A and B are the same model (toy); name two"),
        ("2026-11-01", "2026-11-02", OLD, "--sweep: A is a night; use it with names inside a sweep"),
        ("sme2_off", "sme2_on", NEW, f"`sme2_on` is not in sweep {NEW}; the newest sweep with it is {OLD}"),
        ("pixel", "device:mac", "nightly-2026-11-1", f"not a sweep with timing results; did you mean `{OLD}`?"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence_with_what_would_be_right(
    a: str, b: str, sweep_id: str | None, sentence: str
) -> None:
    with pytest.raises(InputError) as refused:
        find_arms(a, b, NAMES, sweep_id)
    assert sentence in str(refused.value)


def test_the_path_of_a_bundle_stands_for_its_id(tmp_path: Path) -> None:
    (tmp_path / SESSION).mkdir()
    assert name_of_folder(f"{tmp_path}/{SESSION}/") == SESSION
    assert name_of_folder(SESSION) == SESSION
    assert name_of_folder("team.models/detector") == "team.models/detector"
