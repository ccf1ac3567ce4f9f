"""Kernel names of XNNPACK and KleidiAI, and XNNPACK's trace log."""

# ruff: noqa: E501 - names and log lines stand as they are written

from pathlib import Path

import pytest

from devices.errors import InputError
from tasks.etdump.xnntrace import parse_kernel, selected_kernels

# name | data types | operation | isa | family; "-" where the name does not tell
XNNPACK_NAMES = """
xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2                              | pf32 | gemm | neonsme2 | SME2
xnn_pf16_f16_igemm_minmax_fp16_ukernel_32x32c2__neonsme2                  | pf16 f16 | igemm | neonsme2 | SME2
xnn_qp8_f32_qc8w_gemm_minmax_ukernel_16x4c8__neoni8mm_mstep4              | qp8 f32 qc8w | gemm | neoni8mm | NEON
xnn_f16_f32acc_gemm_minmax_ukernel_4x16__avx2_broadcast                   | f16 f32acc | gemm | avx2 | other
xnn_f32_dwconv2d_chw_ukernel_3x3p1__aarch64_neonfma_2x4_acc2              | f32 | dwconv2d_chw | neonfma | NEON
xnn_x8_transposec_ukernel__16x16_reuse_dec_zip_neon                       | x8 | transposec | neon | NEON
xnn_xx_copy_ukernel__scalar_memcpy                                        | xx | copy | scalar | other
xnn_x8_lut_ukernel__aarch64_neon_tbx128x4_u64                             | x8 | lut | neon | NEON
xnn_x8_packq_f32qp8_ukernel__aarch64_neon_u2                              | x8 | packq_f32qp8 | neon | NEON
xnn_bf16_f32_igemm_minmax_fp32_ukernel_4x8c2s4__asm_aarch64_neondotfp16arith_cortex_a53_prfm | bf16 f32 | igemm | neondotfp16arith | NEON
xnn_pf16_f16_igemm_minmax_ukernel_1x8__neonsme                            | pf16 f16 | igemm | neonsme | SME
"""
KLEIDIAI_NAMES = """
kai_kernel_matmul_clamp_f32_f32p2vlx1_f32p2vlx1biasf32_sme2_mopa          | f32 f32p f32p | matmul | sme2 | SME2
kai_run_matmul_clamp_f32_qai8dxp1x4_qsi4cxp4vlx4_1x4vl_sme2_sdot          | f32 qai8dxp qsi4cxp | matmul | sme2 | SME2
kai_kernel_matmul_clamp_f32_qai8dxp4x8_qsi4c32p4x8_16x4x32_opt32_neon_i8mm | f32 qai8dxp qsi4c32p | matmul | neon | NEON
kai_run_lhs_imatmul_pack_x32p2vlx1_x32p_sme                               | x32p x32p | lhs_imatmul_pack | sme | SME
kai_run_rhs_pack_nxk_qsi4c32p_qsu4c32s1s0                                 | qsi4c32p qsu4c32 | rhs_pack_nxk | - | other
"""
LOG = """\
I 00:00:00.047403 executorch:executor_runner.cpp:393] Loading inputs from input file(s).
Note (XNNPACK): Using gemm microkernel 'xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2'. (init_pf32_gemm_config, src/gemm-config.c:495)
Note (XNNPACK): Using igemm microkernel 'xnn_pf32_igemm_minmax_ukernel_32x32__neonsme2'. (init_pf32_gemm_config, src/gemm-config.c:496)
Debug (XNNPACK): Setting assumed_datatype=PFP32 for node #1 (Convolution 2D). (xnn_subgraph_optimize_packed_lhs, src/subgraph.c:4151)
Debug (XNNPACK): skip running operator 2:0 (Static Reshape (NC) Default) (xnn_run_operator_with_index, src/operator-run.c:2008)
resized to 3Note (XNNPACK): Using gemm microkernel 'xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2'. (init_pf32_gemm_config, src/gemm-config.c:495)
"""
LOGCAT = """\
--------- beginning of main
11-20 03:12:55.123  4242  4250 I XNNPACK : Using gemm microkernel 'xnn_f32_gemm_minmax_ukernel_1x8__neonfma'. (init_f32_gemm_config, gemm-config.c:864)
2026-11-20 03:12:55.124  777   801 I XNNPACK : Using gemm microkernel 'xnn_f32_gemm_minmax_ukernel_6x8__neonfma'. (init_f32_gemm_config, gemm-config.c:864)
11-20 03:12:55.125  4242  4242 I ExecuTorch: Using gemm microkernel 'xnn_f32_gemm_minmax_ukernel_4x2__neonfma'. (none, none.c:1)
"""


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


@pytest.mark.parametrize("row", [*rows(XNNPACK_NAMES), *rows(KLEIDIAI_NAMES)], ids=lambda row: row[0])
def test_a_kernel_is_what_its_name_says(row: list[str]) -> None:
    name, types, operation, isa, isa_family = row
    kernel = parse_kernel(name)
    assert kernel is not None
    assert (kernel.data_types, kernel.operation) == (tuple(types.split()), operation)
    assert (kernel.isa or "-", kernel.isa_family) == (isa, isa_family)


NO_KERNELS = ("", "memcpy", "xnn_run_operator", "xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2_get_mr", "kai_run_f32")
KAI_GETTER = "kai_get_mr_matmul_clamp_f32_f32p2vlx1_f32p2vlx1biasf32_sme2_mopa"


@pytest.mark.parametrize("name", [*NO_KERNELS, KAI_GETTER])
def test_what_is_no_kernel_has_no_kernel(name: str) -> None:
    assert parse_kernel(name) is None


def log_of(folder: Path, text: str) -> Path:
    path = folder / "stderr.txt"
    path.write_bytes(text.encode())
    return path


def test_selected_kernels_are_read_from_a_log_with_other_lines(tmp_path: Path) -> None:
    expected = {"xnn_pf32_gemm_minmax_ukernel_32x32__neonsme2": 2, "xnn_pf32_igemm_minmax_ukernel_32x32__neonsme2": 1}
    assert selected_kernels(log_of(tmp_path, LOG)) == expected
    (tmp_path / "stderr.txt").write_bytes(b"\xff\xfe\n" + LOG.encode())
    assert selected_kernels(tmp_path / "stderr.txt") == expected


def test_of_a_logcat_the_lines_of_xnnpack_count(tmp_path: Path) -> None:
    assert list(selected_kernels(log_of(tmp_path, LOGCAT))) == [
        "xnn_f32_gemm_minmax_ukernel_1x8__neonfma",
        "xnn_f32_gemm_minmax_ukernel_6x8__neonfma",
    ]


def test_evidence_that_cannot_be_read_is_not_counted_and_a_missing_log_is_refused(tmp_path: Path) -> None:
    # a kernel of a grammar nobody knows, and a log that breaks off within a line
    note = "Note (XNNPACK): Using gemm microkernel"
    assert not selected_kernels(log_of(tmp_path, f"{note} 'ynn_dot_fp32'. (init, a.c:1)\n{note} 'xnn_f32_ig"))
    (tmp_path / "stderr.txt").unlink()
    with pytest.raises(InputError, match=r"stderr\.txt: cannot be read \(No such file or directory\)"):
        selected_kernels(tmp_path / "stderr.txt")


@pytest.mark.timeout(60)
@pytest.mark.fault
@pytest.mark.parametrize(
    ("start", "repeated"),
    [
        ("Note (XNNPACK): Using gemm microkernel 'xnn_", "a_ukernel_"),
        ("Note (XNNPACK): Using gemm microkernel 'kai_run_a_", "f32_"),
        ("11-20 03:12:55.123 4242 4250 I ", " "),
        ("11-20 03:12:55.123 ", "9"),
        ("", "(XNNPACK): "),
    ],
)
def test_any_line_is_read_in_a_time_in_proportion_to_its_length(tmp_path: Path, start: str, repeated: str) -> None:
    assert not selected_kernels(log_of(tmp_path, start + repeated * (1_000_000 // len(repeated))))
