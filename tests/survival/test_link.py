"""Links that are cut and daemons that are killed at any moment: reported soon, and no session is lost or doubled."""

import time
from collections.abc import Callable

import pytest

from tests.fixtures.survival import LAB_TEST, LONGEST_S, MAC, OTHER_MAC, PHONE, LabFarm, at_once
from tests.fixtures.survival_site import STAGES, MakeSite, Site
from tests.fixtures.waiting import SCALE, change_policy, wait_for
from tests.lab import faults
from tests.lab.lab_device import LabDevice

pytestmark = [*LAB_TEST, pytest.mark.fault]


def kill_adb_server(_: LabDevice) -> None:
    faults.kill_adb_server()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    ("what", "end", "names", "stage"),
    [
        *(("link cut", faults.cut_link, [PHONE, MAC], stage) for stage in STAGES),
        *(("adbd or sshd killed", faults.kill_daemon, [PHONE, MAC], stage) for stage in STAGES),
        *(("the adb server killed", kill_adb_server, [PHONE], stage) for stage in ("push", "run")),
    ],
)
def test_a_link_or_daemon_that_ends_and_comes_back_costs_no_session(
    lab_farm: LabFarm, site: MakeSite, what: str, end: Callable[[LabDevice], None], names: list[str], stage: str
) -> None:
    def end_and_mend(site: Site) -> None:
        # given sessions on a device whose link is cut in the second of them (the first push is the first's), or whose
        # daemon is killed with all connections and comes back by itself
        running = lab_farm.start_until(stage, site)
        since = time.time()
        end(site.part)
        lab_farm.pulls.go_on(site.name)
        if stage == "run" and what == "link cut":
            site.go_on()  # the job ends while nobody can see it
        # when the farm has noticed and the link is back
        lab_farm.wait_until_known(site, since)
        faults.restore_link(site.part)
        if stage == "run" and what != "link cut":
            site.go_on()
        # then every session succeeded, run once
        tally = running.result(LONGEST_S)
        lab_farm.assert_known(f"{what} during {stage}", site, since, "lost", "reconnecting")
        assert (tally.succeeded, tally.discarded, tally.failed) == (2, 1, 0)
        assert len(site.starts()) == 3
        lab_farm.assert_complete(site)

    at_once(end_and_mend, [site(name) for name in names])


def test_a_link_cut_for_good_fails_what_is_left_and_stops_no_other_device(
    lab_farm: LabFarm, site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a device that goes on, and two whose links are cut during a run, for longer than the farm waits
    for step in ("PUSH", "JOB", "COLLECT"):
        change_policy(monkeypatch, step, back_within_s=1.0 * SCALE)
    change_policy(monkeypatch, "PROBE", within_s=0.0)
    change_policy(monkeypatch, "SSH_CONNECT", timeout_s=2.0 * SCALE)
    change_policy(monkeypatch, "ADB_RECONNECT", within_s=1.5 * SCALE)
    healthy = site(OTHER_MAC)
    healthy.at_start(2, "hold")
    other = lab_farm.start(healthy, deadline_s=2 * LONGEST_S)
    ended: list[float] = []

    def cut(site: Site) -> None:
        running = lab_farm.start_until("run", site)
        since = time.time()
        faults.cut_link(site.part)
        tally = running.result(LONGEST_S)
        ended.append(time.time())
        # then the farm knows soon, and all that was not done is failed: device lost, or refused as adb puts it
        lab_farm.assert_known("link cut for good", site, since, "lost", "reconnecting")
        codes = [record.reason_code for record in lab_farm.records(site) if record.status == "failed"]
        assert (tally.succeeded, tally.discarded, tally.failed) == (0, 1, 2)
        assert set(codes) <= {"device_lost", "device_refused"}
        # and when the link is back, the next start runs what was missing
        faults.restore_link(site.part)
        site.go_on()
        lab_farm.complete(site, missing=2)

    def go_on_when_the_others_are_lost(_: Site) -> None:
        wait_for(lambda: len(ended) == 2, "the lost devices' part of the sweep to end", longest_s=120)
        healthy.go_on()
        assert other.result(LONGEST_S).succeeded == 2

    sick = [site(PHONE), site(MAC)]
    at_once(lambda each: go_on_when_the_others_are_lost(each) if each is healthy else cut(each), [*sick, healthy])
    lab_farm.assert_complete(healthy, deadline_s=2 * LONGEST_S)
