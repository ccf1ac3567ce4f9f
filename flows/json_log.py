"""The log as JSON, one object per line: on standard error if the setting `log` is `json`, else in the file it names.

A worker starts a process for each flow run, so the import of the package `flows` sets the log up in every process.
"""

import contextlib
import contextvars
import errno
import logging
import os
import re
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path
from types import MappingProxyType

from pythonjsonlogger.core import LogData
from pythonjsonlogger.json import JsonFormatter

from devices.errors import InputError
from devices.settings import settings_as_variables
from flows.server.settings import PACKAGES
from flows.terminal import show

_HANDLER = "etfarm json"
_SECRET_NAME = re.compile(r"NOTIFY|AUTH|PASSWORD|SECRET|TOKEN|API_KEY")
_MIN_SECRET_CHARS = 6  # shorter values, such as `true`, are words of every log
# The name and password of a URL.
CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")
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
    """Add the JSON log to all loggers, once, if `log` is set; a file that cannot be opened is a warning."""
    variables = dict(os.environ)
    with contextlib.suppress(InputError):  # must not end an import; the command or the flow reports it
        variables |= settings_as_variables()
    destination = variables.get("ETFARM_LOG")
    if not destination or any(handler.name == _HANDLER for handler in logging.getLogger(PACKAGES[0]).handlers):
        return
    handler: logging.Handler = logging.StreamHandler()
    try:
        if destination != "json":
            _check_writable(Path(destination))
            handler = _LogFile(destination, delay=True)
    except OSError as error:
        remedy = "name a file that can be written, or `json` for standard error"
        show(f"etfarm: ETFARM_LOG {destination}: {error.strerror}; {remedy}", err=True)
        return
    handler.set_name(_HANDLER)
    handler.setFormatter(_Formatter(_secrets(variables)))
    for package in PACKAGES:
        logging.getLogger(package).addHandler(handler)


class _LogFile(WatchedFileHandler):
    """Creates the file and its folder with the first line, since commands that only look must leave nothing.

    Several processes append to the file; one that logrotate has moved is opened again.
    """

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()


def _check_writable(file: Path) -> None:
    """Raise OSError unless the file can be appended to, or created."""
    if file.exists():
        file.open("ab").close()
        return
    folder = next(each for each in file.absolute().parents if each.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        code = errno.EACCES if folder.is_dir() else errno.ENOTDIR
        raise OSError(code, os.strerror(code))


class _Formatter(JsonFormatter):
    """Adds the fields of `log_context`, and replaces secrets with `***`."""

    def __init__(self, secrets: list[str]) -> None:
        names = {"levelname": "level", "name": "logger"}
        super().__init__(["levelname", "name", "message"], rename_fields=names, timestamp="time")
        self._secrets = secrets

    def process_log_record(self, log_data: LogData) -> LogData:
        fields = {**log_data, **_context.get()}
        for name, value in fields.items():
            if isinstance(value, str):
                for secret in self._secrets:
                    value = value.replace(secret, "***")
                fields[name] = CREDENTIALS.sub("***@", value)
        return fields


def _secrets(variables: Mapping[str, str]) -> list[str]:
    """Return the values of variables with secret names, their parts if they are lists, and passwords after `user:`."""
    values = [value for name, value in variables.items() if _SECRET_NAME.search(name)]
    values += [part for value in values for part in re.split(r"[\s,]+", value)]
    values += [value.partition(":")[2] for value in values if "://" not in value]
    # The longest first, since a secret may contain another one.
    return sorted({value for value in values if len(value) >= _MIN_SECRET_CHARS}, key=len, reverse=True)
