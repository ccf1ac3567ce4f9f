"""Counted kernels on an emulated processor: the calls are those that the layers and rows of a model need.

A vector of SME has 64 bytes here: 16 numbers of 4 bytes. XNNPACK calls a kernel once for the rows of one tile.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.export.entry import ExportRequest
from tasks.export.export import export_cases
from tasks.runner.build import build_runner
from tests.fixtures.command import Command
from tests.fixtures.devices import SME2_CPU, SYSROOT
from tests.fixtures.paths import KEPT

pytestmark = [pytest.mark.torch, pytest.mark.lab, pytest.mark.timeout(600)]

MODELS = """
import torch
from torch import nn

def layers():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 96), nn.ReLU(), nn.Linear(96, 64)), (
        torch.randn(70, 64),
    )

def convolutions():  # of 12 x 12 pixels; the second one is depthwise, and the last one a matrix product
    depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
    return nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), depthwise, nn.Conv2d(16, 32, 1)), (torch.randn(1, 8, 12, 12),)
"""
EXECUTIONS = 3
PF32 = "kai_run_matmul_clamp_f32_f32p2vlx1_"
QP8 = "kai_run_matmul_clamp_f32_qai8dxp"
# Model, precision, variant, rows of a tile, and the kernels with the layers that call them. In XNNPACK's trace log:
# xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2 and its igemm, xnn_qp8_f32_qc8w_gemm_minmax_ukernel_16x64c4__neonsme2,
# without SME xnn_qp8_f32_qc8w_gemm_minmax_ukernel_16x4c8__neoni8mm_mstep4.
CASES = [
    ("layers", "fp32", "on", 32, {f"{PF32}f32p2vlx1biasf32_sme2_mopa": 3, "kai_run_lhs_pack_f32p2vlx1_f32_sme": 3}),
    ("layers", "fp32", "sme1", 32, {f"{PF32}f32p2vlx1b_2vlx2vl_sme_mopa": 3, "kai_run_lhs_pack_f32p2vlx1_f32_sme": 3}),
    ("layers", "fp32", "off", 32, {}),
    (
        "convolutions", "fp32", "on", 32,
        {
            f"{PF32}f32p2vlx1biasf32_sme2_mopa": 2,
            "kai_run_lhs_imatmul_pack_x32p2vlx1_x32p_sme": 1,
            "kai_run_lhs_pack_f32p2vlx1_f32_sme": 1,
        },
    ),
    (
        "layers", "int8_dynamic", "on", 16,
        {f"{QP8}1vlx4_qsi8cxp4vlx4_1vlx4vl_sme2_mopa": 3, "kai_run_lhs_quant_pack_qai8dxp_f32": 3},
    ),
    (
        "layers", "int8_dynamic", "sme1", 16,
        {f"{QP8}1vlx4_qsi8cxp4vlx4_1vlx4vl_sme_mopa": 3, "kai_run_lhs_quant_pack_qai8dxp_f32": 3},
    ),
    (
        "layers", "int8_dynamic", "off", 16,
        {f"{QP8}4x8_qsi8cxp4x8_16x4_neon_i8mm": 3, "kai_run_lhs_quant_pack_qai8dxp_f32": 3},
    ),
]  # fmt: skip
ROWS = {"layers": 70, "convolutions": 12 * 12}


@pytest.fixture
def models(tmp_path: Path) -> Path:
    path = tmp_path / "models.py"
    path.write_text(MODELS, encoding="utf-8")
    return path


@pytest.fixture
def run(qemu: str, models: Path, tmp_path: Path) -> Callable[..., dict[str, int]]:
    """Execute a model with two threads; return the calls of its kernels, and leave its output as `output`-0.bin."""
    runner = build_runner("linux-aarch64", KEPT / "runners")

    def execute(model: str, precision: str, variant: str, *flags: str, output: str = "counted") -> dict[str, int]:
        [export] = export_cases(ExportRequest(f"{models}:{model}", precision, KEPT / "exports"))
        command = [qemu, "-cpu", SME2_CPU, "-L", str(SYSROOT), *runner.command(str(runner.folder))]
        command += [f"--model_path={export.pte}", f"--num_executions={EXECUTIONS}", "--cpu_threads=2"]
        command += [f"--sme2={variant}", "--print_output=none", f"--output_file={tmp_path / output}", *flags]
        subprocess.run(command, check=True, timeout=120)
        counts = json.loads((tmp_path / "counts.json").read_text(encoding="utf-8"))
        assert (counts["executions"], len(counts["kernels"]) > 50) == (EXECUTIONS, True)
        return {each["name"]: each["calls"] for each in counts["kernels"] if each["calls"]}

    return execute


def test_each_call_of_a_kernel_is_counted_and_changes_no_output(
    run: Callable[..., dict[str, int]], tmp_path: Path, subtests: pytest.Subtests
) -> None:
    counting = f"--kernel_counts_path={tmp_path / 'counts.json'}"
    for model, precision, variant, tile_rows, layers in CASES:
        with subtests.test(model=model, precision=precision, variant=variant):
            tiles = -(-ROWS[model] // tile_rows)
            calls = run(model, precision, variant, counting)
            assert calls == {kernel: EXECUTIONS * count * tiles for kernel, count in layers.items()}
            run(model, precision, variant, output="plain")
            assert (tmp_path / "counted-0.bin").read_bytes() == (tmp_path / "plain-0.bin").read_bytes()


def test_a_check_ends_well_only_if_sme2_kernels_are_executed(
    qemu: str, models: Path, tmp_path: Path, command: Command
) -> None:
    # given a device with SME2 and one without
    inventory = tmp_path / "inventory.yaml"
    devices = [
        {
            "name": name,
            "transport": "local",
            "root": str(tmp_path / name),
            "emulated": True,
            "platform": "linux-aarch64",
            "launcher": [qemu, "-cpu", cpu, "-L", str(SYSROOT)],
        }
        for name, cpu in (("new", SME2_CPU), ("old", "cortex-a76"))
    ]
    inventory.write_text(json.dumps({"devices": devices}), encoding="utf-8")

    def check(precision: str, device: str) -> tuple[int, str]:
        options = ("--expect", "sme2", "--inventory", inventory, "--device", device, "--data-dir", KEPT)
        ended = command("model", "check", f"{models}:layers", "--precision", precision, *options)
        return ended.code, ended.out + ended.err

    code, printed = check("fp32", "new")
    assert (code, f"  {PF32}f32p2vlx1biasf32_sme2_mopa: 9 calls per run\n" in printed) == (0, True)
    # and 4-bit weights are multiplied by NEON kernels of KleidiAI, which the sentence names
    code, printed = check("int4_dynamic", "new")
    assert code == 1
    assert "no SME2 kernel was executed, but kai_run_matmul_clamp_f32_qai8dxp" in printed
    code, printed = check("fp32", "old")
    assert (code, "old: the device has no SME2" in printed) == (2, True)
