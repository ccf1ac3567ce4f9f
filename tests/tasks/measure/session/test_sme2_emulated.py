"""SME2 on an emulated processor, from sweep file to warehouse: what ran, by names and by kernels.

What an operator's name reads with and without SME2 was found with executed instructions; here the farm must find it
again from its own views, for each kind of operator and precision.
"""

import json

import pytest

from tests.fixtures.devices import SME2_CPU, SYSROOT
from tests.fixtures.farm import Farm

pytestmark = [pytest.mark.torch, pytest.mark.lab, pytest.mark.timeout(900)]

CASES = [
    # model, precision, data types with SME2, without
    ("batch_matmul", "fp32", "PF32", "F32"),
    ("conv", "fp16", "PF16", "F16"),
    ("conv", "fp32", "PF32", "F32"),
    ("conv", "int8_static", "PQS8, QS8, QC8W", "QC8"),
    ("linear", "fp16", "PF16", "F16"),
    ("linear", "fp32", "PF32", "F32"),
    ("linear", "int8_dynamic", "QP8, F32, QC8W", "QP8, F32, QC8W"),
    ("linear", "int8_static", "PQS8, QC8W", "QS8, QC8W"),
]
COVERAGE = "variant, evidence, eligible_calls, sme2_calls, sme1_calls"
SWEEP = """
name: emulated
models: [%s]
precisions: [%s]
modes: [timing, profile, counts]
executions: 4
warmup_executions: 1
sessions: 1
"""


@pytest.fixture
def emulated(farm: Farm, qemu: str) -> Farm:
    """The farm with one emulated device that has SME2."""
    device = {"name": "emulated", "transport": "local", "root": str(farm.folder / "device"), "emulated": True}
    device |= {"platform": "linux-aarch64", "launcher": [qemu, "-cpu", SME2_CPU, "-L", str(SYSROOT)]}
    farm.inventory.write_text(json.dumps({"devices": [device]}), encoding="utf-8")
    return farm


@pytest.mark.long
def test_each_operator_and_precision_shows_sme2_as_it_should(emulated: Farm) -> None:
    # given every single-operator model in every precision that has a meaning for it
    for model in ("batch_matmul", "conv", "linear"):
        precisions = ", ".join(precision for name, precision, *_ in CASES if name == model)
        done = emulated.sweep(SWEEP.replace("emulated", model.replace("_", "-")) % (model, precisions))
        assert done.returncode == 0, done.stdout + done.stderr
    # then the data types in the names are those of the variant: the same for SME and SME2
    rows = emulated.ask("SELECT model, precision, variant, data_type FROM sme2_operator_coverage ORDER BY ALL")
    assert [tuple(row.values()) for row in rows] == sorted(
        (model, precision, variant, types)
        for model, precision, with_sme2, without in CASES
        for variant, types in (("sme2_on", with_sme2), ("sme1", with_sme2), ("sme2_off", without))
    )
    # and the kernels that ran prove it, for dynamic int8 too, whose name does not tell
    executed = "SELECT DISTINCT model, precision, variant FROM kernel_use WHERE evidence = 'executed' AND "
    proven = emulated.ask(executed + "kernel LIKE '%_sme2_mopa' ORDER BY ALL")
    assert [tuple(row.values()) for row in proven] == [(model, precision, "sme2_on") for model, precision, *_ in CASES]
    sme1 = emulated.ask(executed + "kernel LIKE '%_sme_mopa' ORDER BY ALL")
    assert [tuple(row.values()) for row in sme1] == [(model, precision, "sme1") for model, precision, *_ in CASES]
    assert emulated.ask(executed + "variant = 'sme2_off' AND isa_family IN ('SME', 'SME2')") == []
    # and so do the kernels that were counted
    products = "SELECT DISTINCT model, precision, variant, isa_family FROM kernel_use WHERE evidence = 'counted' "
    counted = emulated.ask(products + "AND operation LIKE 'matmul%' AND isa_family LIKE 'SME%' ORDER BY ALL")
    assert [tuple(row.values()) for row in counted] == [
        (model, precision, variant, family)
        for model, precision, *_ in CASES
        for variant, family in (("sme1", "SME"), ("sme2_on", "SME2"))
    ]
    # and the coverage tells them apart
    covered = emulated.ask(f"SELECT {COVERAGE} FROM sme2_coverage WHERE variant <> 'sme2_off' ORDER BY variant DESC")
    assert [tuple(row.values()) for row in covered] == [
        (variant, "counted", 1.0, variant == "sme2_on", variant == "sme1")
        for variant in ("sme2_on", "sme1")
        for _ in CASES
    ]
    # and the outputs are eager's, the same with SME2 and without
    for row in emulated.ask("SELECT precision, max(max_abs_error) AS worst FROM session_accuracy GROUP BY precision"):
        assert row["worst"] < {"fp32": 1e-4, "fp16": 0.1}.get(row["precision"], 0.2)
