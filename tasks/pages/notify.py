"""Send a message to where a team reads (chat, mail, a webhook), through apprise.

The services are notified by a process of their own, so neither apprise nor what it uses can print or log a URL, which
contains the service's secret. It gets the URLs on standard input, because `ps` shows arguments.
"""

import contextlib
import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from devices.untrusted import sanitize, sanitize_line

if TYPE_CHECKING:
    from apprise import NotifyBase

DEADLINE_S = 10
_LONGEST_START_S = 120  # of the process on a busy machine, before it sends
# Between two URLs; a comma inside of one, such as in a list of recipients, separates nothing.
_SEPARATOR = re.compile(r"[\s,]+(?=[A-Za-z0-9]+://)")
_SCHEME = re.compile(r"([A-Za-z0-9]+)://")
_SILENT = f"no answer within {DEADLINE_S} s; check that this machine reaches the service"
_NOT_STARTED = "its process could not be started; free memory on this machine"


@dataclass(frozen=True)
class Message:
    """Plain text for people; services that show colours show `is_bad` as one."""

    title: str
    body: str
    is_bad: bool


def send(urls: str, message: Message) -> list[str]:
    """Send a message to each of apprise's URLs in `urls`, which are separated by whitespace or commas.

    Returns a sentence for each service that did not accept it, which names the service by the scheme of its URL only.
    """
    entries = urls_of(urls)
    causes = _causes_of_failure(entries, Message(sanitize_line(message.title), sanitize(message.body), message.is_bad))
    return [
        f"notification to {_name_of(url, place)} not sent: {cause}"
        for place, (url, cause) in enumerate(zip(entries, causes, strict=True), start=1)
        if cause is not None
    ]


def urls_of(urls: str) -> list[str]:
    """Return apprise's URLs in `urls`, which are separated by whitespace or commas."""
    return _SEPARATOR.split(urls.strip()) if urls.strip() else []


def _name_of(url: str, place: int) -> str:
    scheme = _SCHEME.match(url)
    return f"`{scheme[1].lower()}`" if scheme else f"entry {place} of ETFARM_NOTIFY"


def _causes_of_failure(urls: list[str], message: Message) -> list[str | None]:
    """Return for each service why it did not accept the message and what to do; None if it did."""
    try:
        ended = subprocess.run(
            [sys.executable, "-P", __file__],
            input=json.dumps({"urls": urls, "message": asdict(message)}),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=_LONGEST_START_S + DEADLINE_S,
            check=True,
        )
        causes: list[str | None] = json.loads(ended.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return [_NOT_STARTED] * len(urls)
    return causes


def _notify_all(urls: list[str], message: Message) -> list[str | None]:
    """Notify the services side by side; return for each why it did not accept the message, None if it did."""
    from apprise import Apprise

    services = [Apprise.instantiate(url) for url in urls]
    pool = ThreadPoolExecutor(len(urls))
    answers = [pool.submit(_cause_of_failure, service, message) for service in services]
    wait(answers, timeout=DEADLINE_S)
    return [answer.result() if answer.done() else _SILENT for answer in answers]


def _cause_of_failure(service: "NotifyBase | None", message: Message) -> str | None:
    from apprise import Apprise, NotifyFormat, NotifyType, OverflowMode

    if service is None:
        return "apprise does not accept its URL; correct it in ETFARM_NOTIFY"
    if service.overflow_mode == OverflowMode.UPSTREAM:
        service.overflow_mode = OverflowMode.SPLIT  # most services refuse what is too long
    service.socket_connect_timeout = service.socket_read_timeout = 2 * DEADLINE_S  # the deadline comes before
    services = Apprise()
    services.add(service)
    log, thread = io.StringIO(), threading.get_ident()
    handler = logging.StreamHandler(log)
    handler.addFilter(lambda record: record.thread == thread)
    logging.getLogger("apprise").addHandler(handler)
    kind = NotifyType.FAILURE if message.is_bad else NotifyType.SUCCESS
    if services.notify(message.body, message.title, kind, body_format=NotifyFormat.TEXT):
        return None
    if status := re.search(r"error=(\d{3})\b", log.getvalue()):
        return f"it answered with HTTP status {status[1]}; check its URL in ETFARM_NOTIFY"
    return "the service was not reached or refused it; check its URL in ETFARM_NOTIFY, and the network"


def _main() -> None:
    """Send what standard input contains; print the causes of failures, and nothing else."""
    request = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        causes = _notify_all(request["urls"], Message(**request["message"]))
    json.dump(causes, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # without waiting for a service that hangs


if __name__ == "__main__":
    _main()
