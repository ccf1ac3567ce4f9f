"""Checks of a certification that need no sweep, on this machine; those that move data also over ssh and adb."""

import os
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceBusy, FarmError, NoSpaceOnDevice
from devices.inventory import DeviceSpec
from devices.ondevice.diagnostics import small_disk
from devices.ondevice.lease import acquire
from devices.shell import call
from tasks.judge.certify import checks
from tasks.judge.certify.subject import Subject, open_subject
from tests.fixtures.devices import TRANSPORTS


@pytest.fixture
def subject(request: pytest.FixtureRequest, make_spec: Callable[..., DeviceSpec], tmp_path: Path) -> Iterator[Subject]:
    with open_subject(make_spec(getattr(request, "param", "local")), tmp_path / "var", date(2026, 11, 20)) as subject:
        yield subject


reached_in_each_way = pytest.mark.parametrize("subject", TRANSPORTS, indirect=True)


def can_mount(device: Device) -> bool:
    with small_disk(device, f"{device.root}/probe", 1) as needed:
        return needed is None


@reached_in_each_way
def test_the_facts_are_read_and_what_a_killed_certification_left_is_removed(subject: Subject) -> None:
    call(subject.device, ["mkdir", "-p", "--", f"{subject.device.root}/sessions/0123456789abcdef"])
    finding = checks.check_connection(subject)
    assert finding.status == "passed"
    assert f", {subject.facts.cores} cores, {subject.platform}, " in finding.text
    assert not Path(subject.device.root).exists()


def test_a_device_in_use_is_refused_with_its_holder(
    subject: Subject, make_spec: Callable[..., DeviceSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.judge.certify.subject._WAIT_S", 0.0)
    with acquire(subject.device, "another farm"), pytest.raises(DeviceBusy, match="is held by another farm"):
        checks.check_connection(subject)


@reached_in_each_way
def test_bytes_come_back_as_they_were_sent(subject: Subject) -> None:
    assert "8 MB of random bytes, hashes equal" in checks.check_transfer(subject).text


def test_bytes_that_come_back_changed_fail_the_check(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a device that damages what is fetched
    fetch = type(subject.device).fetch

    def damage(device: Device, remote: str, local: Path) -> None:
        fetch(device, remote, local)
        content = local.read_bytes()
        local.write_bytes(bytes([content[0] ^ 1]) + content[1:])

    monkeypatch.setattr(type(subject.device), "fetch", damage)
    with pytest.raises(FarmError, match="differ from those that were sent"):
        checks.check_transfer(subject)


@reached_in_each_way
def test_a_full_disk_refuses_in_one_sentence_and_keeps_nothing(subject: Subject) -> None:
    is_possible = can_mount(subject.device)
    finding = checks.check_full_disk(subject)
    if not is_possible:
        assert finding.status == "not tried"
        assert finding.text.startswith("it needs ")
        return
    assert finding.status == "passed"
    assert "no space left for" in finding.text
    assert subject.small_disk not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    assert not Path(subject.small_disk).exists()


def test_a_file_that_a_refused_push_leaves_fails_the_check(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    if not can_mount(subject.device):
        pytest.skip("mounting a disk needs root")

    # given a device that keeps a part of what does not fit
    def keep_a_part(device: Device, local: Path, remote: str) -> None:
        Path(remote).parent.mkdir(parents=True)
        Path(remote).write_bytes(b"a part")
        raise NoSpaceOnDevice(device.name, f"no space left for {remote}")

    monkeypatch.setattr(type(subject.device), "upload", keep_a_part)
    with pytest.raises(FarmError, match=r"a push that did not fit left files on the device: 1, for example .*root of"):
        checks.check_full_disk(subject)
    assert not Path(subject.small_disk).exists()


def test_nothing_is_left_on_the_device_but_what_was_there_before(subject: Subject) -> None:
    kept = Path(subject.device.root).parent / "blobs"
    kept.mkdir(parents=True)
    call(subject.device, ["mkdir", "-p", "--", f"{subject.device.root}/blobs"])
    assert checks.check_leftovers(subject).status == "passed"
    assert os.listdir(kept.parent) == ["blobs"]  # noqa: PTH208
    # and a session folder that is left fails the check

    call(subject.device, ["mkdir", "-p", "--", f"{subject.device.root}/sessions/0123456789abcdef"])
    with pytest.raises(FarmError, match="0 jobs and 1 session folders were left"):
        checks.check_leftovers(subject)
