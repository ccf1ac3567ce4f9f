"""The farm's log as JSON, an object per line, if ETFARM_LOG asks for it: `json` on standard error, or else a file.

A worker starts a process for each flow run, so the log is set up by the import of this room, in every process.
"""

import contextlib
import contextvars
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from logging.handlers import WatchedFileHandler
from pathlib import Path
from types import MappingProxyType

_ROOMS = ("flows", "tasks", "devices", "sql")
_FIELDS = ("sweep", "device", "session")
_SECRET_NAME = re.compile(r"NOTIFY|AUTH|PASSWORD|SECRET|TOKEN|API_KEY")
_SHORTEST_SECRET = 6  # shorter values, such as `true`, are words of every log
_PLAIN = logging.Formatter()
# The name and password of a URL.
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@]+@")
_context: contextvars.ContextVar[Mapping[str, str]] = contextvars.ContextVar(
    "log_context", default=MappingProxyType({})
)


@contextlib.contextmanager
def log_context(*, sweep: str | None = None, device: str | None = None, session: str | None = None) -> Iterator[None]:
    """Let every line that is logged in the block, and in the steps that it starts, name what it is about."""
    known = zip(_FIELDS, (sweep, device, session), strict=True)
    token = _context.set({**_context.get()} | {name: value for name, value in known if value is not None})
    try:
        yield
    finally:
        _context.reset(token)


def set_up_json_log() -> None:
    """Add the JSON log to the farm's loggers, if it is wanted and was not added before.

    A file that cannot be written is a warning: no measurement fails because of its log.
    """
    wanted = os.environ.get("ETFARM_LOG")
    if not wanted or any(isinstance(each, _Described) for each in logging.getLogger(_ROOMS[0]).handlers):
        return
    try:
        handler = _Described(wanted)
    except OSError as error:
        way_on = "name a file that can be written, or `json` for standard error"
        sys.stderr.write(f"etfarm: ETFARM_LOG {wanted}: {error.strerror}; {way_on}\n")
        return
    for room in _ROOMS:
        logger = logging.getLogger(room)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)


class _Described(logging.Handler):
    """Writes records as JSON with the context in which they were logged."""

    def __init__(self, wanted: str) -> None:
        super().__init__()
        from pythonjsonlogger.json import JsonFormatter

        # Several processes append to the file; one that logrotate has moved is opened again.
        self._target = logging.StreamHandler() if wanted == "json" else WatchedFileHandler(_made(Path(wanted)))
        self._secrets = _secrets()
        names = {"levelname": "level", "name": "logger"}
        formatter = JsonFormatter(["levelname", "name", "message"], rename_fields=names, timestamp="time")
        self._target.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            described = logging.makeLogRecord({**record.__dict__, **_context.get()})
            described.msg, described.args = self._hidden(record.getMessage()), None
            if record.exc_info:
                described.exc_text = self._hidden(_PLAIN.formatException(record.exc_info))
                described.exc_info = None
            self._target.handle(described)
        except Exception:
            self.handleError(record)

    def _hidden(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return _CREDENTIALS.sub("***@", text)


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _secrets() -> list[str]:
    """Return the values of variables that are secret by their names, and the passwords of `user:password`."""
    values = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    values += [part for value in values for part in re.split(r"[\s,]+", value)]
    values += [value.partition(":")[2] for value in values if "://" not in value]
    return sorted({value for value in values if len(value) >= _SHORTEST_SECRET}, key=len, reverse=True)
