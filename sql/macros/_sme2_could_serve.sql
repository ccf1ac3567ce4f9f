-- Whether SME2 could serve an operator: matrix products and convolutions except depthwise ones.
CREATE OR REPLACE MACRO _sme2_could_serve(category, microkernel) AS
    category IN ('Convolution', 'GEMM') AND coalesce(microkernel, 'GEMM') IN ('GEMM', 'IGEMM');
