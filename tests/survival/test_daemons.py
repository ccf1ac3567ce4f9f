"""Daemons that are killed and come back, and devices that answer and refuse: reported at once, in one sentence."""

import contextlib
import socket
import time
from pathlib import Path

import pytest

from tests.fixtures.lab import Lab
from tests.fixtures.survival import LAB_TEST, LONGEST_S, MAC, PHONE, LabFarm, at_once
from tests.fixtures.survival_site import STAGES, MakeSite, Site
from tests.lab import adb_server, faults, loopback
from tests.lab.unusable_phone import UnusablePhone

pytestmark = LAB_TEST


@pytest.mark.fault(
    stage="{stage}",
    done="kill -9 of adbd or sshd with its connections",
    holds="the farm reconnects and every session succeeds",
)
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("stage", STAGES)
def test_a_daemon_that_is_killed_and_back_costs_no_session(lab_farm: LabFarm, site: MakeSite, stage: str) -> None:
    def kill(site: Site) -> None:
        # given adbd or sshd killed with all connections in the middle of a session
        running = lab_farm.start_until(stage, site)
        since = time.time()
        faults.kill_daemon(site.part)
        lab_farm.pulls.go_on(site.name)
        if stage == "run":
            lab_farm.wait_until_known(site, since)
            site.go_on()
        # then the farm reconnects and every session succeeds, run once
        assert running.result(LONGEST_S).succeeded == 2
        lab_farm.assert_known(f"adbd or sshd killed during {stage}", site, since, "lost", "reconnecting")
        assert len(site.starts()) == 3
        lab_farm.assert_complete(site)

    at_once(kill, [site(PHONE), site(MAC)])


@pytest.mark.fault(
    stage="{stage}", done="kill -9 of the adb server", holds="it is started again and every session succeeds"
)
@pytest.mark.parametrize("stage", ["push", "run"])
def test_a_killed_adb_server_costs_no_session(lab_farm: LabFarm, site: MakeSite, stage: str) -> None:
    phone = site(PHONE)
    running = lab_farm.start_until(stage, phone)
    since = time.time()
    faults.kill_adb_server()
    if stage == "run":
        lab_farm.wait_until_known(phone, since)
        phone.go_on()
    assert running.result(LONGEST_S).succeeded == 2
    lab_farm.assert_known(f"adb server killed during {stage}", phone, since, "lost", "reconnecting")
    assert len(phone.starts()) == 3
    lab_farm.assert_complete(phone)


@pytest.mark.fault(
    stage="connect",
    done="a phone is unauthorized or offline, a host key is wrong",
    holds="each session fails with what to do",
)
def test_a_phone_that_is_unauthorized_or_offline_and_a_wrong_host_key_are_reported(
    lab_farm: LabFarm, site: MakeSite, lab_up: Lab, tmp_path: Path
) -> None:
    phone, mac = site(PHONE), site(MAC)
    config = (lab_up.var / "lab/ssh_config").read_text(encoding="utf-8")
    known_hosts = lab_up.var / "lab/ssh/known_hosts"
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


@pytest.mark.fault(
    stage="connect",
    done="the serial of one phone begins with that of another",
    holds="no session runs on the wrong phone",
)
def test_of_two_phones_with_one_serial_prefix_the_right_one_is_used(
    lab_farm: LabFarm, lab_up: Lab, tmp_path: Path, site: MakeSite
) -> None:
    # given phones on ports of which one begins with the other, and the farm's root on each
    port = next(port for port in range(5600, 6500) if is_free(port) and is_free(10 * port + 1))
    longer_port = 10 * port + 1
    phone = site(PHONE)

    def at(port: int) -> Site:
        (tmp_path / str(port)).mkdir()
        changes = {"address": f"127.0.0.1:{port}", "root": str(tmp_path / str(port))}
        return Site(
            phone.spec.model_copy(update={"name": f"phone-{port}", **changes}), tmp_path / str(port), phone.part
        )

    short, long = at(port), at(longer_port)
    with loopback.adbd(lab_up.packages, longer_port):
        assert adb_server.connect(f"127.0.0.1:{longer_port}") == "device"
        # when the short one is not there, its sessions do not go to the other
        since = time.time()
        assert lab_farm.start(short).result(LONGEST_S).failed == 3
        lab_farm.assert_known("two phones with one serial prefix", short, since, "failed to connect")
        assert short.starts() == []
        # and when it is, each has its own
        with loopback.adbd(lab_up.packages, port):
            at_once(lambda each: lab_farm.complete(each, missing=3), [short, long])
            assert {line.split()[1] for line in (short.root / "ran").read_text().splitlines()} == {str(port)}
            assert {line.split()[1] for line in (long.root / "ran").read_text().splitlines()} == {str(longer_port)}
    for each in (port, longer_port):
        with contextlib.suppress(adb_server.AdbServerError):
            adb_server.ask(f"host:disconnect:127.0.0.1:{each}")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
