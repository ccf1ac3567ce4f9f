"""The farm's log as JSON, an object per line, if ETFARM_LOG asks for it: `json` on standard error, or else a file.

A worker starts a process for each flow run, so the log is set up by the import of this room, in every process.
"""

import contextlib
import contextvars
import logging
import os
import re
from collections.abc import Iterator, Mapping
from logging.handlers import WatchedFileHandler
from pathlib import Path
from types import MappingProxyType

from pythonjsonlogger.core import LogData
from pythonjsonlogger.json import JsonFormatter

from flows.server.settings import ROOMS
from flows.terminal import show

_HANDLER = "etfarm json"
_SECRET_NAME = re.compile(r"NOTIFY|AUTH|PASSWORD|SECRET|TOKEN|API_KEY")
_SHORTEST_SECRET = 6  # shorter values, such as `true`, are words of every log
# The name and password of a URL.
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")
_context: contextvars.ContextVar[Mapping[str, str]] = contextvars.ContextVar(
    "log_context", default=MappingProxyType({})
)


@contextlib.contextmanager
def log_context(**known: str) -> Iterator[None]:
    """Let every line that is logged in the block, and in the steps that it starts, have these fields."""
    token = _context.set({**_context.get(), **known})
    try:
        yield
    finally:
        _context.reset(token)


def set_up_json_log() -> None:
    """Add the JSON log to the farm's loggers, if it is wanted and was not added before.

    A file that cannot be written is a warning: no measurement fails because of its log.
    """
    wanted = os.environ.get("ETFARM_LOG")  # not by devices/settings.py: it is read by an import
    if not wanted or any(handler.name == _HANDLER for handler in logging.getLogger(ROOMS[0]).handlers):
        return
    handler: logging.Handler = logging.StreamHandler()
    try:
        if wanted != "json":
            Path(wanted).parent.mkdir(parents=True, exist_ok=True)
            # Several processes append to the file; one that logrotate has moved is opened again.
            handler = WatchedFileHandler(wanted)
    except OSError as error:
        way_on = "name a file that can be written, or `json` for standard error"
        show(f"etfarm: ETFARM_LOG {wanted}: {error.strerror}; {way_on}", err=True)
        return
    handler.set_name(_HANDLER)
    handler.setFormatter(_Formatter())
    for room in ROOMS:
        logging.getLogger(room).addHandler(handler)


class _Formatter(JsonFormatter):
    """Adds the context in which a record was logged, and hides secrets."""

    def __init__(self) -> None:
        names = {"levelname": "level", "name": "logger"}
        super().__init__(["levelname", "name", "message"], rename_fields=names, timestamp="time")
        self._secrets = _secrets()

    def process_log_record(self, log_data: LogData) -> LogData:
        fields = {**log_data, **_context.get()}
        return {name: self._hidden(value) if isinstance(value, str) else value for name, value in fields.items()}

    def _hidden(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return _CREDENTIALS.sub("***@", text)


def _secrets() -> list[str]:
    """Return the values of variables that are secret by their names, and the passwords of `user:password`."""
    values = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    values += [part for value in values for part in re.split(r"[\s,]+", value)]
    values += [value.partition(":")[2] for value in values if "://" not in value]
    return sorted({value for value in values if len(value) >= _SHORTEST_SECRET}, key=len, reverse=True)
