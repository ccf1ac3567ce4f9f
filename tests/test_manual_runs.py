"""The commands of README and docs are run: those that read a farm here, in the order of the pages, others elsewhere."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from flows.warehouse.publish import load_and_publish
from tests.fixtures.command import Command, DataFolder
from tests.fixtures.paths import ROOT
from tests.fixtures.warehouse import LINEAR
from tests.test_manual import PAGES, SHELL, blocks

# Commands that measure, build, serve, or need devices or others' files, by how they begin, and what runs them.
ELSEWHERE = {
    "sweep": "docs/skills/run-a-sweep/SKILL.md",
    "model check": "docs/skills/onboard-a-model/SKILL.md",
    "model export": "tests/flows/cli/test_compare_files.py",
    "model fetch": "tests/flows/cli/test_model_names.py",
    "compare old.pte": "tests/flows/cli/test_compare_files.py",
    "compare --base": "docs/skills/gate-a-pull-request/SKILL.md",
    "bisect": "docs/skills/explain-a-regression/SKILL.md",
    "server": "tests/deployments/test_team_server.py",
    "devices runner": "docs/skills/build-runners/SKILL.md",
    "devices certify": "docs/skills/validate-a-farm/SKILL.md",
    "devices --inventory": "docs/skills/add-a-device/SKILL.md",
    "devices probe": "docs/skills/add-a-device/SKILL.md",
    "devices why": "docs/skills/add-a-device/SKILL.md",
    "devices queue": "tests/flows/cli/test_devices.py",
    "doctor": "docs/skills/set-up-a-farm/SKILL.md",
    "site --publish": "tests/flows/warehouse/test_site.py",
    "site": "tests/flows/warehouse/test_site.py",
    "trace 3f0c1a2b4d5e6f70 -o run.json --view": "tests/flows/cli/test_trace_view.py",
    "warehouse import-kit": "tests/flows/cli/test_kit.py",
}
HERE = ("site report",)


def elsewhere(command: str) -> str | None:
    """Return what runs a command elsewhere, if anything."""
    words = command.removeprefix("etfarm ")
    return None if words in HERE else next((ELSEWHERE[key] for key in ELSEWHERE if words.startswith(key)), None)


def test_what_is_run_elsewhere_is_there() -> None:
    for key, path in ELSEWHERE.items():
        name = re.match(r"[a-z]+( [a-z][a-z-]*)?(?![\w.])", key)
        assert name
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(r"\W+".join(name[0].split()), text), f"{path}: etfarm {key}"


@pytest.fixture
def documented(data: DataFolder, tmp_path: Path) -> Path:
    """A folder with the farm that the manual names: its models, devices, nights, sweeps and a session."""
    names = [("mobilenet_v2", "this-machine"), ("mobilenet_v2", "pixel-1"), ("voice", "pixel-8")]
    for night in ("2026-11-01", "2026-11-02", "2026-11-20"):
        sweep = {"sweep_id": f"smoke-{night}", "name": "smoke", "night": night}
        for model, device in names:
            for precision in ("fp32", "fp16"):
                changes: dict[str, Any] = {"model__precision": precision, "device__name": device, "sweep": sweep}
                data.session([(10_000_000, {LINEAR: 6_000_000})] * 3, model__name=model, **changes)
    first = {"sweep_id": "smoke-2026-11-01", "name": "smoke", "night": "2026-11-01"}
    bundle = data.session([5_000_000] * 3, session_id="3f0c1a2b4d5e6f70", sweep=first, model__name="mobilenet_v2")
    for name in ("qwen@decode", "llama@decode"):
        data.session([1_000_000], sweep=first, model__name=name, model__tokens=1, model__kv_depth=16)
    (tmp_path / "some.etdump").write_bytes((bundle / "model.etdump").read_bytes())
    load_and_publish(data.workspace, [data.bundles])
    return tmp_path


@pytest.mark.thorough
def test_every_command_that_reads_a_farm_ends_well_in_the_order_of_the_pages(
    documented: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(documented)
    inventory, *_ = blocks("yaml", PAGES["docs/devices.md"])
    (documented / "inventory.yaml").write_text(inventory, encoding="utf-8")
    monkeypatch.setenv("ETFARM_INVENTORY", "inventory.yaml")
    run = [each for each in SHELL if elsewhere(each) is None]
    assert len(run) > 40
    for written in run:
        ended = command(*shlex.split(written)[1:])
        assert ended.code == 0, f"{written}: {ended.err}"
        assert ended.out, written
