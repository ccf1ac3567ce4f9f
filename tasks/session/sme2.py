"""Whether a timing run used SME2 as its variant demands, judged by its operators' names.

XNNPACK names an operator after the packing it chose; sql/seeds/sme2_rule.csv lists what the names show.
"""

import re
from collections.abc import Iterable

from sql.seeds.rows import sme2_rules


def _names_that_show(sme2: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for answer, pattern in sme2_rules() if answer == sme2))


_WITH_SME2 = _names_that_show("yes")
_WITHOUT_SME2 = _names_that_show("no")


def variant_contradiction(variant: str, operator_names: Iterable[str]) -> str | None:
    """Return a sentence if the operators of a run contradict its variant, None if they agree or cannot tell."""
    names = list(operator_names)
    with_sme2 = [name for name in names if _WITH_SME2.search(name)]
    if variant == "sme2_off" and with_sme2:
        return f"the session was to run without SME2, but `{with_sme2[0]}` ran with it"
    if variant == "sme2_on" and not with_sme2:
        without = [name for name in names if _WITHOUT_SME2.search(name)]
        if without:
            return f"the session was to run with SME2, but no operator did: `{without[0]}` for one"
    return None
