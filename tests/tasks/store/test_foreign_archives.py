"""Archives that strangers made: read in any order and within limits, or refused in one sentence."""

import io
import os
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tasks.bundle.names import MAX_FILE_BYTES, MAX_RECORD_BYTES
from tasks.load.load import refusals
from tasks.maintain.load_archive import load_archives
from tasks.store import archives
from tasks.store.archives import ArchiveError, unpack, zstd
from tests.fixtures.warehouse import BundleMaker, edit, etdump_of

SWEEP = "smoke-2026-11-20"
Entry = tuple[tarfile.TarInfo, bytes]


def entry(name: str, content: bytes = b"", **more: object) -> Entry:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for key, value in more.items():
        setattr(member, key, value)
    return member, content


def archive_with(path: Path, entries: Iterable[Entry]) -> Path:
    with zstd.open(path, "wb") as stream:
        for member, content in entries:
            stream.write(member.tobuf(tarfile.GNU_FORMAT))
            stream.write(content + bytes(-len(content) % 512))
        stream.write(bytes(1024))
    return path


def entries_of(folder: Path) -> list[Entry]:
    return [entry(f"{SWEEP}/{folder.name}/{path.name}", path.read_bytes()) for path in sorted(folder.iterdir())]


@pytest.fixture
def archived(maker: BundleMaker, tmp_path: Path) -> list[Entry]:
    """The entries of an archive of two bundles, each session.json behind its other files."""
    folders = [maker.session([100], repetition=index) for index in range(2)]
    return [each for folder in folders for each in entries_of(folder)]


def refusal(maker: BundleMaker, archive: Path) -> str:
    result = load_archives([archive], maker.warehouse, ())
    [(path, sentence)] = result.refused
    assert (path, result.loaded) == (archive, 0)
    assert "\n" not in sentence
    assert sentence.startswith(str(archive))
    return sentence


@pytest.mark.parametrize("order", [sorted, lambda names: sorted(names, reverse=True)], ids=["sorted", "reversed"])
def test_an_archive_in_any_order_with_folders_and_a_leading_dot_is_loaded(
    maker: BundleMaker, archived: list[Entry], tmp_path: Path, order: Callable[[list[str]], list[str]]
) -> None:
    # given an archive as tar makes it of a folder: in the order of that, with entries for the folders
    by_name = {member.name: (member, content) for member, content in archived}
    entries = [entry("./", type=tarfile.DIRTYPE), *(by_name[name] for name in order(list(by_name)))]
    entries.append(entry(f"{entries[1][0].name.rpartition('/')[0]}/more.txt", b"in no record"))
    for member, _ in entries[1:]:
        member.name = f"./{member.name}"
    # then all bundles are loaded, without the file that no record lists
    result = load_archives([archive_with(tmp_path / "a.tar.zst", entries)], maker.warehouse, ())
    assert (result.loaded, result.refused) == (2, [])
    assert not list(tmp_path.rglob("more.txt"))


ENTRIES: dict[str, tuple[Entry, str]] = {
    "a huge record": (entry(f"{SWEEP}/{'a' * 16}/session.json", size=8 << 30), f"the limit is {MAX_RECORD_BYTES}"),
    "a huge file in no record": (entry(f"{SWEEP}/{'a' * 16}/x", size=6 << 30), f"the limit is {MAX_FILE_BYTES}"),
    "a way out": (entry("../../etc/x", b"1"), "unexpected entry ../../etc/x"),
    "a parent as session": (entry(f"{SWEEP}/../x", b"1"), "unexpected entry"),
    "an absolute name": (entry(f"/{SWEEP}/x", b"1"), "unexpected entry"),
    "a deep name": (entry(f"{SWEEP}/a/b/c", b"1"), "unexpected entry"),
    "a link": (entry(f"{SWEEP}/a/x", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "unexpected entry"),
    "a hard link": (entry(f"{SWEEP}/a/x", type=tarfile.LNKTYPE, linkname=f"{SWEEP}/a/y"), "unexpected entry"),
    "a device": (entry(f"{SWEEP}/a/x", type=tarfile.CHRTYPE), "unexpected entry"),
    "a pipe": (entry(f"{SWEEP}/a/x", type=tarfile.FIFOTYPE), "unexpected entry"),
    "a file of holes": (entry(f"{SWEEP}/a/x", type=tarfile.GNUTYPE_SPARSE), "unexpected entry"),
    "a long name": (entry("x", b"n" * 100_000, type=tarfile.GNUTYPE_LONGNAME), "entry has 100000 bytes"),
    "an endless description": (entry("x", size=8 << 30, type=tarfile.XHDTYPE), f"entry has {8 << 30} bytes"),
}


@pytest.mark.fault
def test_archives_with_such_an_entry_are_refused(maker: BundleMaker, archived: list[Entry], tmp_path: Path) -> None:
    # given archives with such an entry behind two bundles
    causes = {
        archive_with(tmp_path / f"{kind}.tar.zst", [*archived, bad]): cause for kind, (bad, cause) in ENTRIES.items()
    }
    # then nothing of them is loaded, and a sentence for each names the entry's fault
    result = load_archives(causes, maker.warehouse, ())
    refused = dict(result.refused)
    assert (result.loaded, refused.keys()) == (0, causes.keys())
    for archive, cause in causes.items():
        assert refused[archive].startswith(str(archive))
        assert cause in refused[archive]


@pytest.mark.fault
@pytest.mark.parametrize("kind", ["a way out", "an absolute name", "a link", "a hard link", "a device", "a pipe"])
def test_a_folder_is_not_unpacked_from_an_archive_with_such_an_entry(tmp_path: Path, kind: str) -> None:
    bad, cause = ENTRIES[kind]
    archive = archive_with(tmp_path / "a.tar.zst", [bad])
    with pytest.raises(ArchiveError, match=cause):
        unpack(archive, tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == [archive]


def test_a_program_stays_executable_in_an_archive(tmp_path: Path) -> None:
    members = [entry("bin/runner", b"1", mode=0o4755), entry("model.pte", b"2", mode=0o600)]
    unpack(archive_with(tmp_path / "a.tar.zst", members), tmp_path / "to")
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "to").rglob("*") if path.is_file()}
    assert modes == {"runner": 0o755, "model.pte": 0o644}


def test_nested_descriptions_are_damage(maker: BundleMaker, tmp_path: Path) -> None:
    description = b"30 comment=" + b"x" * 18 + b"\n"
    entries = [entry("x", description, type=tarfile.XHDTYPE) for _ in range(5000)]
    assert "(the headers of an entry are nested)" in refusal(maker, archive_with(tmp_path / "a.tar.zst", entries))


@pytest.mark.fault
def test_an_archive_that_expands_without_end_is_refused(
    maker: BundleMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_MIN_LIMITED_BYTES", 100_000_000)
    # given a small archive of 200 MB of zeros
    member = entry(f"{SWEEP}/{'a' * 16}/x", size=200_000_000)[0]
    archive = tmp_path / "a.tar.zst"
    with zstd.open(archive, "wb") as stream:
        stream.write(member.tobuf())
        for _ in range(200):
            stream.write(bytes(1_000_000))
    assert archive.stat().st_size < 200_000
    assert "(it expands to more than 1000 times its size)" in refusal(maker, archive)


@pytest.mark.parametrize("is_first", [False, True], ids=["both", "one"])
def test_an_archive_that_only_claims_to_be_the_farms_is_refused(
    maker: BundleMaker, archived: list[Entry], tmp_path: Path, is_first: bool
) -> None:
    # given a stranger's archive with the farm's header, and the session.json of one or both bundles behind other files
    *_, last = (member.name for member, _ in archived if member.name.endswith("/session.json"))
    archived.sort(key=lambda each: not (is_first and each[0].name == last))
    target = io.BytesIO()
    comment = {"comment": "every session.json is before the other files"}
    with tarfile.open(fileobj=target, mode="w", pax_headers=comment) as tar:
        for member, content in archived:
            tar.addfile(member, io.BytesIO(content))
    (archive := tmp_path / "a.tar.zst").write_bytes(zstd.compress(target.getvalue()))
    # then none of it is loaded, rather than what its beginning shows
    assert "is not before the other files" in refusal(maker, archive)


def holes(path: Path, size_bytes: int) -> None:
    with path.open("wb") as stream:
        stream.truncate(size_bytes)


NOT_REGULAR: dict[str, Callable[[Path], object]] = {
    "pipe": lambda path: os.mkfifo(path),
    "link to an endless device": lambda path: path.symlink_to("/dev/zero"),
    "link to a file of this machine": lambda path: path.symlink_to("/etc/passwd"),
    "link to itself": lambda path: path.symlink_to(path),
    "folder": lambda path: path.mkdir(),
}


@pytest.mark.fault
def test_what_is_not_a_regular_file_is_refused_and_the_others_are_loaded(maker: BundleMaker) -> None:
    # given a sound bundle and a sound loose ETDump, and others with something else in the place of a file
    maker.session([100])
    loose = maker.bundles / "loose"
    loose.mkdir(parents=True)
    (loose / "good.etdump").write_bytes(etdump_of([(9, {}), (5, {})]))
    bad = []
    for kind, replace in NOT_REGULAR.items():
        for name in ("session.json", "model.etdump"):
            folder = maker.session([200])
            (folder / name).unlink()
            replace(folder / name)
            bad.append(folder)
        if kind in ("pipe", "link to an endless device", "link to a file of this machine"):
            replace(loose / f"{kind}.etdump")
            bad.append(loose / f"{kind}.etdump")
    # when all are loaded
    result = maker.load()
    # then only the sound ones are, and a sentence names each of the others
    assert (result.loaded, sorted(path for path, _ in result.refused)) == (2, sorted(bad))
    for path, sentence in result.refused:
        assert sentence.startswith(str(path))
        assert any(cause in sentence for cause in ("is not a regular file", "is a link", "is missing")), sentence


@pytest.mark.fault
def test_records_beyond_a_limit_or_with_another_kind_of_hash_are_refused(maker: BundleMaker) -> None:
    # given files of holes, which need no space
    causes = {}
    for name, limit in (("session.json", MAX_RECORD_BYTES), ("model.etdump", MAX_FILE_BYTES)):
        folder = maker.session([200])
        holes(folder / name, 30 << 30)
        causes[folder] = f"{name}: has {30 << 30} bytes; the limit is {limit}"
    # and records that state a file above the limit, or a hash that is none
    hashes = ["../../../../etc/passwd", "0" * 63, "0" * 65, "G" * 64, ""]
    files: list[dict[str, Any]] = [{"sha256": "0" * 64, "bytes": MAX_FILE_BYTES + 1}]
    files += [{"sha256": sha256, "bytes": 1} for sha256 in hashes]
    for file in files:
        folder = maker.session([200])
        edit(folder, files={"model.etdump": file})
        causes[folder] = f"`files.model.etdump.{'bytes' if file['bytes'] > 1 else 'sha256'}`"
    # then each is refused
    refused = dict(refusals([maker.bundles], lambda _: set()))
    assert refused.keys() == causes.keys()
    assert [folder for folder, cause in causes.items() if cause not in refused[folder]] == []
