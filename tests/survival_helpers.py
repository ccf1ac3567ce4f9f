"""Farms and devices to break: the virtual lab, a stand-in runner that stops where a test wants, and who said what when.

A test starts the farm's part for one device (`measure_device`, lease and all), breaks something at a certain stage,
mends it, starts the farm again and lets `Farm.assert_whole` count. Needs root and the lab's packages.
"""

import contextvars
import fcntl
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import httpx
import pytest
from lab_fixtures import INVENTORY, Lab, PackageError, Packages, default_cache, faults, journal
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings
from survival_site import LONG_FILE_BYTES, NIGHT, PLATFORM, RUNNER, Site, publish_stand_in, write_export

from devices.device import Device
from devices.inventory import DeviceSpec, load_inventory
from flows import device_session
from flows.device_session import DeviceJob, DeviceTally, Exported
from tasks.bundle import SessionRecord, bundles_of, read_bundle
from tasks.export import read_export
from tasks.plan import FIRST_SESSION, PlannedSession, plan_device, planned_of
from tasks.runner_bundle import find_runner
from tasks.spec import SweepSpec

PHONE, MAC, OTHER_MAC = "lab-phone-x86", "lab-mac-1", "lab-mac-2"
# The aim is 15 s; two busy cores may take a little longer.
KNOWS_S = 20.0
_LONGEST_WAIT_S = 60.0
_REPOSITORY = Path(__file__).resolve().parent.parent

_CONTROLLER = """
import sys
from pathlib import Path
from flows.device_session import DeviceJob, measure_device
measure_device(DeviceJob.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8")))
"""


def wait_for(holds: Callable[[], Any], what: str, longest_s: float = _LONGEST_WAIT_S, pause_s: float = 0.01) -> None:
    """Come back as soon as it holds; fails the test if it does not in time."""
    end = time.monotonic() + longest_s
    while not holds():
        assert time.monotonic() < end, f"waited {longest_s:g} s in vain: {what}"
        time.sleep(pause_s)


class Told(logging.Handler):
    """What the farm says of its devices, and when."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[tuple[float, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.created, record.getMessage()))

    def of(self, name: str, since: float) -> list[tuple[float, str]]:
        return [(at, line) for at, line in self.lines if at >= since and line.startswith(f"{name}:")]


class Farm:
    """A var folder with one model and the stand-in runner, and the farm's part for one device started on it."""

    def __init__(self, folder: Path, told: Told) -> None:
        self.var = folder / "var"
        self.told = told
        self.fetching: dict[str, Path] = {}
        self.started: list[Future[DeviceTally]] = []
        self._export = write_export(self.var / "exports/linear", LONG_FILE_BYTES)
        publish_stand_in(folder, self.var, RUNNER)

    def job(self, site: Site, **settings: Any) -> DeviceJob:
        """Two sessions and the one before them that is discarded, unless `settings` of the sweep say otherwise."""
        chosen = {"sessions": 2, "deadline_s": 30, "settle_s": 0, "lease_wait_s": 30, **settings}
        spec = SweepSpec(
            name="survival", models=["linear"], variants=["sme2_off"], executions=3, warmup_executions=1, **chosen
        )
        return DeviceJob(
            spec=spec,
            sweep=NIGHT,
            device=site.spec,
            facts={"os": "android" if site.spec.transport == "adb" else "macos"},
            platform=PLATFORM,
            exports=[Exported(model="linear", precision="fp32", folder=self._export)],
            var=self.var,
        )

    def start(self, site: Site, **settings: Any) -> "Future[DeviceTally]":
        """Measure on the device in a thread of its own, as a sweep does."""
        job = self.job(site, **settings)
        self.started.append(in_background(lambda: device_session.measure_device(job)))
        return self.started[-1]

    def start_until(self, stage: str, site: Site, **settings: Any) -> "Future[DeviceTally]":
        """The same, and come back in the middle of a stage: the first push, the second session's run or its pull."""
        site.stop_at(stage)
        running = self.start(site, **settings)
        scratch = lambda: self.fetching.get(site.name)  # noqa: E731
        wait_for(lambda: running.done() or site.is_at(stage, scratch()), f"{stage} on {site.name}", pause_s=0.002)
        assert not running.done(), running
        return running

    def start_apart(self, site: Site, folder: Path, **settings: Any) -> "subprocess.Popen[bytes]":
        """Measure on the device in a process of its own, whose temporary files are in `folder`/tmp."""
        (folder / "tmp").mkdir(parents=True)
        written = folder / "job.json"
        written.write_text(self.job(site, **settings).model_dump_json(exclude_unset=True), encoding="utf-8")
        with (folder / "log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-c", _CONTROLLER, str(written)],
                cwd=_REPOSITORY,
                env=os.environ | {"TMPDIR": str(folder / "tmp")},
                stdout=log,
                stderr=log,
            )

    def records(self, site: Site) -> list[SessionRecord]:
        """Every bundle of the device, each checked against its hashes, in the order in which they were written."""
        folder = self.var / "bundles" / NIGHT.sweep_id
        found = [r for r in bundles_of(folder.parent, NIGHT.sweep_id) if r.device.name == site.name]
        return sorted((read_bundle(folder / r.session_id) for r in found), key=lambda record: record.ended_at)

    def planned(self, site: Site, **settings: Any) -> list[PlannedSession]:
        job = self.job(site, **settings)
        exports = {("linear", "fp32"): read_export(self._export)}
        runner = find_runner(self.var / "runners", PLATFORM, "sme2_off", "timing")
        runners = {("sme2_off", "timing"): runner}
        return plan_device(job.spec, NIGHT, site.name, sme2=None, exports=exports, runners=runners)  # type: ignore[arg-type]

    def words(self, site: Site, since: float) -> list[tuple[float, str]]:
        """What the farm said of the device since then, the first word first: warnings, and reasons of failures."""
        folder = self.var / "bundles" / NIGHT.sweep_id
        failed = [
            ((folder / record.session_id / "session.json").stat().st_mtime, str(record.reason))
            for record in self.records(site)
            if record.status == "failed"
        ]
        return sorted([*self.told.of(site.name, since), *((at, reason) for at, reason in failed if at >= since)])

    def wait_until_known(self, site: Site, since: float) -> None:
        """Come back when the farm has said something of the device since then."""
        wait_for(lambda: self.words(site, since), f"a word on {site.name}", KNOWS_S + 10)

    def assert_known(self, case: str, site: Site, since: float, *said: str) -> str:
        """The farm's first word on the device since then came within KNOWS_S and has all of `said`; returns it."""
        words = self.words(site, since)
        assert words, f"{case}: nothing was said of {site.name}"
        at, sentence = words[0]
        print(f"KNOWN | {case} | {site.spec.transport} | {at - since:.1f} s | {sentence}")
        assert at - since < KNOWS_S, sentence
        assert all(word in sentence for word in said), sentence
        assert "\n" not in sentence
        return sentence

    def assert_whole(self, site: Site, **settings: Any) -> None:
        """Every planned session has exactly one success, its last attempt; no attempt is missing or there twice."""
        attempts: dict[str, list[SessionRecord]] = {}
        for record in self.records(site):
            attempts.setdefault(planned_of(record).key, []).append(record)
        assert set(attempts) == {session.key for session in self.planned(site, **settings)}
        for records in attempts.values():
            assert sorted(record.attempt for record in records) == list(range(1, len(records) + 1))
            last = max(records, key=lambda record: record.attempt)
            assert [record for record in records if is_done(record)] == [last]
        assert not (site.root / "overlaps").exists(), "two runners measured at once"

    def complete(self, site: Site, *, missing: int, collected: bool = False, **settings: Any) -> None:
        """Start again after the mend: exactly what was missing is run, each once, and then all is there.

        One that is `collected` had ended on the device before and is not run again.
        """
        before = len(site.starts())
        tally = self.start(site, **settings).result(_LONGEST_WAIT_S)
        assert (tally.succeeded + tally.discarded, tally.failed, tally.invalid) == (missing, 0, 0), tally
        assert tally.already_done == len(self.planned(site, **settings)) - missing
        assert len(site.starts()) == before + missing - collected
        self.assert_whole(site, **settings)


def is_done(record: SessionRecord) -> bool:
    return record.status == "succeeded" or record.reason_code == FIRST_SESSION


def in_background(work: Callable[[], Any]) -> "Future[Any]":
    """Run it in a thread that ends with the tests if it never ends by itself; Prefect's settings go with it."""
    future: Future[Any] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def at_once(work: Callable[[Site], Any], sites: list[Site]) -> list[Any]:
    """Do the same to several devices side by side: most of it is waiting."""
    futures = [in_background(lambda site=site: work(site)) for site in sites]
    return [future.result(180) for future in futures]


def forget_slot(site: Site) -> None:
    """Free a killed farm's slot at the Prefect server, as the server itself does after 24 to 63 seconds."""
    url = f"{os.environ['PREFECT_API_URL']}/v2/concurrency_limits/device:{site.name}"
    # A server whose database is busy says 503 for a moment.
    wait_for(lambda: httpx.delete(url, timeout=30).status_code in (204, 404), f"the slot of {site.name}", pause_s=0.2)


@pytest.fixture(scope="module")
def lab_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab, up for all tests of a module."""
    packages = Packages(default_cache())
    try:
        packages.qemu()
        packages.adb()
        for name in ("phone-amd64", "phone-arm64", "mac-amd64"):
            packages.tree(name)
    except PackageError as error:
        pytest.skip(f"the lab's packages cannot be had: {error}")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with (packages.cache / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if journal.noted():
            pytest.skip("a lab is up on this machine, and tests would take it down: `make lab-down` first")
        lab = Lab(tmp_path_factory.mktemp("lab") / "var", packages)
        try:
            lab.up()
            yield lab
        finally:
            lab.down()


@pytest.fixture
def told() -> Iterator[Told]:
    handler = Told()
    loggers = [logging.getLogger(name) for name in ("devices", "flows", "tasks")]
    for logger in loggers:
        logger.addHandler(handler)
    yield handler
    for logger in loggers:
        logger.removeHandler(handler)


@pytest.fixture
def lab_farm(tmp_path: Path, prefect_api: str, told: Told, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    """A farm in a fresh var folder that uses the tests' Prefect server."""
    farm = Farm(tmp_path, told)
    opened = device_session.open_device

    def watched(spec: DeviceSpec) -> Device:
        device = opened(spec)
        fetch = device.fetch

        def noted(remote: str, local: Path) -> None:
            farm.fetching[spec.name] = local.parent
            fetch(remote, local)

        device.fetch = noted  # type: ignore[method-assign]
        return device

    monkeypatch.setattr(device_session, "open_device", watched)
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    with temporary_settings({PREFECT_API_URL: prefect_api, PREFECT_LOGGING_TO_API_ENABLED: False}):
        yield farm
        wait(farm.started, _LONGEST_WAIT_S)


@pytest.fixture
def site(lab_up: Lab, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes a device of the lab ready for one test, with a root of its own; afterwards every fault is mended."""
    made: list[Site] = []

    def make(name: str) -> Site:
        spec = next(spec for spec in load_inventory(INVENTORY).devices if spec.name == name)
        part = lab_up.part(name)
        root = f"{'/data/local/tmp' if spec.transport == 'adb' else '/tmp'}/{tmp_path.name}"
        changes: dict[str, Any] = {"root": root}
        if spec.ssh_config:
            changes["ssh_config"] = lab_up.var / "lab/ssh_config"
        here = part.root / root.lstrip("/")
        here.mkdir()
        here.chmod(0o777)
        made.append(Site(spec.model_copy(update=changes), here, part))
        return made[-1]

    yield make
    for each in made:
        faults.restore_link(each.part)
        faults.start_daemon(each.part)
        faults.thaw_daemon(each.part)
        shutil.rmtree(each.root, ignore_errors=True)
