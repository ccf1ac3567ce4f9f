"""The lab's devices are certified as a user certifies a phone and a Mac."""

import json
from pathlib import Path

import pytest

from devices.inventory import load_inventory
from tests.fixtures.farm import Farm
from tests.fixtures.lab import Lab
from tests.fixtures.paths import LAB_INVENTORY
from tests.fixtures.waiting import SCALE

pytestmark = [pytest.mark.lab, pytest.mark.torch, pytest.mark.timeout(900)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "needed"),
    [("lab-phone-x86", "it needs root on the device"), ("lab-mac-1", "it needs macOS's hdiutil")],
)
def test_a_phone_and_a_mac_are_certified(lab: Lab, farm: Farm, name: str, needed: str) -> None:
    pytest.importorskip("executorch", reason="exports and the runner need the export extra")
    spec = next(spec for spec in load_inventory(LAB_INVENTORY).devices if spec.name == name)
    if spec.ssh_config:
        spec = spec.model_copy(update={"ssh_config": lab.data_dir / "lab/ssh_config"})
    entry = spec.model_dump(mode="json", exclude_unset=True)
    farm.inventory.write_text(json.dumps({"devices": [entry]}), encoding="utf-8")
    # when it is certified
    process = farm.start("devices", "certify", name, "--inventory", farm.inventory)
    out, err = process.communicate(timeout=600 * SCALE)
    # then all passed but for the noise of a machine that does other things besides, and what it cannot do is named
    lines = out.splitlines()
    assert len(lines) == 9, out + err
    statuses = [line.partition(":")[0].partition(" ")[2] for line in lines[:8]]
    noise = statuses.pop(4)
    assert statuses == ["passed"] * 5 + ["not tried", "passed"], out
    assert needed in lines[6]
    assert (process.returncode, noise) in ((0, "passed"), (1, "failed"))
    assert f"# Certification of {name}" in Path(lines[-1].rpartition("page: ")[2]).read_text(encoding="utf-8")
