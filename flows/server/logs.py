"""What the log in Prefect's UI shows: every line of the farm, and of Prefect's engine only errors nobody foresaw."""

import contextlib
import logging
from typing import Any

from devices.untrusted import sanitize

ROOMS = ("flows", "tasks", "devices", "sql")
# About a state that a task or a flow returned: the farm has logged its message (`end_state`), in words.
_REPEATED_TASK = ("Finished in state ", "Task run failed with state: ")
_REPEATED_FLOW = "Engine execution exited with unexpected exception"
_RETURNED = ("FailedRun: ", "TypeError: Unexpected result for failed state: ")


def set_up_shown_log() -> None:
    """Let the farm's lines reach Prefect, which gives its extra loggers a handler but no level.

    Every handler gets them, and Prefect's about its runs, without characters that could act on a terminal.
    """
    if logging.getLogRecordFactory() is not _plain_record:
        logging.setLogRecordFactory(_plain_record)
    for room in ROOMS:
        logging.getLogger(room).setLevel(logging.INFO)
    for name in ("prefect.task_runs", "prefect.flow_runs"):
        logging.getLogger(name).addFilter(_is_news)


def _plain_record(name: str, *args: Any, **fields: Any) -> logging.LogRecord:
    record = logging.LogRecord(name, *args, **fields)
    if name.partition(".")[0] in (*ROOMS, "prefect"):
        with contextlib.suppress(TypeError, ValueError):  # arguments that do not fit: the handler reports them
            record.msg, record.args = sanitize(record.getMessage()), None
        if record.exc_info:
            record.exc_text = sanitize(logging.Formatter().formatException(record.exc_info))
    return record


def _is_news(record: logging.LogRecord) -> bool:
    if record.levelno <= logging.INFO:  # that a run begins, or has ended well
        return False
    text = str(record.msg)
    if text == _REPEATED_FLOW and record.exc_info:
        error = record.exc_info[1]
        return not f"{type(error).__name__}: {error}".startswith(_RETURNED)
    return not text.startswith(_REPEATED_TASK)
