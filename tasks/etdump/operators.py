"""Parse the names of operators in an ETDump.

XNNPACK writes `Convolution (NHWC, PQS8, QS8, QC8W) IGEMM #1`: operator, layout, data types, kernel kind and a number
that distinguishes equal names. A portable operator is `native_call_<operator>.<overload>`. Vulkan writes a JSON object
with `"kernel_name": "conv2d"` for each dispatch.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from tasks.etdump.event_kind import EventKind

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
_PORTABLE_PREFIX = "native_call_"


@dataclass(frozen=True)
class OperatorName:
    """The parts of an operator's name; None if the name does not contain the part."""

    operator: str
    layout: str | None = None
    data_type: str | None = None
    microkernel: str | None = None


@lru_cache(maxsize=4096)
def parse_operator(name: str, kind: EventKind) -> OperatorName:
    """Return the parts of an event's name; a name of unknown form is returned as the operator."""
    if kind == EventKind.PORTABLE:
        return OperatorName(name.removeprefix(_PORTABLE_PREFIX).split(".")[0])
    if kind != EventKind.DELEGATED:
        return OperatorName(name)
    if kernel := _KERNEL.fullmatch(name):
        return OperatorName(kernel["operator"])
    found = _DELEGATED.fullmatch(name)
    if not found:
        return OperatorName(name)
    words = [word.strip() for word in (found["types"] or "").split(",") if word.strip()]
    layout = words.pop(0) if words and _LAYOUT.fullmatch(words[0]) else None
    return OperatorName(found["operator"], layout, ", ".join(words) or None, found["microkernel"])
