"""Check whether a run used SME or SME2 as its variant requires, by the names of its operators and of its kernels.

XNNPACK names an operator after its packing, which is the same for SME and SME2; sql/seeds/sme_rule.csv maps such names.
Only the name of a kernel tells which of the two it was.
"""

import re
from collections.abc import Iterable

from sql.schema import seed_rows
from tasks.bundle.cell import Variant
from tasks.etdump.xnntrace import parse_kernel


def _names_that_show(sme: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for answer, pattern in seed_rows("sme_rule") if answer == sme))


_WITH_SME = _names_that_show("yes")
_WITHOUT_SME = _names_that_show("no")
_WORDS = {"sme2_on": "SME2", "sme1": "SME"}


def variant_contradiction(variant: Variant, operators: Iterable[str], kernels: Iterable[str] = ()) -> str | None:
    """Return a sentence if the names of a run contradict its variant, None if they agree or do not show it.

    `operators` are names of delegated operators; `kernels` are names of executed or selected kernels, if any are known.
    """
    names = list(operators)
    with_sme = [name for name in names if _WITH_SME.search(name)]
    if variant == "sme2_off":
        if with_sme:
            return f"variant sme2_off must run without SME2, but `{with_sme[0]}` used SME"
    elif not with_sme:
        without = [name for name in names if _WITHOUT_SME.search(name)]
        if without:
            word = _WORDS[variant]
            return f"variant {variant} must run with {word}, but no operator used SME, for example `{without[0]}`"
    return _kernel_contradiction(variant, kernels)


def _kernel_contradiction(variant: Variant, kernels: Iterable[str]) -> str | None:
    """Compare with the kernels of matrix products; those that pack data for SME2 have names of SME."""
    products = [kernel for name in kernels if (kernel := parse_kernel(name)) and kernel.is_product]
    sme1 = [kernel.name for kernel in products if kernel.isa_family == "SME"]
    sme2 = [kernel.name for kernel in products if kernel.isa_family == "SME2"]
    if variant == "sme2_off" and (used := [*sme2, *sme1]):
        return f"variant sme2_off must run without SME2, but the kernel `{used[0]}` is one of SME"
    if variant == "sme1" and sme2:
        return f"variant sme1 must run without SME2, but the kernel `{sme2[0]}` is one of SME2"
    if variant == "sme2_on" and sme1 and not sme2:
        return f"variant sme2_on must run with SME2, but no kernel is one of it, for example `{sme1[0]}`"
    return None
