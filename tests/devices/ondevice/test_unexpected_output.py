"""A device whose scripts print something else than they should: each call reports it as an error of that device."""

from collections.abc import Callable

import pytest

from devices.adb.stream import ShellOutput
from devices.device import Device
from devices.errors import DeviceError, DeviceLost
from devices.ondevice.diagnostics import DeviceLeftovers, read_leftovers
from devices.ondevice.job import Job, kill_leftovers, run_job
from devices.ondevice.store import prune
from devices.shell import take_pid
from devices.ssh.shell import Framed
from tests.fixtures.jobs import ending
from tests.fixtures.printed import Printing

ENDED = "ended 0 1.00 2.00 2.00 2.50 -\n%content\n"


def run(device: Device) -> object:
    return ending(run_job(device, Job("/data/etfarm/sessions/a", ["true"], 1.0)))


# A call, what its script should print, what the call makes of that, and texts that the script should not print.
CASES: dict[str, tuple[Callable[[Device], object], str, object, list[str]]] = {
    "leftovers": (
        read_leftovers,
        "1 2 30",
        DeviceLeftovers(1, 2, 30 << 10),
        ["", "1", "one 2 3", "1 2 3 4", "1 2 many"],
    ),
    "jobs of a previous holder": (kill_leftovers, "12\n13", [12, 13], ["12\nWelcome", "9" * 5000]),
    "entries of the store": (
        lambda device: prune(device, 1 << 40),
        "12 idle:blobs/a\n3 :trees/b",
        [],
        ["Welcome", "12", "x idle:blobs/a", "12 busy:blobs/a", f"{'9' * 5000} :blobs/a"],
    ),
    "the end of a job": (
        run,
        ENDED,
        (0, None, False),
        ["", "ended", ENDED.replace(" 0 ", " zero "), ENDED.replace("1.00", "soon"), ENDED.replace("1.00", "nan")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_script_should_not_print_is_an_error_of_its_device(name: str) -> None:
    call, right, result, wrong = CASES[name]
    assert call(Printing(right.encode())) == result
    for printed in wrong:
        with pytest.raises((DeviceError, DeviceLost), match=r"^phone: .*printed '"):
            call(Printing(printed.encode()))


def test_what_adbd_and_a_login_shell_should_not_send_is_an_error_of_their_device() -> None:
    with pytest.raises(DeviceError, match=r"^phone: adbd sent an exit packet without a status"):
        ShellOutput("phone").feed(b"\x03\0\0\0\0")
    with pytest.raises(DeviceError, match=r"^phone: its login shell prints"):
        take_pid("phone", bytearray(b"9" * 5000 + b"\n"))


@pytest.mark.parametrize("line", [b"mark", b"mark zero", b"mark 0 0", b"mark 9999"])
def test_a_marker_without_an_exit_status_ends_the_connection(line: bytes) -> None:
    with pytest.raises(EOFError, match=r"its shell printed b'mark.* instead of an exit status"):
        Framed(b"mark").feed(b"mark\noutput" + line + b"\n")
