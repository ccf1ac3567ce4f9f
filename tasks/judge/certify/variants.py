"""Whether the evidence of each variant is what the variant promises."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tasks.bundle.variant_word import variant_word

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
