"""Files, JSON and text that others wrote: they are checked and limited here before any other module uses them.

A pipe or a device would be read without end, a sparse file fills the memory, and a link leads to files of this
machine. Text can act on a terminal, and parsers differ in which value they keep of a duplicate key.
"""

import errno
import io
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from devices.errors import FarmError, FileRefused, TransferFailed

if TYPE_CHECKING:
    from pydantic import BaseModel  # slow to import, and the command line needs only texts

Model = TypeVar("Model", bound="BaseModel")

# Control characters except tab and newline (escape sequences begin with one), bidirectional control characters,
# other line ends, and surrogates, which stand for bytes of a file's name that are not UTF-8.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_LINE_BREAKS = re.compile("[\t-\r\x1c-\x1f\x85\u2028\u2029]")
_CREDENTIALS = re.compile(r"[^\s:/@]*:.*@", re.DOTALL)
_MAX_VALUE_CHARS = 40
_BLOCK_BYTES = 1 << 20
_NOT_REGULAR = errno.EOPNOTSUPP
_CAUSES = {errno.ELOOP: "is a link; copy the file in its place", _NOT_REGULAR: "is not a regular file; move it away"}


def sanitize(text: object) -> str:
    """Replace every character that could act (not tab or newline) with U+FFFD; all scripts and emoji stay."""
    return _ACTING.sub("\ufffd", str(text))


def sanitize_line(text: object) -> str:
    """Sanitize a text and return it on one line: tabs and line ends become blanks."""
    return sanitize(_LINE_BREAKS.sub(" ", str(text)))


def sanitize_data(value: Any) -> Any:
    """Sanitize every text in a value of JSON, keys included."""
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, Mapping):
        return {sanitize_data(name): sanitize_data(each) for name, each in value.items()}
    return [sanitize_data(each) for each in value] if isinstance(value, (list, tuple)) else value


def excerpt(text: str, max_chars: int = 300) -> str:
    """Return text from a file or a device as a part of a sentence: sanitized, on one line, cut if it is long."""
    line = sanitize(" ".join(text[: 4 * max_chars].split()))
    return line if len(line) <= max_chars else f"{line[:max_chars]}..."


def mask_credentials(text: str) -> str:
    """Mask the name and password of a text that was meant as a URL; one that is wrong may have another scheme or none.

    A password may contain what ends one in a URL, so all up to the last @ counts as one.
    """
    return _CREDENTIALS.sub("***@", text)


def parse_json(content: str | bytes) -> Any:
    """Return the value of a JSON text; raises ValueError, also for a duplicate key, or RecursionError."""
    return json.loads(content, object_pairs_hook=_distinct_keys)


def read_json(model: type[Model], content: str | bytes, *, context: dict[str, Any] | None = None) -> Model:
    """Return a JSON text as a model; raises ValidationError, also for a duplicate key."""
    from pydantic import ValidationError
    from pydantic_core import PydanticCustomError

    parsed = model.model_validate_json(content, context=context)
    try:
        parse_json(content)
    except (ValueError, RecursionError) as error:
        mistake = PydanticCustomError("json", "{cause}", {"cause": excerpt(str(error))})
        raise ValidationError.from_exception_data(model.__name__, [{"type": mistake, "input": None}]) from None
    return parsed


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these keys and values; raises ValueError if a key is duplicate."""
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            values = " and ".join(excerpt(json.dumps(each), _MAX_VALUE_CHARS) for each in (seen[key], value))
            raise ValueError(f"duplicate key `{excerpt(key, _MAX_VALUE_CHARS)}`, with {values}")
        seen[key] = value
    return seen


class UntrustedFileError(FarmError):
    """A file is missing, cannot be read, or is not a regular file of at most its limit; the text is one sentence."""

    def __init__(self, text: str, *, is_missing: bool = False) -> None:
        super().__init__(text)
        self.is_missing = is_missing


@contextmanager
def open_untrusted(path: Path, max_bytes: int, folder: int | None = None) -> Iterator[io.BufferedReader]:
    """Open a regular file of at most `max_bytes`, relative to an open `folder`; raises UntrustedFileError.

    A link is refused, since it can lead out of the folder; a pipe is not waited for.
    """

    def open_regular(path: str, flags: int) -> int:
        # Opening a pipe would otherwise wait for somebody who writes to it.
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(_NOT_REGULAR, os.strerror(_NOT_REGULAR))
        return descriptor

    try:
        with open(path, "rb", opener=open_regular) as stream:
            size_bytes = os.fstat(stream.fileno()).st_size
            if size_bytes > max_bytes:
                raise UntrustedFileError(f"{path}: has {size_bytes} bytes; the limit is {max_bytes}")
            yield stream
    except OSError as error:
        raise UntrustedFileError(
            f"{path}: {_CAUSES.get(error.errno or 0, f'cannot be read ({error.strerror})')}",
            is_missing=isinstance(error, FileNotFoundError),
        ) from None


def read_untrusted(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file of at most `max_bytes`; raises UntrustedFileError."""
    return b"".join(_blocks(path, max_bytes))


def hash_untrusted(path: Path, max_bytes: int) -> str:
    """Return the SHA-256 of a regular file of at most `max_bytes`; raises UntrustedFileError."""
    import hashlib  # slow to import, and the command line needs only texts

    digest = hashlib.sha256()
    for block in _blocks(path, max_bytes):
        digest.update(block)
    return digest.hexdigest()


def _blocks(path: Path, max_bytes: int) -> Iterator[bytes]:
    """Yield the content of a file; raises UntrustedFileError, also if it grows beyond the limit after it was opened."""
    left_bytes = max_bytes
    with open_untrusted(path, max_bytes) as stream:
        while block := stream.read(_BLOCK_BYTES):
            left_bytes -= len(block)
            if left_bytes < 0:
                raise UntrustedFileError(f"{path}: has more than {max_bytes} bytes, which is the limit")
            yield block


def read_local(name: str, local: Path, block_bytes: int) -> Iterator[bytes]:
    """Yield the content of a file of this machine for the device `name`; raises TransferFailed if it is unreadable."""
    try:
        with local.open("rb") as stream:
            while block := stream.read(block_bytes):
                yield block
    except OSError as error:
        raise TransferFailed(name, f"cannot read the local file {local} ({error.strerror})") from None


def check_fetchable(name: str, remote: str, mode: int, size_bytes: int, limit_bytes: int) -> None:
    """Raise FileRefused unless a file's mode and size, as the device `name` reports them, allow fetching it.

    A link is not followed: it can name an endless file, or one that does not belong to the farm.
    """
    if not stat.S_ISREG(mode):
        raise FileRefused(name, f"{remote} is not a regular file", "write a file there, not a link or a folder")
    if size_bytes > limit_bytes:
        raise FileRefused(name, f"{remote} has {size_bytes} bytes; the limit is {limit_bytes}")


def save_fetched(name: str, remote: str, chunks: Iterable[bytes], local: Path, limit_bytes: int) -> None:
    """Write the content of a device's file to `local`, which is then complete, or untouched after an error.

    Raises FileRefused when more than `limit_bytes` arrive, even if the device reported a smaller size, and
    TransferFailed if `local` cannot be written.
    """
    part = local.with_name(f".{os.urandom(16).hex()}.part")
    received = 0
    try:
        with _local_errors(name, local):
            local.parent.mkdir(parents=True, exist_ok=True)
            target = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(target, "wb", buffering=0) as stream:
            for chunk in chunks:
                received += len(chunk)
                if received > limit_bytes:
                    raise FileRefused(name, f"{remote} has more than {limit_bytes} bytes, which is the limit")
                with _local_errors(name, local):
                    stream.write(chunk)
        with _local_errors(name, local):
            part.replace(local)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def _local_errors(name: str, local: Path) -> Iterator[None]:
    """Raise an OSError inside the block, which writes `local`, as TransferFailed."""
    try:
        yield
    except OSError as error:
        raise TransferFailed(name, f"cannot write {local} ({error.strerror})") from None
