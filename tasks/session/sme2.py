"""Whether a timing run really had SME2, told by the data types in its operators' names.

XNNPACK names an operator after the packing it chose: with SME2 the types read PF32, PF16 or PQS8, without it F32, F16
or QC8/QS8. Dynamic int8 reads QP8 either way, so there names cannot tell.
"""

import re
from collections.abc import Iterable

_SME2 = re.compile(r"\b(PF32|PF16|PQS8)\b")
# A 1x1 convolution in fp16 stays `Fully Connected (NC, F16)` even with SME2, so F16 alone proves nothing there.
_WOULD_CHANGE = re.compile(
    r"^(Convolution \(\w+, (F32|F16|QC8|QS8).*\) IGEMM"
    r"|Fully Connected \(\w+, (F32|QS8|QC8).*\) GEMM"
    r"|Batch Matrix Multiply \(\w+, (F32|F16)\) GEMM)"
)


def variant_contradiction(variant: str, operator_names: Iterable[str]) -> str | None:
    """Return a sentence if the operators of a run contradict its variant, None if they agree or cannot tell."""
    names = list(operator_names)
    with_sme2 = [name for name in names if _SME2.search(name)]
    if variant == "sme2_off" and with_sme2:
        return f"the session was to run without SME2, but `{with_sme2[0]}` ran with it"
    if variant == "sme2_on" and not with_sme2:
        without = [name for name in names if _WOULD_CHANGE.match(name)]
        if without:
            return f"the session was to run with SME2, but no operator did: `{without[0]}` for one"
    return None
