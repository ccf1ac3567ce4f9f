"""Parse kernel names and the log of a trace-built runner, which lists the microkernels that XNNPACK selected.

"Using" in the log means that XNNPACK selected the kernel when it initialized a family of kernels, not that it executed
it: a linear model selects igemm kernels that it never runs. Executed kernels come from the runner's sampling profile,
whose names have the same form.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Literal

from devices.errors import InputError

IsaFamily = Literal["SME2", "SME", "NEON", "other"]

# xnn_<types>_<operation>[_minmax..]_ukernel[_<tile>]__<isa, variant, sometimes the tile>
_XNNPACK_NAME = re.compile(r"xnn_(?P<what>(?:(?!_ukernel)\w)+)_ukernel(?:_[^_]+)?__(?P<how>\w+)")
_XNNPACK_TYPE = re.compile(r"xx|p?[a-z]{1,2}\d+(?:u?w|acc)?")
_XNNPACK_ISA = re.compile(r"(?:neon|sme|sve|sse|ssse|avx|wasm|rvv|hvx|xop|f16c|fma|vfp|armsimd|fp16arith|scalar)\w*")
# Helper functions contain the name of a kernel but are not kernels.
_XNNPACK_HELPER = re.compile(r"_get_[mnks]r$")

# kai_{run,kernel}_<operation>_<types>[_<tile>][_<option>][_<isa>[_<instruction>]]
_KLEIDIAI_NAME = re.compile(r"kai_(?:run|kernel)_(?P<what>\w+)")
_KLEIDIAI_TYPE = re.compile(r"((?:b?f|x|i|u|q[a-z]+)\d+(?:[cd]x|c\d+)?p?)\w*")
_KLEIDIAI_ISA = re.compile(r"(?:neon|sme|sve)\w*")

_PRODUCT = re.compile(r"i?(gemm|matmul)")

# Lines may be anything. Each pattern takes time proportional to the line: no two parts match the same characters.
_LOGCAT = re.compile(r"(?:\d{4}-)?\d\d-\d\d [\d:.]+\s+\d{1,9}\s+\d+ [A-Z] (?P<tag>.*?): (?P<message>.*)")
_STDIO = re.compile(r"(?:Note|Debug) \(XNNPACK\): (?P<message>.*)")
_SELECTED = re.compile(r"Using \w+ microkernel '(?P<name>[^']*)'")


@dataclass(frozen=True)
class Kernel:
    """A microkernel and the parts of its name."""

    name: str
    data_types: tuple[str, ...]
    """Without packing: `qai8dxp`, not `qai8dxp1vlx4`."""
    operation: str
    """Without its activation: `gemm`, `igemm`, `dwconv`, `matmul`, `rhs_pack_kxn`, .."""
    isa: str | None
    """`neonsme2`, `neonfma`, `sme2`, `scalar`, ..; None if the name does not contain it."""

    @property
    def isa_family(self) -> IsaFamily:
        extension = (self.isa or "").removeprefix("neon")
        if extension.startswith("sme2"):
            return "SME2"
        if extension.startswith("sme"):
            return "SME"
        return "NEON" if self.isa and self.isa.startswith("neon") else "other"

    @property
    def is_product(self) -> bool:
        """Whether it multiplies matrices; others only pack data, and those for SME2 have names of SME."""
        return _PRODUCT.match(self.operation) is not None


@cache
def parse_kernel(name: str) -> Kernel | None:
    """Parse the name of an XNNPACK or KleidiAI kernel; None if it is not the name of a kernel."""
    if match := _XNNPACK_NAME.fullmatch(name):
        if _XNNPACK_HELPER.search(name):
            return None
        types, operation = [], match["what"].rstrip("_").split("_minmax")[0].split("_")
        while len(operation) > 1 and (operation[0] == "to" or _XNNPACK_TYPE.fullmatch(operation[0])):
            types.append(operation.pop(0))
        isa = next(filter(_XNNPACK_ISA.fullmatch, match["how"].split("_")), None)
        return Kernel(name, tuple(word for word in types if word != "to"), "_".join(operation), isa)
    if match := _KLEIDIAI_NAME.fullmatch(name):
        words = match["what"].split("_")
        kinds = [_KLEIDIAI_TYPE.fullmatch(word) for word in words]
        if first := next((place for place, kind in enumerate(kinds) if kind), 0):
            data_types = tuple(kind[1] for kind in takewhile(bool, kinds[first:]) if kind)
            isa = next(filter(_KLEIDIAI_ISA.fullmatch, words), None)
            return Kernel(name, data_types, "_".join(words[:first]).removesuffix("_clamp"), isa)
    return None


def selected_kernels(log: Path) -> Counter[str]:
    """Return how often each kernel was selected, in the order of a log: a runner's stderr, stdout or a phone's logcat.

    Of logcat, in its `threadtime` format, only the lines of XNNPACK count. What cannot be the name of a kernel is left
    out. Raises InputError if the file cannot be read.
    """
    counts: Counter[str] = Counter()
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{log}: cannot be read ({error.strerror})") from error
    for line in text.splitlines():
        if phone_line := _LOGCAT.fullmatch(line):
            message = phone_line["message"] if phone_line["tag"].rstrip() == "XNNPACK" else ""
        else:
            message = stdio["message"] if (stdio := _STDIO.search(line)) else ""
        if (match := _SELECTED.match(message)) and parse_kernel(match["name"]):
            counts[match["name"]] += 1
    return counts
