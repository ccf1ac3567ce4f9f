"""The log as JSON, one object per line: on standard error if ETFARM_LOG is `json`, otherwise in the file it names.

A worker starts a process for each flow run, so the import of the package `flows` sets the log up in every process.
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

from flows.server.settings import PACKAGES
from flows.terminal import show

_HANDLER = "etfarm json"
_SECRET_NAME = re.compile(r"NOTIFY|AUTH|PASSWORD|SECRET|TOKEN|API_KEY")
_MIN_SECRET_CHARS = 6  # shorter values, such as `true`, are words of every log
# The name and password of a URL.
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")
_context: contextvars.ContextVar[Mapping[str, str]] = contextvars.ContextVar(
    "log_context", default=MappingProxyType({})
)


@contextlib.contextmanager
def log_context(**fields: str) -> Iterator[None]:
    """Add these fields to every line that is logged in the block, and in the steps that it starts."""
    token = _context.set({**_context.get(), **fields})
    try:
        yield
    finally:
        _context.reset(token)


def set_up_json_log() -> None:
    """Add the JSON log to all loggers, once, if ETFARM_LOG is set; a file that cannot be opened is a warning."""
    destination = os.environ.get("ETFARM_LOG")  # not by devices/settings.py: it is read by an import
    if not destination or any(handler.name == _HANDLER for handler in logging.getLogger(PACKAGES[0]).handlers):
        return
    handler: logging.Handler = logging.StreamHandler()
    try:
        if destination != "json":
            Path(destination).parent.mkdir(parents=True, exist_ok=True)
            # Several processes append to the file; one that logrotate has moved is opened again.
            handler = WatchedFileHandler(destination)
    except OSError as error:
        remedy = "name a file that can be written, or `json` for standard error"
        show(f"etfarm: ETFARM_LOG {destination}: {error.strerror}; {remedy}", err=True)
        return
    handler.set_name(_HANDLER)
    handler.setFormatter(_Formatter())
    for package in PACKAGES:
        logging.getLogger(package).addHandler(handler)


class _Formatter(JsonFormatter):
    """Adds the fields of `log_context`, and replaces secrets with `***`."""

    def __init__(self) -> None:
        names = {"levelname": "level", "name": "logger"}
        super().__init__(["levelname", "name", "message"], rename_fields=names, timestamp="time")
        self._secrets = _secrets()

    def process_log_record(self, log_data: LogData) -> LogData:
        fields = {**log_data, **_context.get()}
        for name, value in fields.items():
            if isinstance(value, str):
                for secret in self._secrets:
                    value = value.replace(secret, "***")
                fields[name] = _CREDENTIALS.sub("***@", value)
        return fields


def _secrets() -> list[str]:
    """Return the values of variables with secret names, their parts if they are lists, and passwords after `user:`."""
    values = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    values += [part for value in values for part in re.split(r"[\s,]+", value)]
    values += [value.partition(":")[2] for value in values if "://" not in value]
    # The longest first, since a secret may contain another one.
    return sorted({value for value in values if len(value) >= _MIN_SECRET_CHARS}, key=len, reverse=True)
