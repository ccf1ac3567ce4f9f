"""Devices that are full, late, restarted or hang, and runners that do not end: reported soon, others are unharmed."""

import signal
import time
from datetime import UTC, datetime

import pytest

from tasks.measure.health import Registry
from tasks.store.workspace import Workspace
from tests.fixtures.lab import Lab
from tests.fixtures.survival import LAB_TEST, LONGEST_S, MAC, PHONE, LabFarm, at_once
from tests.fixtures.survival_site import MakeSite, Site
from tests.fixtures.waiting import SCALE
from tests.lab import faults, processes

pytestmark = [*LAB_TEST, pytest.mark.fault]
DEADLINE_S = 2 * SCALE


def test_a_disk_that_a_run_fills_fails_that_session_alone(lab_farm: LabFarm, site: MakeSite) -> None:
    def fill(site: Site) -> None:
        # given a runner that writes more than there is room for
        site.at_start(2, "noise")
        running = lab_farm.start_until("run", site)
        faults.fill_disk(site.part, left_bytes=8 << 20)
        since = time.time()
        site.go_on()
        try:
            tally = running.result(LONGEST_S)
        finally:
            faults.empty_disk(site.part)
        # then its log is gone with it and the next session has room
        lab_farm.assert_known("disk full during run", site, since, "disk is full")
        assert (tally.succeeded, tally.failed) == (1, 1)
        lab_farm.complete(site, missing=1)

    at_once(fill, [site(PHONE), site(MAC)])


def test_a_wrong_clock_changes_nothing(lab_farm: LabFarm, site: MakeSite, lab_up: Lab) -> None:
    sites = [site(PHONE), site(MAC)]

    def measure_with_a_wrong_clock(site: Site) -> None:
        since = time.time()
        assert lab_farm.start(site).result(LONGEST_S).succeeded == 2
        assert lab_farm.words(site, since) == []
        for record in lab_farm.records(site):
            assert since - 1 <= datetime.fromisoformat(record.started_at).astimezone(UTC).timestamp() <= time.time()
            assert record.wall_s is not None
            assert 0 <= record.wall_s < 10 * SCALE

    try:
        # given devices that are a day ahead and a day behind
        for each, seconds in zip(sites, (86_400, -86_400), strict=True):
            faults.skew_clock(each.part, lab_up.packages, seconds)
        lab_up.up()
        at_once(measure_with_a_wrong_clock, sites)
    finally:
        for each in sites:
            faults.skew_clock(each.part, lab_up.packages, 0)
        lab_up.up()
    # and when the clocks are put right nothing is left to do
    at_once(lambda each: lab_farm.complete(each, missing=0), sites)


def test_a_restart_during_a_run_is_seen_as_such(lab_farm: LabFarm, site: MakeSite, lab_up: Lab) -> None:
    def restart(site: Site) -> None:
        running = lab_farm.start_until("run", site)
        since = time.time()
        faults.reboot(site.part, lab_up.packages)
        # then the session under way failed for that reason and the next one succeeded
        tally = running.result(LONGEST_S)
        lab_farm.assert_known("device restarted during run", site, since, "lost", "reconnecting")
        assert (tally.succeeded, tally.failed) == (1, 1)
        (failed,) = (record for record in lab_farm.records(site) if record.status == "failed")
        assert failed.reason_code == "device_lost"
        assert "was restarted while a job ran on it" in str(failed.reason)
        lab_farm.complete(site, missing=1)

    at_once(restart, [site(PHONE), site(MAC)])


def test_a_device_that_answers_probes_and_hangs_on_jobs_is_known(lab_farm: LabFarm, site: MakeSite) -> None:
    def hang(site: Site) -> None:
        # given a job that never ends, and whose watchdog stands still, on a device that does everything else
        running = lab_farm.start_until("run", site, deadline_s=DEADLINE_S)
        began = time.time()
        assert site.part.pid is not None
        below = {pid: processes.command_of(pid) for pid in processes.descendants(site.part.pid)}
        of_jobs = {pid for pid, words in below.items() if len(words) > 2 and "kill -TERM 0" in words[2]}
        (watchdog,) = {child for job in of_jobs for child in processes.children(job)} & of_jobs
        processes.kill(watchdog, signal.SIGSTOP)
        # then the farm gives that session up, ends its job, and goes on
        tally = running.result(LONGEST_S)
        late_s = began + DEADLINE_S
        lab_farm.assert_known(
            "device hangs on jobs", site, late_s, "did not report the end of the job", "12 s after its deadline"
        )
        assert (tally.succeeded, tally.failed) == (1, 1)
        lab_farm.complete(site, missing=1, deadline_s=DEADLINE_S)

    at_once(hang, [site(PHONE), site(MAC)])


def test_a_device_that_fails_three_sessions_in_a_row_is_given_up(lab_farm: LabFarm, site: MakeSite) -> None:
    # given a device that answers probes, and on which no job can be started
    mac = site(MAC)
    (mac.root / "sessions").write_text("a file where the sessions should be", encoding="utf-8")
    since = time.time()
    tally = lab_farm.start(mac, sessions=6).result(LONGEST_S)
    # then it is not tried for every one of its sessions, and the reason is held against it
    assert (tally.succeeded, tally.failed) == (0, 7)
    lab_farm.assert_known("no job can be started", mac, since, "cannot start a job in")
    reasons = [str(record.reason) for record in lab_farm.records(mac)]
    assert sum("given up after 3 sessions in a row" in reason for reason in reasons) == 4
    assert "cannot start a job" in str(Registry(Workspace(lab_farm.data_dir).registry).health(MAC))
    # and when it is mended all is run
    (mac.root / "sessions").unlink()
    lab_farm.complete(mac, missing=7, sessions=6)
