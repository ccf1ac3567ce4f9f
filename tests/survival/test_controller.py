"""Farms that are killed in any stage, and two farms on one device: nothing is lost, doubled or measured at once."""

import time
from pathlib import Path

import pytest

from tests.fixtures.simulated import counts
from tests.fixtures.survival import LAB_TEST, LONGEST_S, MAC, PHONE, LabFarm, at_once
from tests.fixtures.survival_site import NIGHT, STAGES, MakeSite, Site
from tests.fixtures.waiting import wait_for

pytestmark = [*LAB_TEST, pytest.mark.fault]


@pytest.mark.parametrize("stage", [*STAGES, "bundle"])
def test_a_killed_farm_started_again_completes_what_was_missing(
    lab_farm: LabFarm, site: MakeSite, tmp_path: Path, stage: str
) -> None:
    def kill(site: Site) -> None:
        # given a farm that is killed in the first push, or in the second session's run, pull or bundle
        farm = lab_farm.start_apart(site, tmp_path / site.name, stage)
        site.stop_at(stage)
        held = tmp_path / site.name / "held"

        def is_there() -> bool:
            return held.exists() if stage in ("pull", "bundle") else site.is_at(stage)

        wait_for(lambda: farm.poll() is not None or is_there(), f"{stage} on {site.name}", pause_s=0.002)
        assert farm.poll() is None, (tmp_path / site.name / "log").read_text(encoding="utf-8")
        farm.kill()
        farm.wait()
        # then there are complete bundles of what was done and nothing else
        done = lab_farm.records(site)
        assert all(counts(record) for record in done)
        assert len(done) == (0 if stage == "push" else 1)
        # and the next start takes the device over at once, collects a job that had ended, and runs the rest
        since = time.time()
        lab_farm.complete(site, missing=3 - len(done), collected=stage in ("pull", "bundle"))
        print(f"KNOWN | farm killed during {stage} | {site.spec.transport} | {time.time() - since:.1f} s | complete")
        assert not list((lab_farm.data_dir / "bundles" / NIGHT.sweep_id).glob(f".part-{farm.pid}-*"))

    at_once(kill, [site(PHONE), site(MAC)])


def test_two_farms_on_one_device_never_measure_at_once(lab_farm: LabFarm, site: MakeSite, tmp_path: Path) -> None:
    def share(site: Site) -> None:
        # given a farm in the middle of its second session, and another one, with an inventory of its own, that waits
        first = lab_farm.start_apart(site, tmp_path / f"{site.name}-first")
        site.stop_at("run")
        wait_for(lambda: first.poll() is not None or site.is_at("run"), "the first farm's session")
        assert first.poll() is None, (tmp_path / f"{site.name}-first/log").read_text(encoding="utf-8")
        other = site.renamed(f"{site.name}-of-another-farm")
        second = lab_farm.start_apart(other, tmp_path / f"{site.name}-second", lease_wait_s=LONGEST_S)
        log = tmp_path / f"{site.name}-second/log"
        wait_for(lambda: "; waiting" in log.read_text(encoding="utf-8"), "the second farm to ask for the device")
        assert lab_farm.records(other) == []
        # when the holder is killed with -9, and started again while the other farm measures
        first.kill()
        first.wait()
        since = time.time()
        wait_for(lambda: lab_farm.records(other), "the other farm to take over")
        print(f"KNOWN | holder killed -9 | {site.spec.transport} | {time.time() - since:.1f} s | the other measured")
        assert lab_farm.start(site, lease_wait_s=LONGEST_S).result(LONGEST_S).failed == 0
        assert second.wait(LONGEST_S) == 0
        # then each has all of its sessions, and no two runners were ever there at once
        lab_farm.assert_complete(site)
        lab_farm.assert_complete(other)
        assert len(site.starts()) == 3 + 3 + 1  # the session under way at the kill was started twice

    at_once(share, [site(PHONE), site(MAC)])


def test_a_farm_whose_lease_ran_out_leaves_the_device_to_the_other(lab_farm: LabFarm, site: MakeSite) -> None:
    def expire(site: Site) -> None:
        # given a farm cut off for so long that its lease ran out in the middle of a session
        running = lab_farm.start_until("run", site)
        (held,) = site.machine.glob("lease-*/*")
        held.rename(f"{held.with_suffix('')}.0")
        # when another farm takes the device
        since = time.time()
        other = site.renamed(f"{site.name}-of-another-farm")
        assert lab_farm.start(other).result(LONGEST_S).succeeded == 2
        # then the first knows it, measures no more, and completes its part when it is started again
        assert running.result(LONGEST_S).failed == 2
        lab_farm.assert_known("lease lost", site, since)
        codes = {record.reason_code for record in lab_farm.records(site) if record.status == "failed"}
        assert codes == {"device_lost", "lease_lost"}
        lab_farm.assert_complete(other)
        lab_farm.complete(site, missing=2)

    at_once(expire, [site(PHONE), site(MAC)])
