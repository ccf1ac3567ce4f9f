"""Send a message to where a team reads (chat, mail, a webhook), through apprise.

Each service gets a process: it can be ended at its deadline, and neither apprise nor what it uses can print or log the
URL, which contains the service's secret. The URL is passed on standard input, because `ps` shows arguments.
"""

import io
import json
import logging
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

DEADLINE_S = 10
_LONGEST_START_S = 120  # of the process on a busy machine, before it sends
# Between two URLs; a comma inside of one, such as in a list of recipients, separates nothing.
_SEPARATOR = re.compile(r"[\s,]+(?=[A-Za-z0-9]+://)")
_SCHEME = re.compile(r"([A-Za-z0-9]+)://")
_UNKNOWN, _REFUSED = 3, 4


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
    with ThreadPoolExecutor(len(entries)) as pool:
        causes = list(pool.map(lambda url: _cause_of_failure(url, message), entries))
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


def _cause_of_failure(url: str, message: Message) -> str | None:
    """Return why a service did not accept the message and what to do; None if it did."""
    request = json.dumps({"url": url, "title": message.title, "body": message.body, "is_bad": message.is_bad})
    command = [sys.executable, "-P", __file__]
    try:
        ended = subprocess.run(
            command,
            input=request,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=_LONGEST_START_S + DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "its process could not be started; free memory on this machine"
    if ended.returncode == 0:
        return None
    if ended.returncode == _UNKNOWN:
        return "apprise does not accept its URL; correct it in ETFARM_NOTIFY"
    if ended.returncode == -signal.SIGALRM:
        return f"no answer within {DEADLINE_S} s; check that this machine reaches the service"
    if ended.returncode == _REFUSED and ended.stdout:
        return f"it answered with HTTP status {ended.stdout}; check its URL in ETFARM_NOTIFY"
    return "the service was not reached or refused it; check its URL in ETFARM_NOTIFY, and the network"


def _send_one() -> int:
    """Send the message that standard input contains; print the HTTP status of a refusal, if there is one."""
    from apprise import Apprise, NotifyFormat, NotifyType, OverflowMode

    request = json.load(sys.stdin)
    signal.alarm(DEADLINE_S)  # it ends this process wherever that waits
    log = io.StringIO()
    logging.getLogger("apprise").addHandler(logging.StreamHandler(log))
    service = Apprise.instantiate(request["url"])
    if service is None:
        return _UNKNOWN
    if service.overflow_mode == OverflowMode.UPSTREAM:
        service.overflow_mode = OverflowMode.SPLIT  # most services refuse what is too long
    service.socket_connect_timeout = service.socket_read_timeout = 2 * DEADLINE_S  # the alarm strikes before
    services = Apprise()
    services.add(service)
    kind = NotifyType.FAILURE if request["is_bad"] else NotifyType.SUCCESS
    if services.notify(request["body"], request["title"], kind, body_format=NotifyFormat.TEXT):
        return 0
    if status := re.search(r"error=(\d{3})\b", log.getvalue()):
        sys.stdout.write(status[1])
    return _REFUSED


if __name__ == "__main__":
    sys.exit(_send_one())
