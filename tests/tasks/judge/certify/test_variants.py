"""The evidence of a variant is right only if kernels prove what the variant promises, and outputs are accurate."""

from dataclasses import replace

import pytest

from tasks.judge.certify.checks import Proof, problems

ON = Proof("linear", "sme2_on", "executed", 1.0, 1.0, 0.0, "accurate", 131.0, 60.0)
SME1 = replace(ON, variant="sme1", proven_share=0.0, proven_sme1_share=1.0)
OFF = replace(ON, variant="sme2_off", evidence="name", sme_share=0.0, proven_share=0.0)


def test_variants_that_are_what_they_promise_have_no_problem_and_a_pair_without_a_session_has_one() -> None:
    assert problems([ON, SME1, OFF], ["linear"], ["sme2_on", "sme1", "sme2_off"]) == []
    assert problems([OFF], ["linear", "toy_cnn"], ["sme2_off"]) == ["toy_cnn SME2 off: no session counts"]


@pytest.mark.parametrize(
    ("proof", "problem"),
    [
        (replace(ON, proven_share=0.4), "linear SME2 on: SME2 40 %, SME1 0 % (executed)"),
        (replace(SME1, proven_share=1.0, proven_sme1_share=0.0), "linear SME1: SME2 100 %, SME1 0 % (executed)"),
        (replace(OFF, sme_share=1.0, proven_share=1.0), "linear SME2 off: SME2 100 %, SME1 0 % (name)"),
        (replace(OFF, sme_share=None), "linear SME2 off: SME2 0 %, SME1 0 % (name)"),
        (replace(OFF, accuracy="inaccurate", snr_db=12.0), "linear SME2 off: outputs are inaccurate, SNR 12 dB"),
        (replace(OFF, accuracy="not compared", snr_db=None), "linear SME2 off: outputs are not compared, SNR unknown"),
    ],
)
def test_a_variant_that_is_not_what_it_promises_is_named_with_its_figures(proof: Proof, problem: str) -> None:
    [found] = problems([proof], ["linear"], [proof.variant])
    assert found.startswith(problem)
