"""The word for a variant that a user reads. Needs nothing but Python."""

DIFFER = " -> "
"""Between two values in a field of a change whose sides differ in it."""
_WORDS = {"sme2_on": "SME2 on", "sme1": "SME1", "sme2_off": "SME2 off"}


def variant_word(variant: str) -> str:
    """Return `SME2 on`, `SME2 off`, `SME1`, or `SME2 unknown` for a run that the farm did not measure."""
    return DIFFER.join(_WORDS.get(each, "SME2 unknown") for each in variant.split(DIFFER))
