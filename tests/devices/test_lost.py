"""Links that break: every loss is said within seconds, and nothing half-done stays behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devices.errors import DeviceError, DeviceLost, DeviceRefused
from devices.reconnect import probe

if TYPE_CHECKING:
    from tests.fixtures.devices import Bench

pytestmark = pytest.mark.lab

# With the shortened silence of the `bench`; as shipped it is 12 s.
SOON_S = 5


def test_a_link_cut_during_a_command_is_a_lost_device(bench: Bench) -> None:
    probe(bench.device)
    begun = time.monotonic()
    timer = threading.Timer(0.3, bench.link.cut)
    timer.start()

    with pytest.raises(DeviceLost, match=f"^{bench.device.name}: stopped answering"):
        bench.device.run(["sleep", "30"], deadline_s=40)

    assert time.monotonic() - begun < SOON_S


def test_a_link_that_swallows_everything_is_a_lost_device(bench: Bench) -> None:
    probe(bench.device)
    begun = time.monotonic()
    timer = threading.Timer(0.3, lambda: setattr(bench.link, "stalled", True))
    timer.start()

    with pytest.raises(DeviceLost, match=f"^{bench.device.name}: stopped answering"):
        bench.device.run(["sleep", "30"], deadline_s=40)

    assert time.monotonic() - begun < SOON_S


def test_a_device_that_is_silent_but_there_is_waited_for(bench: Bench) -> None:
    result = bench.device.run(["sh", "-c", "sleep 1.8; echo done"], deadline_s=20)

    assert result.stdout == b"done\n"


def test_a_device_is_used_again_when_the_link_is_back(bench: Bench) -> None:
    probe(bench.device)
    bench.link.cut()
    with pytest.raises(DeviceError):
        probe(bench.device)

    bench.link.mend()

    probe(bench.device)


@pytest.mark.parametrize("failure", ["cut", "stall"])
def test_a_link_that_breaks_during_an_upload_leaves_no_file(bench: Bench, tmp_path: Path, failure: str) -> None:
    probe(bench.device)
    (tmp_path / "there").write_bytes(os.urandom(20_000_000))
    if failure == "cut":
        bench.link.cut_after_bytes = 5_000_000
    else:
        bench.link.stalled = True
    begun = time.monotonic()

    with pytest.raises((DeviceLost, DeviceRefused)):
        bench.device.upload(tmp_path / "there", f"{bench.device.root}/file")

    assert time.monotonic() - begun < SOON_S
    assert not Path(bench.device.root, "file").exists()
    bench.link.mend()
    bench.device.upload(tmp_path / "there", f"{bench.device.root}/file")
    assert Path(bench.device.root, "file").read_bytes() == (tmp_path / "there").read_bytes()


@pytest.mark.parametrize("failure", ["cut", "stall"])
def test_a_link_that_breaks_during_a_fetch_leaves_no_local_file(
    bench: Bench, tmp_path: Path, failure: str, until: Callable[[Callable[[], object]], None]
) -> None:
    # Given a download that is slow enough to be broken in its middle
    probe(bench.device)
    remote = Path(bench.device.root) / "file"
    remote.parent.mkdir()
    remote.write_bytes(os.urandom(20_000_000))
    folder = tmp_path / "local"
    bench.link.rate_bytes_per_s = 10_000_000

    def break_it() -> None:
        until(lambda: any(path.stat().st_size for path in folder.glob(".*")))
        if failure == "cut":
            bench.link.cut()
        else:
            bench.link.stalled = True

    breaker = threading.Thread(target=break_it)
    breaker.start()
    begun = time.monotonic()

    with pytest.raises(DeviceLost):
        bench.device.fetch(str(remote), folder / "file")

    breaker.join()
    assert time.monotonic() - begun < 2 * SOON_S
    assert list(folder.iterdir()) == []


def test_at_a_deadline_on_a_dead_link_the_device_is_lost_and_not_merely_late(bench: Bench) -> None:
    probe(bench.device)
    timer = threading.Timer(0.2, lambda: setattr(bench.link, "stalled", True))
    timer.start()

    with pytest.raises(DeviceLost):
        bench.device.run(["sleep", "30"], deadline_s=0.4)


def test_an_address_where_nobody_answers_is_said_soon(bench: Bench) -> None:
    bench.link.cut()
    begun = time.monotonic()

    with pytest.raises(DeviceError, match=f"^{bench.device.name}: (cannot|stopped)"):
        probe(bench.device)

    assert time.monotonic() - begun < 2 * SOON_S
