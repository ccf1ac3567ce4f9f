"""Daemons that are killed and come back, and devices that answer and refuse: reported at once, in one sentence."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.lab import Lab
from tests.fixtures.survival import LAB_TEST, LONGEST_S, MAC, PHONE, LabFarm, at_once
from tests.fixtures.survival_site import STAGES, MakeSite, Site
from tests.lab import faults
from tests.lab.lab_device import LabDevice
from tests.lab.unusable_phone import UnusablePhone

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


@pytest.mark.fault
def test_a_phone_that_is_unauthorized_or_offline_and_a_wrong_host_key_are_reported(
    lab_farm: LabFarm, site: MakeSite, lab_up: Lab, tmp_path: Path
) -> None:
    phone, mac = site(PHONE), site(MAC)
    config = (lab_up.data_dir / "lab/ssh_config").read_text(encoding="utf-8")
    known_hosts = lab_up.data_dir / "lab/ssh/known_hosts"
    first, second = known_hosts.read_text(encoding="utf-8").splitlines()
    swapped = [f"{first.split()[0]} {second.split(' ', 1)[1]}", second]
    (tmp_path / "known_hosts").write_text("\n".join(swapped) + "\n", encoding="utf-8")
    (tmp_path / "ssh_config").write_text(config.replace(str(known_hosts), str(tmp_path / "known_hosts")), "utf-8")
    with UnusablePhone() as unauthorized, UnusablePhone(silent=True) as offline:
        cases = {
            "unauthorized": (phone.renamed("unauthorized", address=unauthorized.serial), ["allow USB debugging"]),
            "offline": (phone.renamed("offline", address=offline.serial), ["offline"]),
            "wrong host key": (
                mac.renamed("wrong-key", ssh_config=tmp_path / "ssh_config"),
                ["host key of 10.77.0.13:22 changed", "ssh-keygen -R"],
            ),
        }
        since = time.time()

        def refuse(site: Site) -> None:
            # then no session is run, each is failed with the sentence that helps
            tally = lab_farm.start(site).result(LONGEST_S)
            case, (_, said) = next((case, held) for case, held in cases.items() if held[0] is site)
            lab_farm.assert_known(case, site, since, *said)
            assert (tally.succeeded, tally.failed) == (0, 3)
            assert {record.reason_code for record in lab_farm.records(site)} == {"device_refused"}

        at_once(refuse, [site for site, _ in cases.values()])
    assert phone.starts() == mac.starts() == []
    # and with the right address and key the next start runs all
    again = phone.renamed("unauthorized")
    lab_farm.complete(again, missing=3)
