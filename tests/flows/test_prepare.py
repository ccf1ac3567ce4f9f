"""Before a sweep measures: what goes wrong with one device or platform ends that one's part only."""

import threading
from collections.abc import Collection
from functools import partial
from pathlib import Path

import pytest
from prefect import flow

from devices.device import Device
from devices.inventory import DeviceSpec
from devices.ondevice import facts
from devices.ondevice.facts import Facts
from flows.dispatch import probe_all
from flows.sweep_dispatch import RunnerSteps
from tasks.measure.prepare import Runners
from tasks.measure.sweep_file import SweepSpec
from tasks.runner.toolchain import host_platform
from tasks.store.workspace import Workspace
from tests.fixtures.waiting import ENOUGH_S, wait_for

pytestmark = [pytest.mark.usefixtures("server"), pytest.mark.fault]


def test_a_device_whose_probe_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given four devices, of which three are broken in different ways
    workspace = Workspace(tmp_path / "var")
    names = ("damaged", "windows", "odd", "sound")
    devices = [DeviceSpec(name=name, transport="local", root=str(tmp_path / name)) for name in names]
    workspace.registry.mkdir(parents=True)
    (workspace.registry / "damaged.json").write_bytes(b"[" * 100_000)
    real = facts.read_facts

    def read(device: Device) -> Facts:
        if device.name == "odd":
            raise ZeroDivisionError("nobody\nexpected this")
        return real(device) if device.name == "windows" else Facts(os="linux", platform="linux-x86_64")

    monkeypatch.setattr(facts, "run_script", lambda _device, _name: "@system\nwindows\n")
    monkeypatch.setattr("tasks.measure.prepare.read_facts", read)
    # when all are probed
    probes = {probe.device.name: probe for probe in flow(lambda: list(probe_all(devices, workspace)))()}
    # then each broken one has its sentence, and the last one is usable
    damaged, windows, odd, sound = (probes[name] for name in names)
    assert str(damaged.unusable).endswith("remove it to reset the health of damaged")
    assert windows.unusable == "windows: its system reads 'windows'; the farm measures on linux, macos and android"
    assert odd.unusable == "odd: the probe itself failed (ZeroDivisionError: nobody expected this); report this error"
    assert (sound.unusable, sound.platform) == (None, "linux-x86_64")


def test_a_platform_whose_runner_fails_does_not_stop_the_others_and_waiting_asks_the_server_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a platform whose build takes its time, and one whose build ends with an error that nobody foresaw
    spec, may_end = SweepSpec.model_validate({"name": "smoke", "models": ["linear"]}), threading.Event()

    def build(platform: str, _: Path, _version: str | None, _backends: Collection[str]) -> None:
        may_end.wait(ENOUGH_S)
        if platform == "linux-odd":
            raise ZeroDivisionError("nobody\nexpected this")

    def refuse(**_: object) -> None:
        raise AssertionError("Prefect's server was asked")

    monkeypatch.setattr("tasks.measure.prepare.build_runner", build)
    ours, odd = host_platform(), "linux-odd"

    @flow
    def building() -> tuple[Runners | None, bool, Runners, Runners]:
        builds = RunnerSteps(spec, Workspace(tmp_path))
        for platform in (odd, ours, odd):
            builds.start(platform)
        builds.close()
        monkeypatch.setattr("prefect.futures.get_client", refuse)
        # when a device asks for its runners before and after the end of the build
        before = builds.runners(ours), builds.have_ended()
        may_end.set()
        good, bad = (wait_for(partial(builds.runners, each), "its runner") for each in (ours, odd))
        return *before, good, bad

    before, had_ended, good, bad = building()
    # then only the odd one has an error
    assert (before, had_ended, good.error) == (None, False, None)
    why = "the runner's step itself failed (ZeroDivisionError: nobody expected this); report this error"
    assert bad.error == f"linux-odd: {why}"
