"""An archive of bundles is read completely or refused, whichever byte of it has changed."""

import random
from pathlib import Path

import pytest

from tasks.bundle.record import BundleError
from tasks.store.archives import archive_path, pack_bundles, packed_records, unpack_bundles, verify_archive
from tests.fixtures.warehouse import BundleMaker

SWEEP = "smoke-2026-01-02"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive of two bundles, with more than a tar reads at once."""
    maker = BundleMaker(tmp_path)
    for index in range(2):
        files = {"output0.bin": random.Random(index).randbytes(40_000)}
        maker.session([1000 + index], repetition=index, files=files, sweep__sweep_id=SWEEP, sweep__night="2026-01-02")
    target = archive_path(tmp_path, SWEEP)
    with target.open("wb") as stream:
        pack_bundles(stream, SWEEP, {path.name: path for path in (maker.bundles / SWEEP).iterdir()})
    return target


def unpacked(archive: Path, folder: Path) -> dict[str, bytes]:
    unpack_bundles(archive, folder, dict(packed_records(archive)))
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_changed_byte_anywhere_is_damage_or_changes_nothing(archive: Path, tmp_path: Path) -> None:
    # given what an archive contains
    content, before = archive.read_bytes(), unpacked(archive, tmp_path / "before")
    assert len(before) > 2
    size_bytes = len(content)
    indices = {*range(64), *range(64, size_bytes, 800), *range(size_bytes - 64, size_bytes)}
    refused = []
    for index in indices:
        # when one of its bytes changes
        archive.write_bytes(content[:index] + bytes([content[index] ^ 0xFF]) + content[index + 1 :])
        # then a check names the damage and nothing is unpacked in silence, or the bundles are the same
        damage = [bundle.damage for bundle in verify_archive(archive, SWEEP) if bundle.damage]
        try:
            assert unpacked(archive, tmp_path / "after") == before
        except BundleError as error:
            refused.append(str(error) in damage)
        else:
            assert not damage
    assert len(refused) > 0.8 * len(indices)
    assert all(refused)
