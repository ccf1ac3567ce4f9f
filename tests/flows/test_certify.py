"""`etfarm devices certify`: a device is accepted by doing on it all that the farm does, and the page tells how."""

import signal
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from devices.inventory import DeviceSpec, load_inventory, open_device
from devices.ondevice.lease import current_holder
from flows.certify import certify as acceptance
from tasks.judge.certify.subject import open_subject
from tests.fixtures.farm import Farm
from tests.fixtures.waiting import SCALE

A_NIGHT = date(2026, 11, 20)


def certify(farm: Farm) -> tuple[int | None, dict[str, str], str]:
    """Return the exit code, each check's line by its name, and the page."""
    page = farm.folder / "page.md"
    process = farm.start("devices", "certify", "here", "--inventory", farm.inventory, "-o", page)
    out, err = process.communicate(timeout=600 * SCALE)
    assert page.exists(), out + err
    lines = [line.split(": ", 2) for line in out.splitlines()[:-1]]
    statuses = {what.partition(",")[0]: f"{status.partition(' ')[2]}: {text}" for status, what, text in lines}
    return process.returncode, statuses, page.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.timeout(900)
def test_this_machine_is_certified(farm: Farm) -> None:
    pytest.importorskip("executorch", reason="exports and the runner need the export extra")
    empty = farm.warehouse.read_bytes()
    code, lines, page = certify(farm)
    # then every check was done, and all passed but for the noise of a machine that does other things besides, and the
    # full disk of one on which nobody may mount a disk
    noise, disk = lines.pop("noise"), lines.pop("disk full")
    assert {name: line for name, line in lines.items() if not line.startswith("passed: ")} == {}
    assert list(lines) == ["reached", "transfer", "runner", "SME proof", "kill and reattach", "left behind"]
    assert (code, noise.partition(":")[0]) in ((0, "passed"), (1, "failed"))
    assert "(" in noise
    assert disk.startswith(("passed: ", "not tried: it needs "))
    assert "1 result of 1 start of the runner after kill -9 of the farm" in lines["kill and reattach"]
    assert "killed by SIGKILL" in lines["kill and reattach"]
    assert "2 models in sme2_off" in lines["SME proof"]
    assert "- 8 passed: left behind, " in page
    # and neither the device nor the user's warehouse has anything of it
    assert not (farm.folder / "device").exists()
    assert not (farm.data_dir / "bundles").exists()
    assert list((farm.data_dir / "warehouse").iterdir()) == [farm.warehouse]
    assert farm.warehouse.read_bytes() == empty
    assert (farm.data_dir / "certify/here/warehouse").exists()


def test_a_device_that_does_not_answer_stops_all_other_checks(tmp_path: Path) -> None:
    root = str(tmp_path / "device")
    spec = DeviceSpec(name="here", transport="ssh", address="127.0.0.1", port=9, user="nobody", root=root)
    first, *others = acceptance.certify(spec, tmp_path / "var", A_NIGHT)
    assert first.startswith("failed: reached, ")
    assert {line.partition(":")[0] for line in others} == {"not tried"}


def test_a_certification_that_is_ended_clears_the_device(farm: Farm) -> None:
    process = farm.start("devices", "certify", "here", "--inventory", farm.inventory)
    assert process.stdout
    assert process.stdout.readline().startswith("1 passed: reached")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120 * SCALE)
    assert process.returncode == 128 + signal.SIGTERM
    assert not (farm.folder / "device/certify").exists()
    (spec,) = load_inventory(farm.inventory).devices
    with open_device(spec) as device:
        assert current_holder(device) is None


SAME = (1.002, 0.990, 1.014, 0.012)
SLOWER = (1.050, 1.040, 1.060, 0.010)


@pytest.mark.parametrize(
    ("first", "second", "status", "text"),
    [
        (SAME, None, "passed", "1.002 (0.990 to 1.014) B / A: no difference found; a change of 1.2 % or more would"),
        (SLOWER, SAME, "passed", "1.002 (0.990 to 1.014) B / A: no difference found"),
        (SLOWER, SLOWER, "failed", "1.050 (1.040 to 1.060) and 1.050 (1.040 to 1.060) B / A: different twice"),
    ],
)
def test_a_content_that_differs_from_itself_twice_fails_the_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: Any, second: Any, status: str, text: str
) -> None:
    # given a sweep whose comparison has this result, and another one if it is measured again
    results = {"certify-1": first, "certify-2": second}
    monkeypatch.setattr(acceptance, "run_to_end", lambda *_: "certify-2")
    monkeypatch.setattr(acceptance, "ask_warehouse", lambda *_, sweep_id: [results[sweep_id]])
    spec = DeviceSpec(name="here", transport="local", root=str(tmp_path / "device"))
    with open_subject(spec, tmp_path / "var", A_NIGHT) as subject:
        subject.proof_sweep = "certify-1"
        finding = acceptance.noise(subject)
        # then one difference may be chance, two are not
        assert finding.status == status
        assert finding.text.startswith(text)
        # and the times of an emulated device are not judged
        subject.spec = subject.spec.model_copy(update={"emulated": True})
        assert acceptance.noise(subject).status == "not tried"
