"""`etfarm devices certify`: the acceptance checks of one device, one after the other."""

import contextlib
import platform
import time
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path

from devices.errors import DeviceError, FarmError
from devices.inventory import DeviceSpec
from devices.untrusted import excerpt
from flows.certify.sweeps import kill_and_reattach, run_to_end
from flows.warehouse.readable import ask_warehouse
from sql.errors import WarehouseError
from tasks.bundle.cell import VARIANTS
from tasks.judge.certify import checks
from tasks.judge.certify.checks import Proof, problems
from tasks.judge.certify.subject import Finding, Subject, open_subject
from tasks.measure.matrix_rules import possible_variants
from tasks.pages.markdown import escaped

_MAX_CHARS = 800
_MODELS = ("linear", "toy_cnn")
_NOISE_SESSIONS = 8


def sme_proof(subject: Subject) -> Finding:
    """Measure small models in every variant of the device; check the executed kernels and the outputs.

    The sweep also compares a model with itself: `noise` reads the result, by the id in `proof_sweep`.
    """
    possible = possible_variants(VARIANTS, subject.facts)
    with_runner = [variant for variant in VARIANTS if subject.runner(variant)]
    modes = [mode for mode in ("profile", "counts") if subject.runner(mode=mode)]
    settings = {
        "models": _MODELS,
        "variants": with_runner,
        "modes": ["timing", *modes],
        "noise_sessions": 0 if subject.spec.emulated else _NOISE_SESSIONS,
    }
    subject.proof_sweep = run_to_end(subject, "certify", settings)
    rows = ask_warehouse("certify_variants", subject.workspace, sweep_id=subject.proof_sweep)
    proofs = [Proof(*row) for row in rows]
    measured = [variant for variant in possible if variant in with_runner]
    if "profile" not in modes and measured != ["sme2_off"]:
        reason = "the registered runner has no mode profile, which lists the executed kernels; build the farm's runner"
        return Finding("not tried", reason)
    if wrong := problems(proofs, _MODELS, measured):
        return Finding("failed", f"{len(wrong)} of {len(_MODELS) * len(measured)} are wrong: {'; '.join(wrong)}")
    missing = [variant for variant in ("sme2_on", "sme1") if variant not in possible]
    rest = f"; not {' and '.join(missing)}, which the device does not support" if missing else ""
    min_snr_db = min((proof.snr_db for proof in proofs if proof.snr_db is not None), default=None)
    snr = "SNR of outputs unknown" if min_snr_db is None else f"minimum SNR of outputs {min_snr_db:.0f} dB"
    text = f"{len(proofs)} of {len(proofs)} as promised: {len(_MODELS)} models in {', '.join(measured)}{rest}; {snr}"
    return Finding("passed", text)


def noise(subject: Subject) -> Finding:
    """Compare a model with itself, measured interleaved: the 95 % interval of the ratio must include 1.

    By chance it does not once in 20 comparisons. So a comparison that fails is repeated once.
    """
    if subject.spec.emulated:
        reason = "not judged: the times of an emulated device mean nothing; use a device that is not emulated"
        return Finding("not tried", reason)
    intervals: list[str] = []
    settings = {"models": _MODELS[:1], "noise_sessions": _NOISE_SESSIONS}
    for sweep_id in (subject.proof_sweep, None):
        measured_id = sweep_id or run_to_end(subject, "certify-noise", settings)
        rows = ask_warehouse("certify_noise", subject.workspace, sweep_id=measured_id)
        if not rows:
            raise FarmError("the comparison of a model with itself has no result")
        ratio, low, high, smallest = rows[0]
        intervals.append(f"{ratio:.3f} ({low:.3f} to {high:.3f})")
        if low <= 1 <= high:
            change = f"a change of {100 * smallest:.1f} % or more would show"
            return Finding("passed", f"{intervals[-1]} B / A: no difference found; {change}")
    text = f"{' and '.join(intervals)} B / A: different twice, although both are the same model"
    return Finding("failed", f"{text}; end what else runs on the device")


# Each check by its name, and the check without which it cannot be tried.
_CHECKS: dict[str, tuple[Callable[[Subject], Finding], str | None]] = {
    "reached": (checks.check_connection, None),
    "transfer": (checks.check_transfer, "reached"),
    "runner": (checks.check_runner, "reached"),
    "SME proof": (sme_proof, "runner"),
    "noise": (noise, "runner"),
    "kill and reattach": (kill_and_reattach, "runner"),
    "disk full": (checks.check_full_disk, "reached"),
    "left behind": (checks.check_leftovers, "reached"),
}


def certify(spec: DeviceSpec, data_dir: Path, night: date) -> Generator[str, None, None]:
    """Yield `status: check, time: text` as each check ends; one that failed stops only those that need it.

    At the end, all files of the certification are removed from the device.
    """
    with open_subject(spec, data_dir, night) as subject:
        stopped: set[str] = set()
        try:
            for name, (run, needs) in _CHECKS.items():
                begin = time.monotonic()
                try:
                    skipped = Finding("not tried", f"needs `{needs}`; fix that first")
                    finding = skipped if needs in stopped else run(subject)
                except (FarmError, WarehouseError) as error:
                    finding = Finding("failed", excerpt(str(error), _MAX_CHARS))
                if needs in stopped or finding.status == "failed":
                    stopped.add(name)
                yield f"{finding.status}: {name}, {time.monotonic() - begin:.1f} s: {finding.text}"
        finally:
            with contextlib.suppress(DeviceError):
                subject.clear()


def page(device: str, lines: Sequence[str], logs: Path) -> str:
    host = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    about = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, etfarm {version('etfarm')} on {escaped(host)}."
    points = "\n".join(f"- {escaped(line)}" for line in lines)
    closing = f"The logs of the sweeps are in `{logs}`. Disks that are full have not been tried on macOS."
    return f"# Certification of {escaped(device)}\n\n{about}\n\n{points}\n\n{closing}\n"
