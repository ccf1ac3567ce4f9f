"""Check whether a run used SME2 as its variant requires, by the names of its operators.

XNNPACK names an operator after its packing; sql/seeds/sme2_rule.csv maps names to SME2 use.
"""

import re
from collections.abc import Iterable

from sql.seeds.rows import sme2_rules


def _names_that_show(sme2: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for answer, pattern in sme2_rules() if answer == sme2))


_WITH_SME2 = _names_that_show("yes")
_WITHOUT_SME2 = _names_that_show("no")


def variant_contradiction(variant: str, operator_names: Iterable[str]) -> str | None:
    """Return a sentence if the operators of a run contradict its variant, None if they agree or do not show it."""
    names = list(operator_names)
    with_sme2 = [name for name in names if _WITH_SME2.search(name)]
    if variant == "sme2_off" and with_sme2:
        return f"variant sme2_off must run without SME2, but `{with_sme2[0]}` used it"
    if variant == "sme2_on" and not with_sme2:
        without = [name for name in names if _WITHOUT_SME2.search(name)]
        if without:
            return f"variant sme2_on must run with SME2, but no operator used it, for example `{without[0]}`"
    return None
