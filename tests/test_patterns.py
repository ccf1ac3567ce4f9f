"""No text of a device takes a time that grows with the square of its length."""

from collections.abc import Callable

import pytest

from devices.ondevice.conditions import parse_conditions
from devices.ondevice.facts import parse_facts
from devices.shell import available_bytes
from tasks.etdump.xnntrace import parse_kernel
from tests.fixtures.hostile import grows_with_the_square


@pytest.mark.parametrize(
    ("read", "text_of"),
    [
        (available_bytes, lambda length: f"x 1 1 1 1% /{' ' * length}\n!"),
        (lambda text: parse_conditions(f"@system\nandroid\n@thermal\n{text}"), lambda n: f"mValue={'1' * n}"),
        (lambda text: parse_facts({"system": "android", "getprop": text}, None), lambda n: f"[a{']: [' * n}x"),
        (parse_kernel.__wrapped__, lambda length: f"xnn_{'_ukernel__ukernel' * (length // 4)}!"),
    ],
    ids=["df", "thermal", "getprop", "kernel"],
)
def test_what_a_device_prints_is_read_in_a_time_that_grows_with_its_length(
    read: Callable[[str], object], text_of: Callable[[int], str]
) -> None:
    assert not grows_with_the_square(read, text_of)
