"""The checks that read the results of a sweep: the proof of SME2, and the device's noise."""

from devices.errors import FarmError
from flows.certify.children import run_to_end
from flows.warehouse.publish import ask_warehouse
from tasks.analyse.certify.finding import Finding
from tasks.analyse.certify.subject import Subject
from tasks.analyse.certify.sweeps import MODELS, modes, variants
from tasks.analyse.certify.variants import Proof, problems
from tasks.bundle.cell import VARIANTS
from tasks.measure.plan import possible_variants


def sme_proof(subject: Subject) -> Finding:
    """Measure small models in every variant of the device; compare their kernels and outputs with what is promised."""
    subject.proof_sweep = run_to_end(subject, "certify")
    asked = possible_variants(VARIANTS, subject.facts)
    measured = [variant for variant in asked if variant in variants(subject)]
    rows = ask_warehouse("certify_variants", subject.places.root, None, sweep_id=subject.proof_sweep)
    proofs = [Proof(*row) for row in rows]
    figures = tuple((proof.title, f"{proof.shares}; {proof.outputs}") for proof in proofs)
    if "profile" not in modes(subject) and measured != ["sme2_off"]:
        reason = "the registered runner has no mode profile, which tells the executed kernels; build the farm's runner"
        return Finding("not tried", reason, figures)
    if wrong := problems(proofs, MODELS, measured):
        return Finding(
            "failed", f"{len(wrong)} of {len(MODELS) * len(measured)} are wrong: {'; '.join(wrong)}", figures
        )
    lacking = [variant for variant in ("sme2_on", "sme1") if variant not in asked]
    rest = f"; not {' and '.join(lacking)}, which the device does not have" if lacking else ""
    least = min((proof.snr_db for proof in proofs if proof.snr_db is not None), default=None)
    snr = "no SNR of outputs is known" if least is None else f"least SNR of outputs {least:.0f} dB"
    text = f"{len(proofs)} of {len(proofs)} as promised: {len(MODELS)} models in {', '.join(measured)}{rest}; {snr}"
    return Finding("passed", text, figures)


def noise(subject: Subject) -> Finding:
    """Compare a model with itself, measured alternately: the interval of the ratio must include 1.

    By chance it does not once in 20 comparisons, so one that does not is repeated.
    """
    if subject.spec.emulated:
        reason = "not judged: the times of an emulated device mean nothing; it takes a device that is not emulated"
        return Finding("not tried", reason)
    sweeps = [subject.proof_sweep] if subject.proof_sweep else []
    figures: list[tuple[str, str]] = []
    for attempt in range(2):
        sweep_id = sweeps[attempt] if attempt < len(sweeps) else run_to_end(subject, "certify-noise")
        found = _Compared.of(subject, sweep_id)
        figures.append(("ratio B / A", found.in_words()))
        if found.includes_1:
            break
    else:
        text = f"{' and '.join(words for _, words in figures)} B / A: different twice, although both are the same model"
        return Finding("failed", f"{text}; end what else runs on the device", tuple(figures))
    smallest = f"{100 * found.noise:.1f} %"
    figures += [("smallest change", smallest), ("sessions of each side", str(found.sessions))]
    text = f"{found.in_words()} B / A: no difference found; a change of {smallest} or more would show"
    return Finding("passed", text, (*figures, ("median", f"{found.median_ms:.4f} ms")))


class _Compared:
    """The comparison of a content with itself."""

    def __init__(self, ratio: float, low: float, high: float, _answer: str, noise: float, sessions: int, median: float):
        self.ratio, self.low, self.high = ratio, low, high
        self.noise, self.sessions, self.median_ms = noise, sessions, median

    @classmethod
    def of(cls, subject: Subject, sweep_id: str) -> "_Compared":
        """Read it from the warehouse; raises FarmError if there is none."""
        for row in ask_warehouse("certify_noise", subject.places.root, None, sweep_id=sweep_id):
            return cls(*row)
        raise FarmError("the comparison of a model with itself has no result")

    @property
    def includes_1(self) -> bool:
        """Whether the interval of the ratio includes 1."""
        return self.low <= 1 <= self.high

    def in_words(self) -> str:
        """`1.002 (0.990 to 1.014)`."""
        return f"{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f})"
