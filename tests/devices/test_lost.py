"""Links that break: every loss is reported within seconds, and no partial file stays behind."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devices.errors import DeviceError, DeviceLost, DeviceRefused
from devices.retry import probe
from tests.fixtures.devices import SILENCE_S, LinkedDevice
from tests.fixtures.jobs import in_background
from tests.fixtures.waiting import ENOUGH_S, SCALE, change_policy, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.fault]

# A loss is reported within this time, with the shortened silence of `linked`; as shipped it is 12 s.
SOON_S = 5 * SCALE
FAILURES = ["is cut", "discards all data"]


@contextlib.contextmanager
def when_started(linked: LinkedDevice, harm: Callable[[], object]) -> Iterator[list[str]]:
    """Yield a long command; `harm` is done when it runs on the device."""
    mark = Path(linked.device.root) / "started"
    mark.parent.mkdir(parents=True, exist_ok=True)

    def do_harm() -> None:
        wait_for(mark.exists, "the command to start")
        harm()

    done = in_background(do_harm)
    yield ["sh", "-c", 'touch "$1"; sleep 30', "sh", str(mark)]
    done.result()


def break_link(linked: LinkedDevice, failure: str) -> None:
    if failure == "is cut":
        linked.link.cut()
    else:
        linked.link.stalled = True


@pytest.mark.parametrize("failure", FAILURES)
def test_a_link_that_breaks_during_a_command_is_a_lost_device(linked: LinkedDevice, failure: str) -> None:
    probe(linked.device)
    begun = time.monotonic()
    with (
        when_started(linked, lambda: break_link(linked, failure)) as argv,
        pytest.raises(DeviceLost, match=f"^{linked.device.name}: (host .*: )?stopped answering"),
    ):
        linked.device.run(argv, deadline_s=ENOUGH_S)
    assert time.monotonic() - begun < SOON_S
    # and until it is back, it cannot be used
    with pytest.raises(DeviceError, match=f"^{linked.device.name}: (host .*: )?(cannot|stopped)"):
        probe(linked.device)
    linked.link.restore()
    probe(linked.device)


def test_a_device_that_is_silent_but_there_is_waited_for(linked: LinkedDevice) -> None:
    result = linked.device.run(["sh", "-c", f"sleep {3 * SILENCE_S}; echo done"], deadline_s=ENOUGH_S)
    assert result.stdout == b"done\n"


@pytest.mark.parametrize("failure", FAILURES)
def test_a_link_that_breaks_during_an_upload_leaves_no_file(linked: LinkedDevice, tmp_path: Path, failure: str) -> None:
    probe(linked.device)
    (tmp_path / "there").write_bytes(os.urandom(20_000_000))
    if failure == "is cut":
        linked.link.cut_after_bytes = 5_000_000
    else:
        linked.link.stalled = True
    begun = time.monotonic()
    with pytest.raises((DeviceLost, DeviceRefused)):
        linked.device.upload(tmp_path / "there", f"{linked.device.root}/file")
    assert time.monotonic() - begun < SOON_S
    assert not Path(linked.device.root, "file").exists()
    linked.link.restore()
    linked.device.upload(tmp_path / "there", f"{linked.device.root}/file")
    assert Path(linked.device.root, "file").read_bytes() == (tmp_path / "there").read_bytes()


@pytest.mark.parametrize("failure", FAILURES)
def test_a_link_that_breaks_during_a_fetch_leaves_no_local_file(
    linked: LinkedDevice, tmp_path: Path, failure: str
) -> None:
    # Given a download that is slow enough to be broken in its middle
    probe(linked.device)
    remote = Path(linked.device.root) / "file"
    remote.parent.mkdir()
    remote.write_bytes(os.urandom(20_000_000))
    folder = tmp_path / "local"
    linked.link.rate_bytes_per_s = 10_000_000

    def break_it() -> None:
        wait_for(lambda: any(path.stat().st_size for path in folder.glob(".*")), "the fetch to begin")
        break_link(linked, failure)

    broken = in_background(break_it)
    begun = time.monotonic()
    with pytest.raises(DeviceLost):
        linked.device.fetch(str(remote), folder / "file", limit_bytes=20_000_000)
    broken.result()
    assert time.monotonic() - begun < 2 * SOON_S
    assert list(folder.iterdir()) == []


def test_at_a_deadline_on_a_dead_link_the_device_is_lost_and_not_merely_late(
    linked: LinkedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a deadline that comes before the silence of the link is noticed
    change_policy(monkeypatch, "SSH_SILENCE", timeout_s=2.0 * SCALE)
    change_policy(monkeypatch, "ADB_SILENCE", timeout_s=2.0 * SCALE)
    probe(linked.device)
    with when_started(linked, lambda: break_link(linked, "discards all data")) as argv, pytest.raises(DeviceLost):
        linked.device.run(argv, deadline_s=1.0 * SCALE)
