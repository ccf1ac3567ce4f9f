"""A folder as one file, to carry it between machines: a tar, compressed with zstd, with a checksum."""

import tarfile
from pathlib import Path

from backports import zstd

from devices.errors import FarmError

SUFFIX = ".tar.zst"
_BLOCK_BYTES = 1 << 20


class ArchiveError(FarmError):
    """An archive is damaged; the text is the cause."""


def pack(folder: Path, archive: Path) -> None:
    """Write all files of `folder` to `archive`."""
    options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    with zstd.open(archive, "wb", options=options) as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                tar.add(path, str(path.relative_to(folder)), recursive=False)


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive to `folder`; raises ArchiveError if it is damaged or has entries outside it."""
    try:
        with zstd.open(archive, "rb") as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            tar.extractall(folder, filter="data")
            while stream.read(_BLOCK_BYTES):  # to the end, where a truncated archive shows
                pass
    except (tarfile.TarError, zstd.ZstdError, EOFError) as error:
        raise ArchiveError(f"the archive is damaged ({error})") from None
