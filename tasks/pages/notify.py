"""Send a message to where a team reads (chat, mail, a webhook), through apprise.

A URL of apprise contains a secret of the service: neither this module nor the libraries that send print or log it.
"""

import logging
import re
import threading
import time
from dataclasses import dataclass
from io import StringIO

from devices.untrusted import sanitize, sanitize_line

DEADLINE_S = 10
# Between two URLs; a comma inside a URL, such as in a list of recipients, does not separate.
_SEPARATOR = re.compile(r"[\s,]+(?=[A-Za-z0-9]+://)")
_SCHEME = re.compile(r"([A-Za-z0-9]+)://")
_SILENT = f"no answer within {DEADLINE_S} s; check that this machine reaches the service"
# Libraries of apprise that log addresses; apprise itself is kept from all handlers but ours.
_HTTP_LOGGERS = ("urllib3", "requests", "charset_normalizer")


@dataclass(frozen=True)
class Message:
    """Plain text; services with colours show `is_bad` as failure, else success."""

    title: str
    body: str
    is_bad: bool


def send(urls: str, message: Message) -> list[str]:
    """Send a message to each URL of `split_urls(urls)`, all at once.

    Return a sentence for each service that did not accept it within 10 s; it names the service only by the scheme of
    its URL. Returns after at most 10 s, plus the time to import apprise; slower services may still get the message.
    """
    import apprise  # noqa: F401  imported here, so that its time is not part of the deadline

    silence_loggers()
    sanitized = Message(sanitize_line(message.title), sanitize(message.body), message.is_bad)
    entries = split_urls(urls)
    causes: list[str | None] = [_SILENT] * len(entries)

    def deliver(place: int) -> None:
        try:
            causes[place] = _deliver(entries[place], sanitized)
        except Exception as error:  # its text may contain the URL
            causes[place] = f"{type(error).__name__} while it was sent; check its URL in ETFARM_NOTIFY"

    # Daemon threads: the interpreter does not wait for a service that hangs.
    threads = [threading.Thread(target=deliver, args=(place,), daemon=True) for place in range(len(entries))]
    end = time.monotonic() + DEADLINE_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0.0))
    return [
        f"notification to {_service_name(url, place)} not sent: {cause}"
        for place, (url, cause) in enumerate(zip(entries, list(causes), strict=True), start=1)
        if cause is not None
    ]


def split_urls(urls: str) -> list[str]:
    """Return apprise's URLs in `urls`, which are separated by whitespace or commas."""
    return _SEPARATOR.split(urls.strip()) if urls.strip() else []


def silence_loggers() -> None:
    """Keep the log records of apprise and the libraries below it from all handlers of the farm."""
    logging.getLogger("apprise").propagate = False
    for name in _HTTP_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _service_name(url: str, place: int) -> str:
    scheme = _SCHEME.match(url)
    return f"`{scheme[1].lower()}`" if scheme else f"entry {place} of ETFARM_NOTIFY"


def _deliver(url: str, message: Message) -> str | None:
    """Send a message to one service; return why it was not accepted and what to do, None if it was."""
    from apprise import Apprise, NotifyFormat, NotifyType, OverflowMode

    service = Apprise.instantiate(url)
    if service is None:
        return "apprise does not accept its URL; correct it in ETFARM_NOTIFY"
    if service.overflow_mode == OverflowMode.UPSTREAM:
        service.overflow_mode = OverflowMode.SPLIT  # most services refuse what is too long
    service.socket_connect_timeout = service.socket_read_timeout = 2 * DEADLINE_S  # the deadline comes before
    services = Apprise()
    services.add(service)
    log, thread = StringIO(), threading.get_ident()
    handler = logging.StreamHandler(log)
    handler.addFilter(lambda record: record.thread == thread)
    logging.getLogger("apprise").addHandler(handler)
    try:
        kind = NotifyType.FAILURE if message.is_bad else NotifyType.SUCCESS
        if services.notify(message.body, message.title, kind, body_format=NotifyFormat.TEXT):
            return None
    finally:
        logging.getLogger("apprise").removeHandler(handler)
    if status := re.search(r"error=(\d{3})\b", log.getvalue()):
        return f"it answered with HTTP status {status[1]}; check its URL in ETFARM_NOTIFY"
    return "the service was not reached or refused it; check its URL in ETFARM_NOTIFY, and the network"
