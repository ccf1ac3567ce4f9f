"""The loopback daemons start on ports that no other program has."""

import socket

import pytest

from tests.fixtures.needs import needs
from tests.lab import loopback
from tests.lab.journal import LabError

pytestmark = pytest.mark.lab


def test_a_daemon_whose_port_is_taken_before_it_starts_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("sshd", "ssh-keygen")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        taken = other.getsockname()[1]
        ports = iter([taken, loopback.free_port()])
        monkeypatch.setattr(loopback, "free_port", lambda: next(ports))

        with loopback.sshd() as daemon:
            assert daemon.port != taken

        with pytest.raises(LabError, match="sshd did not start"), loopback.sshd(taken):
            pass
