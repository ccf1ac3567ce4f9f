"""What strangers put into a folder of bundles: it is refused in one sentence, at once, and the others are loaded."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.bundle.names import MAX_FILE_BYTES, MAX_RECORD_BYTES
from tasks.load.load import refusals
from tests.fixtures.warehouse import BundleMaker, edit, etdump_of


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


def test_a_link_that_the_user_names_is_followed(maker: BundleMaker, tmp_path: Path) -> None:
    # given a link to an ETDump
    (tmp_path / "a.etdump").write_bytes(etdump_of([(9, {}), (5, {})]))
    (tmp_path / "newest.etdump").symlink_to("a.etdump")
    # when it is the argument of the load, then it is loaded
    assert maker.load(tmp_path / "newest.etdump").loaded == 1
