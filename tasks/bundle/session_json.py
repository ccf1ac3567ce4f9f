"""Read and write session.json."""

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from devices.untrusted import read_json
from tasks.bundle.claims import CLAIM
from tasks.bundle.record import BundleError, SessionRecord
from tasks.bundle.values import first_mistake

Text = bytes | BundleError
"""The content of a session.json, or why it was refused before parsing."""


def parse_record(content: Text, path: str) -> SessionRecord:
    """Check the content of a session.json, which errors call `path`; raises BundleError with one sentence."""
    if isinstance(content, BundleError):
        raise content
    try:
        return read_json(SessionRecord, content)
    except ValidationError as error:
        if error.errors()[0]["type"] == CLAIM:
            raise BundleError(f"{path}: {first_mistake(error)}; check the runner and measure again") from None
        cause = f"does not match its schema ({first_mistake(error)})"
        raise BundleError(f"{path}: {cause}; restore the bundle from a backup") from None


def parse_records(
    texts: Iterable[tuple[str, Text]], *, device: str | None = None, skip_damaged: bool
) -> Iterator[SessionRecord]:
    """Yield the record of each session.json (path, content), or of those of one device.

    Raises BundleError where one is damaged, unless such ones are skipped.
    """
    for path, content in texts:
        try:
            record = parse_record(content, path)
            if device in (None, record.device.name):
                yield record
        except BundleError:
            if not skip_damaged:
                raise


def record_text(record: SessionRecord) -> bytes:
    return (record.model_dump_json(indent=1) + "\n").encode()
