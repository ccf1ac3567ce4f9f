"""Runners of several versions of ExecuTorch: each session gets one of the version that it states."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from devices.errors import InputError
from tasks.bundle.cell import Use
from tasks.export.process.environments import installed_version
from tasks.measure.prepare import build_runners
from tasks.runner.build_inputs import find_build_inputs
from tasks.runner.executorch_versions import ExecutorchVersions, read_versions
from tasks.runner.manifest import MANIFEST, PROGRAM, Runner, RunnerError, find_runner, publish_runner
from tasks.runner.register import register_runner
from tasks.runner.toolchain import host_platform
from tasks.runner.wheels import WheelError

OWN = str(installed_version())


def publish(
    runners: Path, version: str | None, modified_s: int, kind: str = "wheel", backends: Sequence[str] = ()
) -> Runner:
    """Publish a runner of one file, whose content is its version, and its backends."""
    content = runners.parent / f"content-{version}-{kind}-{len(backends)}"
    content.mkdir(parents=True)
    (content / PROGRAM).write_text(" ".join([str(version), kind, *backends]))
    described: dict[str, Any] = {"kind": kind, "platform": "linux-x86_64", "launch": [PROGRAM]}
    described |= {"variants": ["sme2_off"], "modes": ["timing"], "versions": {"executorch": version}}
    described["stated_backends"] = list(backends)
    runner = publish_runner(content, runners, described)
    os.utime(runner.folder / MANIFEST, (modified_s, modified_s))
    return runner


@pytest.mark.parametrize("newest", [OWN, "1.5.0"])
def test_a_session_never_gets_the_runner_of_another_version_whichever_was_built_last(
    tmp_path: Path, newest: str
) -> None:
    built = {
        version: publish(tmp_path / "runners", version, 9 if version == newest else 5) for version in (OWN, "1.5.0")
    }

    def version_for(stated: str | None) -> str | None:
        runner = find_runner(tmp_path / "runners", "linux-x86_64", Use("sme2_off", "timing", stated))
        return next((version for version, each in built.items() if each == runner), None)

    assert [version_for(each) for each in (None, OWN, "1.5.0", "1.4.1")] == [OWN, OWN, "1.5.0", None]


def test_a_registered_runner_serves_the_version_that_it_states_or_else_sessions_that_state_none(tmp_path: Path) -> None:
    stating = publish(tmp_path / "runners", "1.4.1", 5, "registered")
    silent = publish(tmp_path / "runners", None, 5, "registered")
    uses = [Use("sme2_off", "timing", version) for version in ("1.4.1", "1.5.0", None)]
    assert [find_runner(tmp_path / "runners", "linux-x86_64", use) for use in uses] == [stating, None, silent]
    runners = build_runners("linux-x86_64", uses[:1], tmp_path / "runners")
    assert (runners.by_use, runners.error) == ({uses[0]: stating}, None)
    # but that a version cannot be built is stated if the runner is one of an earlier build
    built = publish(tmp_path / "runners", "1.4.0", 5)
    runners = build_runners("linux-x86_64", [Use("sme2_off", "timing", "1.4.0")], tmp_path / "runners")
    assert (list(runners.by_use.values()), runners.error is not None) == ([built], True)


def test_a_runner_with_more_than_xnnpack_executes_only_what_needs_it(tmp_path: Path) -> None:
    # given the plain runner, and newer ones with more, built and registered
    runners, xnnpack = tmp_path / "runners", "XnnpackBackend"
    plain = publish(runners, OWN, 5)
    openvino = publish(runners, OWN, 6, backends=[xnnpack, "OpenvinoBackend"])
    alone = publish(runners, None, 7, "registered", backends=["CoreMLBackend"])
    vulkan = publish(runners, None, 8, "registered", backends=[xnnpack, "VulkanBackend"])

    def runner_for(delegate: str | None) -> Runner | None:
        return find_runner(runners, "linux-x86_64", Use("sme2_off", "timing", None, delegate))

    assert [runner_for(each) for each in (None, "portable", "openvino", "openvino+xnnpack")] == [plain] * 2 + [
        openvino
    ] * 2
    # then a list that ends with XNNPACK needs a runner that has it, too
    assert [runner_for(each) for each in ("coreml", "coreml+xnnpack", "coreml+openvino", "mlx")] == [
        alone,
        None,
        None,
        None,
    ]
    # and what a partitioner of the user's calls is known to a registered runner with more, or to one that states none
    assert runner_for("my.parts:make") == vulkan
    silent = publish(runners, None, 9, "registered")
    assert [runner_for(each) for each in ("my.parts:make", None, "openvino")] == [silent, silent, openvino]


def test_a_version_without_a_runtime_in_its_wheel_exports_alone_and_has_no_runner(tmp_path: Path) -> None:
    assert ExecutorchVersions.model_validate("1.4.1") == ExecutorchVersions(export="1.4.1")
    assert ExecutorchVersions.model_validate("1.5.0") == ExecutorchVersions(export="1.5.0", runner="1.5.0")
    with pytest.raises(WheelError, match=r"^executorch 1\.4\.1 .* 1\.5\.0 .*\{export: 1\.4\.1\}.*--executorch 1\.4\.1"):
        find_build_inputs(host_platform(), tmp_path / "runners", "1.4.1")


@pytest.mark.parametrize("written", [1.5, "1.5", "abc", "\u0661.\u0665.\u0660", "../1.5.0", "1.5.0\n"])
def test_what_is_no_version_is_refused_wherever_it_is_written(tmp_path: Path, written: Any) -> None:
    text = str(written)
    sentence = re.escape(f"`{text}` is not a version of ExecuTorch")
    with pytest.raises(InputError, match=sentence):
        read_versions(text)
    with pytest.raises(ValidationError, match=sentence):
        ExecutorchVersions.model_validate(written)
    for field in ("export", "runner"):
        with pytest.raises(ValidationError):
            ExecutorchVersions.model_validate({field: written})
    with pytest.raises(WheelError, match=sentence):
        find_build_inputs(host_platform(), tmp_path / "runners", text)
    use = Use("sme2_off", "timing", text)
    with pytest.raises(RunnerError, match=sentence):
        register_runner(tmp_path, tmp_path / "runners", platform="linux-x86_64", use=use, provenance="here")
