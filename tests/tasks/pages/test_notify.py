"""Messages through apprise: what arrives, and what a failure tells without the secret in the URL."""

import logging
import socket
from collections.abc import Iterator

import pytest

from tasks.pages.notify import DEADLINE_S, Message, send
from tests.fixtures.http_server import PASSWORD, webhook

MESSAGE = Message("nightly-2026-11-21: 1 regression", "sessions: 24 succeeded\nreport: here", is_bad=True)


@pytest.fixture(autouse=True)
def no_secret_is_printed_or_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> Iterator[None]:
    """Whatever a service does, its secret is in no output and in no log, of any library and level."""
    caplog.set_level(logging.DEBUG)
    yield
    printed = capfd.readouterr()
    assert PASSWORD not in caplog.text + printed.out + printed.err


@pytest.mark.parametrize("separator", [" ", ",", "\n", ", "])
def test_every_service_gets_the_message_once(separator: str) -> None:
    with webhook() as one, webhook() as other:
        assert send(f"{one.url}{separator}{other.url}\n", MESSAGE) == []
    for hook in (one, other):
        (received,) = hook.received
        assert (received["title"], received["message"]) == (MESSAGE.title, MESSAGE.body)
        assert received["type"] == "failure"


def test_a_comma_inside_of_a_url_separates_nothing() -> None:
    with webhook() as hook:
        assert send(f"{hook.url}?:to=ann,bob", MESSAGE) == []
    (received,) = hook.received
    assert received["to"] == "ann,bob"


def test_a_service_that_refuses_is_named_by_its_scheme_and_the_others_get_the_message() -> None:
    with webhook(403) as bad, webhook() as good:
        (warning,) = send(f"{bad.url}{PASSWORD} {good.url}", MESSAGE)  # as a token in the path, which clients log
    assert warning == (
        "notification to `json` not sent: it answered with HTTP status 403; check its URL in ETFARM_NOTIFY"
    )
    assert len(good.received) == 1


def test_a_service_that_nobody_runs_is_a_warning() -> None:
    # given a port that is taken, but where nobody listens
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        (warning,) = send(f"json://farm:{PASSWORD}@127.0.0.1:{taken.getsockname()[1]}/", MESSAGE)
    assert warning.startswith("notification to `json` not sent: the service was not reached or refused it; ")


@pytest.mark.thorough
def test_a_service_that_does_not_answer_is_given_up_at_the_deadline() -> None:
    with webhook(None) as silent:
        (warning,) = send(silent.url, MESSAGE)
    assert len(silent.received) == 1
    assert warning == (
        f"notification to `json` not sent: no answer within {DEADLINE_S} s; check that this machine reaches the service"
    )


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (f"slack://{PASSWORD}", "`slack`"),
        (f"nosuch://{PASSWORD}@host", "`nosuch`"),
        (PASSWORD, "entry 1 of ETFARM_NOTIFY"),
    ],
)
def test_what_is_not_a_url_of_apprise_is_named_without_its_secret(
    url: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (warning,) = send(url, MESSAGE)
    assert warning == f"notification to {name} not sent: apprise does not accept its URL; correct it in ETFARM_NOTIFY"
    assert capfd.readouterr() == ("", "")


def test_a_message_cannot_act_where_it_is_read() -> None:
    with webhook() as hook:
        assert send(hook.url, Message("a\nb\x1b[31m", "x\u202e\ny\r", is_bad=False)) == []
    (received,) = hook.received
    assert (received["title"], received["message"]) == ("a b\ufffd[31m", "x\ufffd\ny\ufffd")
