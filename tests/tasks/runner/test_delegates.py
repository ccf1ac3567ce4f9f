"""Runners with more delegates than XNNPACK: which are built, what they carry, and which session gets one."""

import shutil
from collections.abc import Collection
from pathlib import Path

import pytest

from devices.platform import Platform
from tasks.bundle.cell import Use
from tasks.measure import prepare
from tasks.measure.prepare import build_runners
from tasks.runner import build_inputs
from tasks.runner.build_inputs import BuildInputs
from tasks.runner.delegate_files import DelegateFiles, delegate_backends, find_delegate_files
from tasks.runner.manifest import Runner, RunnerError
from tasks.runner.register import register_runner
from tasks.runner.toolchain import Toolchain

WITH_MORE = frozenset({"OpenvinoBackend"})
PLAIN = DelegateFiles((), (), (), {})


def test_what_delegates_add_to_the_sources_changes_no_plain_runner(tmp_path: Path) -> None:
    sources = shutil.copytree(build_inputs.SOURCES, tmp_path / "sources")
    wheel = build_inputs.Wheel(tmp_path, "1.5.1", "0" * 64, ".so")

    def key(delegates: DelegateFiles) -> str:
        return BuildInputs("linux-x86_64", sources, wheel, Toolchain(["g++"], "g++ 12"), "cmake", delegates).build_key

    runtime = tmp_path / "libopenvino.so.2541"
    runtime.write_bytes(b"first")
    with_more = DelegateFiles(("openvino",), (), (runtime,), {"openvino": "2025.4.1"})
    before = key(PLAIN), key(with_more)
    # when the sources of delegates change, and when their runtime does
    (sources / "delegates" / "openvino.cmake").write_text("# changed\n")
    changed = key(PLAIN), key(with_more)
    runtime.write_bytes(b"other")
    assert before[0] == changed[0] == key(PLAIN)
    assert len({*before, changed[1], key(with_more)}) == 4


@pytest.mark.parametrize(("platform", "backend"), [("macos-arm64", "OpenvinoBackend"), ("linux-x86_64", "MLXBackend")])
def test_a_platform_whose_wheel_lacks_a_library_is_told_what_has_it_and_what_to_do(
    platform: Platform, backend: str, tmp_path: Path
) -> None:
    sentence = rf"^(openvino|mlx): executorch's wheel has no library of {backend} for {platform}; the farm's runners "
    with pytest.raises(RunnerError, match=sentence + "have it for (linux-x86_64, linux-aarch64|macos-arm64)$"):
        find_delegate_files(platform, {backend}, tmp_path)


def test_a_delegate_that_cannot_be_built_takes_away_no_other_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def build_runner(_: str, __: Path, version: str | None, backends: Collection[str]) -> None:
        tried.append((version, backends))
        if backends:
            raise RunnerError("openvino is not installed")

    monkeypatch.setattr(prepare, "build_runner", build_runner)
    monkeypatch.setattr(prepare, "find_runner", lambda *_: None)
    delegates = (None, "portable", "openvino", "openvino+xnnpack", "mlx", "my.partitioners:make")
    runners = build_runners("linux-x86_64", [Use("sme2_off", "timing", None, each) for each in delegates], tmp_path)
    # portable needs the plain runner, a list one with OpenVINO; the wheel for Linux has no MLX
    assert tried == [(None, frozenset()), (None, WITH_MORE)]
    assert runners.error == "openvino is not installed"


def test_a_registered_runner_states_the_backends_that_its_user_names(host_runner: Runner, tmp_path: Path) -> None:
    def register(*backends: str) -> Runner:
        use = Use("sme2_off", "timing")
        runners, platform = tmp_path / "runners", host_runner.platform
        folder = host_runner.folder
        return register_runner(folder, runners, platform=platform, use=use, provenance="a copy", backends=backends)

    assert register("VulkanBackend", "XnnpackBackend").backends == frozenset({"VulkanBackend", "XnnpackBackend"})
    assert register().backends is None
    with pytest.raises(RunnerError, match=r"^`Vulkan Backend` is not the id of a backend; .* such as VulkanBackend$"):
        register("Vulkan Backend")
    for written in ("Xnnpackbackend", "XnnpackBakend"):
        with pytest.raises(RunnerError, match=rf"^`{written}` is not .*; did you mean `XnnpackBackend`\?$"):
            register(written)
    for own in ("MPSBackend", "NeuropilotBackend", "VgfBackend", "MyOwnBackend"):  # the farm need not know an id
        assert register(own).backends == frozenset({own})


def test_a_delegate_that_the_farm_cannot_build_in_is_refused_by_name() -> None:
    assert delegate_backends(["openvino"]) == WITH_MORE
    with pytest.raises(RunnerError, match=r"^unknown delegate `openvin`: use one of openvino, coreml, mlx; .*openvino"):
        delegate_backends(["openvin"])
