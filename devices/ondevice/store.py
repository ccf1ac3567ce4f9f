"""A content-addressed store of files on a device: pushed once, verified on the device, shared by all controllers.

`<root>/blobs/<sha256>` is a file, `<root>/trees/<sha256>/` a folder. Both get their final name by a rename after
their hashes were verified on the device. They are verified again before every use: `<root>/verified/<sha256>` contains
the hashes with inodes, sizes and times, so files are read only if they may have changed. Modification times on the
device record the last use; `prune` removes the least recently used entries.
"""

import hashlib
import os
import re
import shlex
import tarfile
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from devices import retry
from devices.device import Device
from devices.errors import DeviceError, DeviceLost, FileChanged, TransferFailed
from devices.shell import remove_path, run_script, unexpected_output
from devices.untrusted import read_local

# Entries used within this time may belong to a sweep that is still running.
SPARE_MINUTES = 60


@dataclass(frozen=True)
class StoredEntry:
    """One blob, tree or unfinished upload: its path under the root, its size, and whether it was unused recently."""

    path: str
    size_bytes: int
    is_idle: bool


@dataclass(frozen=True)
class Content:
    """A local file with its hash, or a folder of files (relative name -> local file) with its hash as in `put_tree`."""

    sha256: str
    local: Path | Mapping[str, Path]

    @property
    def stored_path(self) -> str:
        """Path in the store, under the root."""
        return f"blobs/{self.sha256}" if isinstance(self.local, Path) else f"trees/{self.sha256}"

    @property
    def paths(self) -> list[str]:
        """Paths of its files in the store, under the root."""
        return (
            [self.stored_path]
            if isinstance(self.local, Path)
            else [f"{self.stored_path}/{name}" for name in self.local]
        )


def blob_path(device: Device, sha256: str) -> str:
    return f"{device.root}/blobs/{checked_hash(device, sha256)}"


def tree_path(device: Device, tree_sha256: str) -> str:
    return f"{device.root}/trees/{checked_hash(device, tree_sha256)}"


def put(device: Device, local: Path, sha256: str) -> str:
    """Push a file into the store and return its remote path; one round trip if it is already there.

    The device hashes what arrived; the local file is hashed only if that differs. Raises FileChanged if the local file
    has another hash, TransferFailed if only the file that arrived has. Prunes the store if a file was pushed.
    """
    final = blob_path(device, sha256)
    if _hash_and_mark(device, final, [final]) == [sha256]:
        return final
    part = f"{device.root}/incoming/{sha256}-{uuid.uuid4().hex[:8]}"
    device.upload(local, part)
    words = [part, final, sha256, f"{device.root}/{_guard_path(final)}"]
    arrived = run_script(device, "store_publish_file", *words, policy=retry.TRANSFER).strip()
    if arrived != sha256:
        got = _sha256(device, local)
        if got != sha256:
            cause = f"{local} has the hash {got[:16]} instead of {sha256[:16]}: it was changed after it was published"
            raise FileChanged(device.name, cause, "remove its folder and export the model again")
        raise TransferFailed(
            device.name, f"{local} arrived with hash {arrived[:16]} instead of {sha256[:16]}", "push it again"
        )
    _prune_to_limit(device)
    return final


def put_tree(device: Device, files: Mapping[str, Path], tree_sha256: str) -> str:
    """Push a folder of files (relative name -> local file) into the store and return its remote path.

    `tree_sha256` is the hash of the lines `NAME HASH`, one for each file in their order. Raises FileChanged if the
    local files do not have it, TransferFailed if a file arrives changed or a name leads out of the folder. All files
    are executable on the device. One round trip if the folder is already there; otherwise the store is pruned.
    """
    final = tree_path(device, tree_sha256)
    for name in files:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise TransferFailed(device.name, f"the name {name!r} leads out of the folder", "use a relative name")
    relative = [f"./{name}" for name in files]
    if _tree_sha256(files, _hash_and_mark(device, final, relative)) == tree_sha256:
        return final
    hashes = [_sha256(device, local) for local in files.values()]
    if _tree_sha256(files, hashes) != tree_sha256:
        folder = next(iter(files.values())).parent if files else "."
        cause = f"the files in {folder} do not have the hash {tree_sha256[:16]}: one was changed after it was published"
        raise FileChanged(device.name, cause, "remove that folder and build or register the runner again")
    part = f"{device.root}/incoming/{tree_sha256}-{uuid.uuid4().hex[:8]}"
    try:
        _send_tree(device, files, part, hashes)
        run_script(device, "store_publish_tree", part, final)
    except DeviceLost:
        raise  # a later prune removes what is left in incoming/
    except DeviceError:
        remove(device, part)
        raise
    _prune_to_limit(device)
    return final


def push(device: Device, content: Content) -> str:
    """Put a file or a folder into the store; see `put` and `put_tree`."""
    if isinstance(content.local, Path):
        return put(device, content.local, content.sha256)
    return put_tree(device, content.local, content.sha256)


def verified_states(contents: Iterable[Content], printed: str) -> list[str] | None:
    """Return the states of the files if every content is in the store as its hash states; else None.

    `printed` is what job_prepare.sh printed of the store. A content is in it if it was marked as used recently (`push`
    marks it), if the state of each file (inode, size, times) is the one that was recorded when its hash was verified,
    and if the recorded hash is that of the content.
    """
    fresh, _, rest = printed.removeprefix("%fresh\n").partition("%state\n")
    all_states, verified = (part.splitlines() for part in rest.partition("%verified\n")[::2])
    states = all_states
    for content in contents:
        count = len(content.paths)
        current, states = states[:count], states[count:]
        # For a content of n files: n lines of states, then n of hashes, the first one after `=`.
        recorded, hash_lines, verified = verified[:count], verified[count : 2 * count], verified[2 * count :]
        is_unchanged = current == recorded and len(hash_lines) == count and hash_lines[0].startswith("=")
        if content.stored_path not in fresh.splitlines() or not is_unchanged:
            return None
        hashes = _hash_column("\n".join(hash_lines)[1:])
        if content.sha256 != (hashes[0] if isinstance(content.local, Path) else _tree_sha256(content.local, hashes)):
            return None
    return None if states or verified else all_states


def stored_hashes(device: Device, *, deadline_s: float) -> set[str]:
    """Return the hashes of the files and folders in the store, by their names; their contents are not read."""
    folders = [f"{device.root}/{name}" for name in ("blobs", "trees")]
    listing = device.run(["ls", *folders], deadline_s=deadline_s).stdout.decode(errors="replace")
    return {line for line in listing.splitlines() if re.fullmatch("[0-9a-f]{64}", line)}


def remove(device: Device, remote: str) -> None:
    """Delete a file or folder; a missing one is ignored. Raises DeviceError if it is not inside the device's root."""
    inside = PurePosixPath(remote)
    if ".." in inside.parts or PurePosixPath(device.root) not in inside.parents:
        raise DeviceError(device.name, f"{remote} is not inside {device.root} and was not removed")
    remove_path(device, remote, policy=retry.TRANSFER)


def prune(device: Device, limit_bytes: int) -> list[str]:
    """Shrink the store to `limit_bytes`, least recently used first; return the removed paths (under root).

    Entries used within the last hour are kept, so it may stay larger.
    """
    listing = run_script(device, "store_list", device.root, str(SPARE_MINUTES), policy=retry.TRANSFER)
    entries = []
    for line in listing.splitlines():
        if not (entry := re.fullmatch(r"([0-9]{1,15}) (idle)?:(\S+)", line)):
            raise unexpected_output(device, "store_list", line)
        entries.append(StoredEntry(entry[3], int(entry[1]) * 1024, bool(entry[2])))
    removed = surplus(entries, limit_bytes)
    for start in range(0, len(removed), 50):  # adb accepts command lines of up to 30 KB
        batch = [f"{device.root}/{path}" for path in removed[start : start + 50]]
        guards = [f"{device.root}/{_guard_path(path)}" for path in batch]
        remove_path(device, *batch, *guards, policy=retry.TRANSFER)
    return removed


def _prune_to_limit(device: Device) -> None:
    """Prune the store to `store_limit_bytes`, if the device has such a limit."""
    if device.store_limit_bytes is not None:
        prune(device, device.store_limit_bytes)


def surplus(entries: list[StoredEntry], limit_bytes: int) -> list[str]:
    """Return the paths of `entries` (least recently used first) to remove until the rest is within `limit_bytes`.

    Idle unfinished uploads are always removed, and first. Entries that are not idle stay, so the rest may be larger.
    """
    uploads = [entry for entry in entries if entry.is_idle and entry.path.startswith("incoming/")]
    left_bytes = sum(entry.size_bytes for entry in entries) - sum(entry.size_bytes for entry in uploads)
    removed = [entry.path for entry in uploads]
    for entry in entries:
        if entry.is_idle and entry not in uploads and left_bytes > limit_bytes:
            removed.append(entry.path)
            left_bytes -= entry.size_bytes
    return removed


def _guard_path(path: str) -> str:
    """Return the path, under the root, of the file with the hashes of a path in the store."""
    return f"verified/{PurePosixPath(path).name}"


def _hash_and_mark(device: Device, path: str, names: list[str]) -> list[str]:
    """Return the verified hashes of the files of the store's entry `path`, in order, and mark the entry as used.

    Empty if a file is missing or changes meanwhile. `names` are relative to a tree; a blob is its own only name.
    """
    guard = f"{device.root}/{_guard_path(path)}"
    lines = run_script(device, "store_hashes", path, guard, *names, policy=retry.TRANSFER)
    return [] if lines.strip() == "no" else _hash_column(lines)


def _hash_column(listing: str) -> list[str]:
    """Return the hash in each line that sha256sum printed."""
    # A name with a backslash or a line feed makes sha256sum escape its line with a leading backslash.
    return [line.lstrip("\\").split(" ", 1)[0] for line in listing.splitlines()]


def _tree_sha256(names: Iterable[str], hashes: list[str]) -> str:
    lines = "".join(f"{name} {sha256}\n" for name, sha256 in zip(names, hashes, strict=False))
    return hashlib.sha256(lines.encode()).hexdigest()


def _send_tree(device: Device, files: Mapping[str, Path], part: str, hashes: list[str]) -> None:
    """Upload the files as a tar and unpack it to the folder `part`; TransferFailed unless all arrive with `hashes`."""
    with tempfile.TemporaryDirectory(prefix=f"etfarm-tree-{os.getpid()}-") as folder:
        packed = Path(folder) / "tree.tar"
        with tarfile.open(packed, "w", format=tarfile.GNU_FORMAT) as archive:
            for name in files:
                archive.add(files[name].resolve(), name, recursive=False, filter=_make_executable)
        device.upload(packed, f"{part}.tar")
    relative = [f"./{name}" for name in files]
    listing = run_script(device, "store_unpack", f"{part}.tar", part, *relative, policy=retry.TRANSFER)
    arrived = _hash_column(listing)
    for name, got, expected in zip(files, arrived, hashes, strict=False):
        if got != expected:
            raise TransferFailed(device.name, f"{name} arrived with hash {got[:16]}", "push it again")
    if len(arrived) != len(files):
        raise TransferFailed(device.name, f"only {len(arrived)} of {len(files)} files arrived", "push them again")


def _make_executable(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the owner of a member and make it executable: a tree is a program and its libraries."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755
    return member


def _sha256(device: Device, local: Path) -> str:
    digest = hashlib.sha256()
    for block in read_local(device.name, local, 1 << 20):
        digest.update(block)
    return digest.hexdigest()


def checked_hash(device: Device, sha256: str) -> str:
    """Return a hash that is part of a path on the device; DeviceError unless it has 16 to 64 hexadecimal digits."""
    if not re.fullmatch("[0-9a-f]{16,64}", sha256):
        raise DeviceError(device.name, f"{shlex.quote(sha256)} is not a hash in lower-case hexadecimal digits")
    return sha256
