"""Parse the name of an event in an ETDump: its kind and, for an operator, the parts of its name.

XNNPACK writes `Convolution (NHWC, PQS8, QS8, QC8W) IGEMM #1`: operator, layout, data types, kernel kind and a number
that distinguishes equal names. A portable operator is `native_call_<operator>.<overload>`. Vulkan writes a JSON object
with `"kernel_name": "conv2d"` for each dispatch.
"""

import re
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache, lru_cache

from sql.schema import seed_rows

ESTIMATE_MARK = " [estimate]"
"""Suffix of operators whose time is an estimate (delegates.py). The macro `_is_estimate` is the same for SQL."""
_PORTABLE_PREFIX = "native_call_"


class EventKind(IntEnum):
    METHOD = 0
    """`Method::execute`: one execution, end to end."""
    DELEGATE_CALL = 1
    """A call into a delegate; contains the events that the delegate reports."""
    OPERATOR_CALL = 2
    """A call of a portable operator; contains its event."""
    DELEGATED = 3
    """An operator that a delegate ran and reported."""
    PORTABLE = 4
    """A portable operator, `native_call_*`."""
    OTHER = 5
    """Anything else, such as `Method::init` or a move."""


_KIND_OF_NAME = {
    "Method::execute": EventKind.METHOD,
    "DELEGATE_CALL": EventKind.DELEGATE_CALL,
    "OPERATOR_CALL": EventKind.OPERATOR_CALL,
}


def event_kind(name: str) -> EventKind:
    if name.startswith(_PORTABLE_PREFIX):
        return EventKind.PORTABLE
    return _KIND_OF_NAME.get(name, EventKind.OTHER)


# The name of each EventKind in the warehouse.
KIND_NAMES = {
    EventKind.METHOD: "method",
    EventKind.DELEGATE_CALL: "delegate_call",
    EventKind.OPERATOR_CALL: "operator_call",
    EventKind.DELEGATED: "delegated",
    EventKind.PORTABLE: "portable",
    EventKind.OTHER: "other",
}
_DELEGATED = re.compile(
    r"(?P<operator>[^()#]+?)"
    r"(?: \((?P<types>[^()]*)\)(?: (?P<microkernel>[^#()]+?))?)?"
    r"(?: #\d+)?"
)
_KERNEL = re.compile(r'\{.*"kernel_name": "(?P<operator>[^"]+)".*\}', re.DOTALL)
_LAYOUT = re.compile(r"N[A-Z]*(2N[A-Z]*)?")


@dataclass(frozen=True)
class OperatorName:
    """The parts of an operator's name; None if the name does not contain the part."""

    operator: str
    layout: str | None = None
    data_type: str | None = None
    microkernel: str | None = None


@lru_cache(maxsize=4096)
def parse_operator(name: str, kind: EventKind) -> OperatorName:
    """Return the parts of an event's name; a name of unknown form is returned as the operator.

    An operator that a version of ExecuTorch renamed has its present name, so that its series go on.
    """
    if name.endswith(ESTIMATE_MARK):  # of any form, it must not lose its mark
        parts = _split_name(name.removesuffix(ESTIMATE_MARK), kind)
        return replace(parts, operator=parts.operator + ESTIMATE_MARK)
    parts = _split_name(name, kind)
    present = _renames().get((KIND_NAMES[kind], parts.operator))
    return replace(parts, operator=present) if present else parts


@cache
def _renames() -> dict[tuple[str, str], str]:
    return {(kind, before): after for _since, kind, before, after in seed_rows("operator_rename")}


def _split_name(name: str, kind: EventKind) -> OperatorName:
    if kind == EventKind.PORTABLE:
        return OperatorName(name.removeprefix(_PORTABLE_PREFIX).split(".")[0])
    if kind != EventKind.DELEGATED:
        return OperatorName(name)
    if kernel := _KERNEL.fullmatch(name):
        return OperatorName(kernel["operator"])
    match = _DELEGATED.fullmatch(name)
    if not match:
        return OperatorName(name)
    words = [word.strip() for word in (match["types"] or "").split(",") if word.strip()]
    layout = words.pop(0) if words and _LAYOUT.fullmatch(words[0]) else None
    return OperatorName(match["operator"], layout, ", ".join(words) or None, match["microkernel"])
