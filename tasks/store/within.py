"""The watch of transfers from object storage: none brings more than was stated before."""

from collections.abc import Mapping
from typing import Any

from fsspec.callbacks import Callback

from tasks.bundle.record import BundleError


class Within(Callback):  # type: ignore[misc]
    """Ends the transfer of a file that is longer than its record states, before it fills the disk.

    Raises BundleError.
    """

    def __init__(self, sizes: Mapping[str, int], key: str | None = None) -> None:
        super().__init__()
        self._sizes, self._key = sizes, key

    def branched(self, path_1: str, path_2: str, **_more: Any) -> "Within":
        """Return the watch of one transfer."""
        return Within(self._sizes, path_1)

    def set_size(self, size: int | None) -> None:
        """Check the length that the storage states."""
        self._check(size or 0)

    def relative_update(self, inc: int = 1) -> None:
        """Check what has arrived."""
        self.value += inc
        self._check(self.value)

    def _check(self, size_bytes: int) -> None:
        if self._key is not None and size_bytes > self._sizes[self._key]:
            cause = f"has {size_bytes} bytes or more; its session.json states {self._sizes[self._key]}"
            raise BundleError(f"{self._key}: {cause}; restore it from a backup")
