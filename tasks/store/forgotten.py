"""Sessions left out of all figures, recorded beside the bundles so that a rebuilt warehouse leaves them out too.

A store keeps one small file per `etfarm decisions forget` in its folder `forgotten`. The bundles themselves never
change. The slot of a forgotten session counts as not done: a sweep that is started again measures it under the next
attempt, which has another session id.
"""

import hashlib
from typing import Literal

from pydantic import BaseModel, ValidationError

from devices.untrusted import read_json
from tasks.bundle.record import BundleError

FOLDER = "forgotten"
"""Where a store keeps these records; the id of a sweep ends with its night, so no sweep has this name."""


class Forgotten(BaseModel, extra="forbid", frozen=True):
    """The sessions that one command forgot, and why."""

    version: Literal[1] = 1
    reason: str
    forgotten_at: str
    """ISO 8601, UTC."""
    sessions: dict[str, str]
    """The sweep of each session, by session id."""

    @property
    def file_name(self) -> str:
        """The name of the file, from its content: writing a record twice keeps one."""
        return f"{hashlib.sha256(self.text()).hexdigest()[:16]}.json"

    def text(self) -> bytes:
        """Return the content of the file."""
        return (self.model_dump_json(indent=1) + "\n").encode()


def parse_forgotten(content: bytes, path: str) -> Forgotten:
    """Check the content of a record, which errors call `path`; raises BundleError with one sentence."""
    try:
        return read_json(Forgotten, content)
    except ValidationError as error:
        cause = error.errors()[0]["msg"]
        raise BundleError(
            f"{path}: not a record of forgotten sessions ({cause}); restore the file from a backup"
        ) from None
