"""What must hold, seen from outside: files of the farm, the witness of each device, and processes."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tasks.bundle.record import SessionRecord
from tasks.store.files import UNFINISHED
from tests.fixtures.simulated import bears_its_name, counts, faults_of_load, faults_of_plan
from tests.survival.chaos.farm import ChaosFarm

_PREFIX_BYTES = 4  # of an ETDump: the size of what follows
_IDENTIFIER = b"ED00"


def faults_of_night(farm: ChaosFarm, sweep_id: str) -> list[str]:
    """Return what is wrong with a night that has ended, a sentence each."""
    records = farm.records(sweep_id)
    found = faults_of_plan(records, farm.planned()) + false_successes(farm.folder, records)
    if not (farm.data_dir.reports / sweep_id / "report.html").is_file():
        found.append("no report")
    return [f"{sweep_id}: {each}" for each in found]


def false_successes(folder: Path, records: Iterable[SessionRecord]) -> list[str]:
    """Return the results without a complete ETDump of their session, or whose runner did not come to its end."""
    ended = _ends(folder)
    found = []
    for record in filter(counts, records):
        name = f"{record.device.name} #{record.repetition} {record.session_id}"
        data = (folder / "bundles" / record.sweep.sweep_id / record.session_id / "model.etdump").read_bytes()
        size_bytes = int.from_bytes(data[:_PREFIX_BYTES], "little")
        if data[8:12] != _IDENTIFIER or size_bytes + _PREFIX_BYTES != len(data):
            found.append(f"{name}: false success, its ETDump is incomplete")
        if record.device.transport == "simulated" and not bears_its_name(folder / "bundles", record):
            found.append(f"{name}: false success, its ETDump is of another session")
        if 0 not in ended[record.device.name, record.session_id]:
            found.append(f"{name}: false success, its runner was killed before it ended")
    return found


def _ends(folder: Path) -> dict[tuple[str, str], list[int]]:
    """Return the exit codes of the runners that ended, by device and session, as the devices' launcher noted them."""
    ended = defaultdict(list)
    for line in (folder / "ran").read_text(encoding="utf-8").splitlines():
        phase, device, session, code, _ = line.split()
        if phase == "end":
            ended[device, session].append(int(code))
    return ended


def faults_of_all(farm: ChaosFarm) -> list[str]:
    """Return what is wrong with all nights together: overlaps on devices, and what the warehouse contains."""
    records = [record for sweep_id in farm.sweep_ids() for record in farm.records(sweep_id)]
    return overlaps_in(farm.folder) + faults_of_load(records, farm.data_dir.warehouse)


def overlaps_in(folder: Path) -> list[str]:
    """Return the sessions that began while another one ran on their device, as the devices' launcher noted them."""
    noted = folder / "overlaps"
    lines = noted.read_text(encoding="utf-8").splitlines() if noted.exists() else []
    return [f"{line}: two jobs at once" for line in lines]


def left_behind(folder: Path) -> list[str]:
    """Return processes, leases, jobs, scratch folders and mounts that are left, after the farm was ended."""
    patterns = ["machine-*/lease-*/*", "devices/*/machine/lease-*/*", "devices/*/jobs/*", "devices/*/sessions/*"]
    patterns += [f"bundles/*/{UNFINISHED}*", "tmp-*/etfarm-scratch-*/*", "tmp-*/etfarm-tree-*"]
    patterns += [f"var-*/{depth}{UNFINISHED}*" for depth in ("", "*/", "*/*/")]
    found = [f"left: {path.relative_to(folder)}" for pattern in patterns for path in sorted(folder.glob(pattern))]
    mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    found += [f"left mounted: {line}" for line in mounts if str(folder) in line]
    return found + [f"left running: {text}" for text in _running_in(folder)]


def _running_in(folder: Path) -> list[str]:
    """Return the processes that run in the folder or have it in their words or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words, settings = ((process / name).read_bytes() for name in ("cmdline", "environ"))
            place = str((process / "cwd").readlink())
        except OSError:
            continue
        if str(folder).encode() in words + settings or place.startswith(str(folder)):
            found.append(f"{process.name} {words.replace(bytes(1), b' ').decode(errors='replace')[:150]}")
    return found
