"""What strangers put into a folder of bundles: it is refused in one sentence, at once, and the others are loaded."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.bundle.names import MOST_FILE_BYTES, MOST_RECORD_BYTES
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
@pytest.mark.parametrize("name", ["session.json", "model.etdump"])
@pytest.mark.parametrize("kind", NOT_REGULAR)
def test_a_bundle_with_a_file_that_is_not_regular_is_refused_and_the_others_are_loaded(
    maker: BundleMaker, kind: str, name: str
) -> None:
    # given a sound bundle and one in which something else is in the place of a file
    maker.session([100])
    bad = maker.session([200])
    (bad / name).unlink()
    NOT_REGULAR[kind](bad / name)
    # when both are loaded
    result = maker.load()
    # then only the sound one is, and the sentence names the other
    [(path, sentence)] = result.refused
    assert (path, result.loaded) == (bad, 1)
    assert sentence.startswith(str(bad))
    assert any(cause in sentence for cause in ("is not a regular file", "is a link", "is missing"))


@pytest.mark.fault
@pytest.mark.parametrize(("name", "most"), [("session.json", MOST_RECORD_BYTES), ("model.etdump", MOST_FILE_BYTES)])
def test_a_bundle_with_a_file_of_holes_is_refused(maker: BundleMaker, name: str, most: int) -> None:
    bad = maker.session([200])
    holes(bad / name, 30 << 30)
    [(_, sentence)] = maker.load().refused
    assert sentence == f"{bad / name}: has {30 << 30} bytes; the limit is {most}"


def test_a_bundle_that_states_more_than_the_limit_is_refused(maker: BundleMaker) -> None:
    bad = maker.session([200])
    edit(bad, files={"model.etdump": {"sha256": "0" * 64, "bytes": MOST_FILE_BYTES + 1}})
    [(_, sentence)] = maker.load().refused
    assert f"`files.model.etdump.bytes`: Input should be less than or equal to {MOST_FILE_BYTES}" in sentence


@pytest.mark.parametrize("sha256", ["../../../../etc/passwd", "0" * 63, "0" * 65, "G" * 64, ""])
def test_a_hash_that_is_none_is_refused_where_the_record_is_parsed(maker: BundleMaker, sha256: str) -> None:
    bad = maker.session([200])
    edit(bad, files={"model.etdump": {"sha256": sha256, "bytes": 1}})
    [(_, sentence)] = maker.load().refused
    assert "`files.model.etdump.sha256`" in sentence


@pytest.mark.parametrize("kind", ["pipe", "link to an endless device", "link to a file of this machine"])
def test_a_loose_etdump_that_is_not_a_regular_file_is_refused(maker: BundleMaker, kind: str) -> None:
    # given a link, a pipe or a device among loose ETDumps
    loose = maker.bundles / "loose"
    loose.mkdir(parents=True)
    (loose / "good.etdump").write_bytes(etdump_of([(9, {}), (5, {})]))
    NOT_REGULAR[kind](loose / "bad.etdump")
    # then only the ETDump is loaded
    result = maker.load()
    [(path, sentence)] = result.refused
    assert (path.name, result.loaded) == ("bad.etdump", 1)
    assert "is not a regular file" in sentence or "is a link" in sentence


def test_a_link_that_the_user_names_is_followed(maker: BundleMaker, tmp_path: Path) -> None:
    # given a link to an ETDump
    (tmp_path / "a.etdump").write_bytes(etdump_of([(9, {}), (5, {})]))
    (tmp_path / "newest.etdump").symlink_to("a.etdump")
    # when it is the argument of the load, then it is loaded
    assert maker.load(tmp_path / "newest.etdump").loaded == 1
