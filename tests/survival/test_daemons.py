"""Daemons that are killed and come back: reported at once, in one sentence."""

import time
from collections.abc import Callable

import pytest

from tests.fixtures.survival import LAB_TEST, LONGEST_S, MAC, PHONE, LabFarm, at_once
from tests.fixtures.survival_site import STAGES, MakeSite, Site
from tests.lab import faults
from tests.lab.lab_device import LabDevice

pytestmark = LAB_TEST


def kill_adb_server(_: LabDevice) -> None:
    faults.kill_adb_server()


@pytest.mark.fault
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    ("daemon", "kill", "names", "stage"),
    [
        *(("adbd or sshd", faults.kill_daemon, [PHONE, MAC], stage) for stage in STAGES),
        *(("the adb server", kill_adb_server, [PHONE], stage) for stage in ("push", "run")),
    ],
)
def test_a_daemon_that_is_killed_and_back_costs_no_session(
    lab_farm: LabFarm, site: MakeSite, daemon: str, kill: Callable[[LabDevice], None], names: list[str], stage: str
) -> None:
    def break_it(site: Site) -> None:
        # given a daemon killed with all connections in the middle of a session
        running = lab_farm.start_until(stage, site)
        since = time.time()
        kill(site.part)
        lab_farm.pulls.go_on(site.name)
        if stage == "run":
            lab_farm.wait_until_known(site, since)
            site.go_on()
        # then the farm reconnects and every session succeeds, run once
        assert running.result(LONGEST_S).succeeded == 2
        lab_farm.assert_known(f"{daemon} killed during {stage}", site, since, "lost", "reconnecting")
        assert len(site.starts()) == 3
        lab_farm.assert_complete(site)

    at_once(break_it, [site(name) for name in names])
