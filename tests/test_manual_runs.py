"""The commands of README and docs are run: those that read a farm here, in the order of the pages, others elsewhere."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from flows.warehouse.publish import load_and_publish
from sql.warehouse import query
from tests.fixtures.command import Command, DataFolder
from tests.fixtures.warehouse import LINEAR
from tests.test_manual import PAGES, SHELL, blocks

# Commands that measure, build, serve, or need devices or others' files: playbooks and other tests run them.
ELSEWHERE = (
    *("sweep", "model check", "model export", "model fetch", "compare old.pte", "compare --base", "bisect", "server"),
    *("compare --executorch", "upgrade check"),
    *(f"devices {word}" for word in ("runner", "certify", "--inventory", "probe", "why", "queue")),
    *("doctor", "site --publish", "warehouse import-kit"),
    *(f"trace 3f0c1a2b4d5e6f70 -o {word}" for word in ("run.json --view", "n.json")),
)


def is_run_here(written: str) -> bool:
    words = written.removeprefix("etfarm ")
    return words == "site report" or not words.startswith((*ELSEWHERE, "site"))


@pytest.fixture
def documented(data: DataFolder, tmp_path: Path) -> Path:
    """A folder with the farm that the manual names: its models, devices, nights, sweeps and a session."""
    names = [
        ("mobilenet_v2@load=mmap", "this-machine"),
        ("mobilenet_v2", "this-machine"),
        ("mobilenet_v2", "pixel-1"),
        ("voice", "pixel-8"),
    ]
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
    failed: dict[str, Any] = {"status": "failed", "reason_code": "export_failed", "reason": "weights.pt: no such file"}
    data.session(sweep=first, model__name="ranker", **failed)
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
    run = [each for each in SHELL if is_run_here(each)]
    assert len(run) > 40
    [(incident,)] = query(documented / "var/warehouse/warehouse.duckdb", "SELECT incident_id FROM incident")[1]
    for written in run:
        ended = command(*shlex.split(written.replace("3f0c1a2b ", f"{incident} "))[1:])
        assert ended.code == 0, f"{written}: {ended.err}"
        assert ended.out, written
