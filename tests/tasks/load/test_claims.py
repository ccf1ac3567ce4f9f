"""A load believes of a bundle only what the runner's check believes, and no session that is another one's copy."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.load.load import LoadResult
from tasks.maintain.load_archive import load_archives
from tasks.store.archives import archive_path, pack_bundles
from tests.fixtures.warehouse import CONVOLUTION, LINEAR, MEAN, BundleMaker, edit, etdump_of

TIMES = [1_003_217, 1_001_904, 1_009_461, 1_000_377, 1_004_005]
PHONE: dict[str, Any] = {"device__transport": "adb", "device__facts": {"serial": "8A1X"}}


def refusals(result: LoadResult) -> list[str]:
    return [sentence.partition(": ")[2] for _, sentence in result.refused]


def etdump(begin: int, last: int = 0) -> bytes:
    """Five executions and a warm-up of operators that differ by nanoseconds; `last` makes the last one longer."""
    executions = [2_345_678, *TIMES[:-1], TIMES[-1] + last]
    starts: Iterator[int] = iter(range(begin, begin + 100_000_000, 10_000_000))
    return etdump_of([(ns, {CONVOLUTION: 300_000, MEAN: ns // 3, LINEAR: 100_000}) for ns in executions], starts)


def session(maker: BundleMaker, content: bytes, **changes: Any) -> Path:
    return maker.session(TIMES, files={"model.etdump": content}, **changes)


def test_what_a_runner_could_not_claim_is_refused_by_a_load_of_folders_and_of_archives(
    maker: BundleMaker, tmp_path: Path
) -> None:
    # given bundles whose statistics were changed after they had been checked
    changes: list[tuple[dict[str, Any], str]] = [
        ({"etdump_crc32": 1}, "model.etdump has CRC-32 "),
        ({"load_ns": 10**10}, "the runner states 10.007 s of loading and executions, but its job lasted 1.000 s"),
    ]
    causes = {}
    for number, (stats, cause) in enumerate(changes):
        folder = session(maker, etdump(number), wall_s=1.0, repetition=number)
        edit(folder, stats=stats)
        causes[folder] = cause
    # then a load of their folders refuses each
    refused = dict(maker.load().refused)
    assert refused.keys() == causes.keys()
    for folder, cause in causes.items():
        assert refused[folder].partition(": ")[2].startswith(cause)
    # and so does a load of their archive
    sweep_id = folder.parent.name
    archive = archive_path(tmp_path, sweep_id)
    with archive.open("wb") as stream:
        pack_bundles(stream, sweep_id, {each.name: each for each in causes})
    packed = {path.name: sentence for path, sentence in load_archives([archive], maker.warehouse, ()).refused}
    assert [folder for folder, cause in causes.items() if cause not in packed[folder.name]] == []
    assert maker.ask("SELECT count(*) FROM session") == [(0,)]


def test_the_times_of_another_session_are_loaded_once(maker: BundleMaker) -> None:
    # given sessions of which two have the ETDump of the first one at another time, of the same load and of a later one
    first = session(maker, etdump(0), repetition=0)
    session(maker, etdump(7), repetition=1, device__name="other")
    session(maker, etdump(8, last=1), repetition=2)
    loads = [maker.load()]
    session(maker, etdump(9), repetition=3)
    # and simulated devices, which replay one recording
    for index in (4, 5):
        simulated: dict[str, Any] = {"device__name": "x", "device__transport": "simulated", "device__emulated": True}
        session(maker, etdump(index), repetition=index, **simulated)
    # when all are loaded
    loads.append(maker.load())
    # then copies are refused with the other session, and what differs by a nanosecond is loaded
    cause = f"its 6 executions, from 2345678 ns to 1004005 ns, last exactly as long as those of session {first.name}"
    assert [len(refusals(load)) for load in loads] == [1, 2]
    assert {refusal.partition(";")[0] for load in loads for refusal in refusals(load)} == {cause}
    assert maker.ask("SELECT count(*) FROM session") == [(4,)]


def test_one_phone_under_two_names_of_a_sweep_is_loaded_under_the_first(maker: BundleMaker) -> None:
    # given two devices of one serial number, an emulator with the same, and the second name in another sweep
    maker.session([100], device__name="pixel", **PHONE)
    assert maker.load().loaded == 1
    maker.session([200], device__name="pixel-usb", **PHONE)
    maker.session([300], device__name="emulator", device__emulated=True, **PHONE)
    other: dict[str, Any] = {"sweep__sweep_id": "smoke-2026-11-21", "sweep__night": "2026-11-21"}
    maker.session([400], device__name="pixel-usb", **PHONE, **other)
    # then only the second name in the same sweep is refused
    [refused] = refusals(maker.load())
    assert refused.startswith("pixel-usb has serial 8A1X, as pixel has in sweep smoke-2026-11-20: they are one device")
    assert maker.ask("SELECT count(*) FROM session") == [(3,)]
