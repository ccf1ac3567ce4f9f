"""What a device prints is read for what it states, however its disks are named."""

import pytest

from devices.shell import available_bytes

_HEAD = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n"


@pytest.mark.parametrize(
    ("line", "kilobytes"),
    [
        ("/dev/sda1 1000 400 600 40% /", 600),
        ("/dev/disk3s1 1000 400 600 40% /Volumes/My Disk", 600),
        ("//user@nas/Lab Share 7 1000 400 600 40% /Volumes/Lab Share 7", 600),
        ("map auto home 0 0 0 100% /System/Volumes/Data/home", 0),
        ("tmpfs 1000 400 600 40% /tmp/with 9 numbers 5 6 7 8% /inside", 600),
    ],
)
@pytest.mark.fault
def test_free_space_is_read_from_a_disk_whose_name_has_blanks(line: str, kilobytes: int) -> None:
    assert available_bytes(f"{_HEAD}{line}\n") == kilobytes * 1024
    # and what is not stated is unknown
    for printed in ("", _HEAD, "df: /x: No such file or directory\n", f"{_HEAD}/dev/x - - - - /\n"):
        assert available_bytes(printed) is None
