"""Checks of a device that need no sweep; each returns its finding, and raises FarmError if the device fails it."""

import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from devices import retry
from devices.errors import DeviceError, FarmError, NoSpaceOnDevice
from devices.ondevice.diagnostics import read_leftovers, small_disk
from devices.ondevice.facts import Facts, read_facts
from devices.ondevice.lease import current_holder
from devices.ondevice.store import put
from devices.retry import probe
from devices.shell import call
from devices.untrusted import excerpt, read_json
from tasks.bundle.variant_word import variant_word
from tasks.judge.certify.subject import Finding, Subject
from tasks.measure.session.context import RunnerVersion, run_version, with_reported_sme
from tasks.runner.build import build_runner
from tasks.runner.manifest import Runner, RunnerError
from tasks.store.files import hash_file, scratch_folder

_TRANSFER_BYTES = 8_000_000
_DISK_MB = 8
_TOO_LARGE_BYTES = 2 * _DISK_MB << 20
_FITS_BYTES = 1 << 20


def check_connection(subject: Subject) -> Finding:
    """Connect, read the facts into `subject.facts`, and remove what a killed certification left on the device."""
    spec, begin = subject.spec, time.monotonic()
    probe(subject.device)
    answer_s = time.monotonic() - begin
    subject.facts = facts = read_facts(subject.device)
    with subject.leased():
        subject.clear()
    connection = " ".join(filter(None, [spec.transport, spec.serial or spec.address]))
    emulated = ", emulated" if spec.emulated else ""
    system = " ".join(filter(None, [facts.os, facts.os_version])) or "unknown system"
    machine = f"{facts.cores or 'unknown'} cores, {subject.platform}, {system}, {_sme_text(facts)}{emulated}"
    return Finding("passed", f"{answer_s:.1f} s, {machine}, {connection}")


def check_transfer(subject: Subject) -> Finding:
    """Push random bytes, pull them back, and compare their hashes."""
    device, remote = subject.device, f"{subject.device.root}/transfer"
    with subject.leased(), scratch_folder() as here:
        sent = _random_file(here / "sent", _TRANSFER_BYTES)
        begin = time.monotonic()
        device.upload(sent, remote)
        middle = time.monotonic()
        device.fetch(remote, here / "back")
        end = time.monotonic()
        if hash_file(sent) != hash_file(here / "back"):
            raise FarmError("the bytes that came back differ from those that were sent; check the cable or the link")
    size_mb = _TRANSFER_BYTES / 1e6
    push, pull = size_mb / (middle - begin), size_mb / (end - middle)
    size = f"{size_mb:.0f} MB of random bytes"
    return Finding("passed", f"{push:.1f} MB/s to the device, {pull:.1f} MB/s back, {size}, hashes equal")


def check_runner(subject: Subject) -> Finding:
    """Find or build the runner, push and start it; compare the SME that it detects with what the system reports."""
    candidate = _ready_runner(subject)
    name = f"{candidate.platform} {candidate.runner_sha256[:8]} ({candidate.kind})"
    if not candidate.supports_farm_flags:
        return Finding("not tried", f"{name}: a registered runner does not report SME; build the farm's runner")
    with subject.leased():
        begin = time.monotonic()
        result = run_version(candidate, subject.device, subject.spec, subject.facts)
        took_s = time.monotonic() - begin
    try:
        version = read_json(RunnerVersion, result.stdout)
    except ValidationError:
        printed = excerpt((result.stderr or result.stdout).decode(errors="replace")) or "it printed nothing"
        ended = f"exit code {result.exit_code}" if result.signal is None else f"signal {result.signal}"
        raise FarmError(f"the runner {name} does not start: {ended}: {printed}") from None
    of_system, of_runner = subject.facts, with_reported_sme(version, subject.facts)
    if (of_system.sme2 not in (None, of_runner.sme2)) or (of_system.sme not in (None, of_runner.sme)):
        raise FarmError(f"{_sme_text(of_runner)} by the runner {name}, {_sme_text(of_system)} by the system")
    agrees = "which the system does not state" if of_system.sme2 is None else "as the system states"
    subject.facts = of_runner
    return Finding("passed", f"{took_s:.1f} s to push and start {name}: {_sme_text(of_runner)}, {agrees}")


def check_full_disk(subject: Subject) -> Finding:
    """Push what does not fit on a small disk: the error names the cause and no file is left. Then push what fits."""
    device, folder = subject.device, subject.small_disk
    with subject.leased(), scratch_folder() as here, small_disk(device, folder, _DISK_MB) as needed:
        if needed is not None:
            return Finding("not tried", needed)
        large, small = _random_file(here / "large", _TOO_LARGE_BYTES), _random_file(here / "small", _FITS_BYTES)
        usual, device.root = device.root, folder
        try:
            sentence = _refuse_large(subject, large)
            if left := call(device, ["find", folder, "-type", "f"]).splitlines():
                raise FarmError(f"a push that did not fit left files on the device: {len(left)}, for example {left[0]}")
            put(device, small, hash_file(small))
        finally:
            device.root = usual
    sizes = f"{_TOO_LARGE_BYTES >> 20} MiB on a disk of {_DISK_MB} MiB"
    text = f"{sizes}: refused in one sentence, 0 files left; {_FITS_BYTES >> 20} MiB then fits: {sentence}"
    return Finding("passed", text)


def check_leftovers(subject: Subject) -> Finding:
    """Fail if jobs or session folders were left; remove models and runners, and check that the lease is free."""
    device = subject.device
    left = read_leftovers(device)
    if left.jobs or left.sessions:
        raise FarmError(f"{left.jobs} jobs and {left.sessions} session folders were left in {device.root}")
    with subject.leased() as lease:
        if lease.took_over:
            raise FarmError(f"the lease was still held by {lease.took_over}, which has ended")
        subject.clear()
    if device.run(["test", "-e", device.root], deadline_s=retry.SCRIPT.timeout_s).exit_code == 0:
        raise FarmError(f"{device.root} could not be removed; remove it by hand")
    if holder := current_holder(device):
        raise FarmError(f"the lease is held by {holder}")
    return Finding("passed", "0 jobs, 0 session folders; runners and models removed; the lease is free")


def _ready_runner(subject: Subject) -> Runner:
    """Build the runner if needed and return it; if it cannot be built, return one that exists, or raise FarmError."""
    if subject.platform is None:
        raise FarmError(f"{subject.spec.name}: unknown platform; state it in the inventory")
    try:
        build_runner(subject.platform, subject.workspace.runners)
    except RunnerError:
        if subject.runner() is None:
            raise
    existing = subject.runner()
    assert existing is not None
    return existing


def _refuse_large(subject: Subject, large: Path) -> str:
    """Push a file that does not fit, and return the error; raises FarmError if it is accepted or fails otherwise."""
    try:
        put(subject.device, large, hash_file(large))
    except NoSpaceOnDevice as error:
        return excerpt(str(error))
    except DeviceError as error:
        raise FarmError(f"a push that does not fit was reported as another error: {error}") from None
    raise FarmError("a push of more than the disk has room for was accepted")


def _random_file(path: Path, size_bytes: int) -> Path:
    path.write_bytes(os.urandom(size_bytes))
    return path


def _sme_text(facts: Facts) -> str:
    words = {None: "unknown", True: "yes", False: "no"}
    return f"SME2 {words[facts.sme2]}, SME {words[facts.sme]}"


# Shares are quotients of times, so a full one may be a little below 1.
_ALL = 0.999


@dataclass(frozen=True)
class Proof:
    """Evidence of a model in a variant, a row of sql/queries/certify_variants.sql; shares are 0 to 1."""

    model: str
    variant: str
    evidence: str
    sme_share: float | None
    proven_share: float | None
    proven_sme1_share: float | None
    accuracy: str
    snr_db: float | None
    min_snr_db: float | None

    def problem(self) -> str | None:
        """Return what is wrong with outputs or evidence, None if both are as the variant promises."""
        if self.accuracy != "accurate":
            # Outputs that are equal to eager PyTorch have no SNR either.
            snr = "SNR unknown" if self.snr_db is None else f"SNR {self.snr_db:.0f} dB"
            limit = f", limit {self.min_snr_db:.0f} dB" if self.min_snr_db else ""
            return f"{self.model} {variant_word(self.variant)}: outputs are {self.accuracy}, {snr}{limit}"
        is_right = {
            "sme2_on": (self.proven_share or 0) >= _ALL,
            "sme1": (self.proven_sme1_share or 0) >= _ALL,
            "sme2_off": self.sme_share == 0,
        }[self.variant]
        if is_right:
            return None
        of_sme2, of_sme1 = _percent(self.proven_share), _percent(self.proven_sme1_share)
        return f"{self.model} {variant_word(self.variant)}: SME2 {of_sme2}, SME1 {of_sme1} ({self.evidence})"


def problems(proofs: Iterable[Proof], models: Collection[str], variants: Collection[str]) -> list[str]:
    """Return a sentence for each problem, and for each pair of model and variant without a session that counts."""
    by_pair = {(proof.model, proof.variant): proof.problem() for proof in proofs}
    pairs = [(model, variant) for variant in variants for model in models]
    missing = [
        f"{model} {variant_word(variant)}: no session counts"
        for model, variant in pairs
        if (model, variant) not in by_pair
    ]
    return missing + [problem for problem in by_pair.values() if problem]


def _percent(share: float | None) -> str:
    return "not proven" if share is None else f"{100 * share:.0f} %"
