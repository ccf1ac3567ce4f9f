"""Before a sweep measures: what goes wrong with one device or platform ends that one's part only."""

import threading
from functools import partial
from pathlib import Path

import pytest
from prefect import flow

from devices.device import Device
from devices.inventory import DeviceSpec
from devices.ondevice import facts
from devices.ondevice.facts import Facts, parse_facts
from flows.dispatch import probe_all
from flows.sweep_dispatch import RunnerSteps
from tasks.measure.prepare import Probe, Runners
from tasks.measure.sweep_file import SweepSpec
from tasks.runner.toolchain import host_platform
from tasks.store.workspace import Workspace
from tests.fixtures.waiting import ENOUGH_S, wait_for

pytestmark = pytest.mark.usefixtures("server")


def a_device(tmp_path: Path, name: str) -> DeviceSpec:
    return DeviceSpec.model_validate({"name": name, "transport": "local", "root": str(tmp_path / name)})


@pytest.mark.fault
def test_a_device_whose_probe_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given four devices, of which three are broken in different ways
    workspace = Workspace(tmp_path / "var")
    devices = [a_device(tmp_path, name) for name in ("damaged", "windows", "odd", "sound")]
    workspace.registry.mkdir(parents=True)
    (workspace.registry / "damaged.json").write_bytes(b"[" * 100_000)

    def read(device: Device) -> Facts:
        if device.name == "odd":
            raise ZeroDivisionError("nobody\nexpected this")
        return parse_facts({"system": "linux", "arch": "x86_64"}, None)

    real = facts.read_facts
    monkeypatch.setattr(facts, "run_script", lambda _device, _name: "@system\nwindows\n")
    monkeypatch.setattr(
        "tasks.measure.prepare.read_facts", lambda device: real(device) if device.name == "windows" else read(device)
    )

    # when all are probed
    @flow
    def probing() -> list[Probe]:
        return list(probe_all(devices, workspace))

    probes = {probe.device.name: probe for probe in probing()}
    # then each broken one has its sentence, and the last one is usable
    damaged, windows, odd, sound = (probes[device.name] for device in devices)
    assert str(damaged.unusable).endswith("remove it to reset the health of damaged")
    assert windows.unusable == "windows: its system reads 'windows'; the farm measures on linux, macos and android"
    assert odd.unusable == "odd: the probe itself failed (ZeroDivisionError: nobody expected this); report this error"
    assert (sound.unusable, sound.platform) == (None, "linux-x86_64")


@pytest.mark.fault
def test_a_platform_whose_runner_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a platform whose build ends with an error that nobody foresaw
    spec = SweepSpec.model_validate({"name": "smoke", "models": ["linear"]})

    def build(platform: str, _: Path) -> None:
        if platform == "linux-odd":
            raise ZeroDivisionError("nobody\nexpected this")

    monkeypatch.setattr("tasks.measure.prepare.build_runner", build)
    # when the runners of two platforms are built
    platforms = ("linux-odd", host_platform(), "linux-odd")

    @flow
    def building() -> dict[str, Runners]:
        builds = RunnerSteps(spec, Workspace(tmp_path))
        for platform in platforms:
            builds.start(platform)
        return {
            platform: wait_for(partial(builds.runners, platform), "its runner") or Runners() for platform in platforms
        }

    runners = building()
    # then only the odd one has an error
    assert runners[host_platform()].error is None
    assert runners["linux-odd"].error == (
        "linux-odd: the runner's step itself failed (ZeroDivisionError: nobody expected this); report this error"
    )


def test_devices_that_wait_for_a_runner_ask_the_server_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a build that takes its time, and a server that nobody may ask
    spec, may_end = SweepSpec.model_validate({"name": "smoke", "models": ["linear"]}), threading.Event()

    def build(_platform: str, _runners: Path) -> None:
        may_end.wait(ENOUGH_S)

    def refuse(**_: object) -> None:
        raise AssertionError("Prefect's server was asked")

    monkeypatch.setattr("tasks.measure.prepare.build_runner", build)

    @flow
    def building() -> tuple[Runners | None, bool, Runners]:
        builds = RunnerSteps(spec, Workspace(tmp_path))
        builds.start(host_platform())
        builds.close()
        monkeypatch.setattr("prefect.futures.get_client", refuse)
        # when a device asks for its runners before and after the end of the build
        before = builds.runners(host_platform()), builds.have_ended()
        may_end.set()
        return *before, wait_for(partial(builds.runners, host_platform()), "its runner")

    # then the answers are right
    before, had_ended, after = building()
    assert (before, had_ended, after.error) == (None, False, None)
