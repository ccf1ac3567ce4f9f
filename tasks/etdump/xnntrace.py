"""Parse kernel names and the log of a trace-built runner, which lists the microkernels that XNNPACK selected.

"Using" in the log means that XNNPACK selected the kernel when it initialized a family of kernels, not that it executed
it: a linear model selects igemm kernels that it never runs. Executed kernels come from the runner's sampling profile,
whose names have the same form.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Literal

from devices.errors import InputError

IsaFamily = Literal["SME2", "SME", "NEON", "other"]

# xnn_<types>_<operation>[_minmax..]_ukernel[_<tile>]__<isa, variant, sometimes the tile>
_XNNPACK_NAME = re.compile(r"xnn_(?P<what>(?:(?!_ukernel)\w)+)_ukernel(?:_(?P<tile>[^_]+))?__(?P<how>\w+)")
_XNNPACK_TYPE = re.compile(r"xx|p?[a-z]{1,2}\d+(?:u?w|acc)?")
_XNNPACK_TILE = re.compile(r"\d+x\d+|[uc]\d+v?")
_XNNPACK_ISA = re.compile(r"(?:neon|sme|sve|sse|ssse|avx|wasm|rvv|hvx|xop|f16c|fma|vfp|armsimd|fp16arith|scalar)\w*")
_XNNPACK_INSTRUCTION = re.compile(r"neon(fma|dot|i8mm)")
# Helper functions contain the name of a kernel but are not kernels.
_XNNPACK_HELPER = re.compile(r"_get_[mnks]r$")

# kai_{run,kernel}_<operation>_<types>[_<tile>][_<option>][_<isa>[_<instruction>]]
_KLEIDIAI_NAME = re.compile(r"kai_(?:run|kernel)_(?P<what>\w+)")
_KLEIDIAI_TYPE = re.compile(r"((?:b?f|x|i|u|q[a-z]+)\d+(?:[cd]x|c\d+)?p?)\w*")
_KLEIDIAI_TILE = re.compile(r"\d+(?:vl)?x\d+(?:vl)?(?:x\d+)?")
_KLEIDIAI_ISA = re.compile(r"(?:neon|sme|sve)\w*")

_PRODUCT = re.compile(r"i?(gemm|matmul)")

# Each takes a time in proportion to the line, which may be anything: no two parts of a pattern match the same letters.
_LOGCAT = re.compile(r"(?:\d{4}-)?\d\d-\d\d [\d:.]+\s+(?P<pid>\d{1,9})\s+\d+ [A-Z] (?P<tag>.*?): (?P<message>.*)")
_STDIO = re.compile(r"(?:Note|Debug) \(XNNPACK\): (?P<message>.*)")
_SELECTED = re.compile(r"Using (?P<kind>\w+) microkernel '(?P<name>[^']*)'")
_ASSUMED = re.compile(
    r"Setting assumed_datatype=(?P<datatype>\w+) for node #(?P<node>\d{1,9}) \((?P<operator>.*?)\)\. \("
)
_RUNNING = re.compile(r"running operator \d+:\d+ \((?P<operator_and_place>.*):\d+\)")
_PLACE = re.compile(r"\) \(\w+, ")


@dataclass(frozen=True)
class Kernel:
    """The parts of a microkernel's name; None if the name does not contain the part."""

    name: str
    family: Literal["xnnpack", "kleidiai"]
    data_types: tuple[str, ...]
    """Without packing: `qai8dxp`, not `qai8dxp1vlx4`."""
    operation: str
    """Without its activation: `gemm`, `igemm`, `dwconv`, `matmul`, `rhs_pack_kxn`, .."""
    tile: str | None
    """Shape of a block: `32x32`, `9p8c`, `1vlx4vl`, or the elements per step: `u8`."""
    isa: str | None
    """`neonsme2`, `neonfma`, `sme2`, `scalar`, .."""
    instruction: str | None
    """`mopa`, `mla`, `dot`, `dotprod`, `i8mm`, `fma`, .."""
    isa_family: IsaFamily

    @property
    def is_sme2(self) -> bool:
        """Whether the kernel uses SME2 instructions."""
        return self.isa_family == "SME2"

    @property
    def is_product(self) -> bool:
        """Whether it multiplies matrices; others only pack data, and those for SME2 have names of SME."""
        return _PRODUCT.match(self.operation) is not None


@dataclass(frozen=True)
class Selection:
    """A kernel that XNNPACK selected for one kind of use (`gemm`, `igemm`, `dwconv`, ..), and how often."""

    kind: str
    kernel: Kernel
    count: int


@dataclass(frozen=True)
class AssumedDatatype:
    """The data type that XNNPACK assumed for a node of its graph; types such as `PFP32` are packed for KleidiAI."""

    node: int
    operator: str
    datatype: str


@dataclass(frozen=True)
class Xnntrace:
    """The content of a trace log."""

    selected: tuple[Selection, ...]
    """In order of first appearance."""
    assumed: tuple[AssumedDatatype, ...]
    """In the order of the log."""
    running: dict[str, int]
    """Number of times that each operator ran, by name."""
    ignored_lines: int
    """Number of other lines, and lines of other processes."""
    unparsed: tuple[str, ...]
    """Messages of a known kind that could not be parsed; they are not counted."""


@cache
def parse_kernel(name: str) -> Kernel | None:
    """Parse the name of an XNNPACK or KleidiAI kernel; None if it is not the name of a kernel."""
    if match := _XNNPACK_NAME.fullmatch(name):
        return None if _XNNPACK_HELPER.search(name) else _xnnpack_kernel(name, match)
    if match := _KLEIDIAI_NAME.fullmatch(name):
        return _kleidiai_kernel(name, match["what"].split("_"))
    return None


def _xnnpack_kernel(name: str, match: re.Match[str]) -> Kernel:
    types, operation = [], match["what"].rstrip("_").split("_minmax")[0].split("_")
    while len(operation) > 1 and (operation[0] == "to" or _XNNPACK_TYPE.fullmatch(operation[0])):
        types.append(operation.pop(0))
    how = match["how"].split("_")
    isa = _first(_XNNPACK_ISA, how)
    instruction = _XNNPACK_INSTRUCTION.match(isa or "")
    return Kernel(
        name=name,
        family="xnnpack",
        data_types=tuple(word for word in types if word != "to"),
        operation="_".join(operation),
        tile=match["tile"] or _first(_XNNPACK_TILE, how),
        isa=isa,
        instruction=instruction[1] if instruction else None,
        isa_family=_isa_family(isa),
    )


def _kleidiai_kernel(name: str, words: list[str]) -> Kernel | None:
    kinds = [_KLEIDIAI_TYPE.fullmatch(word) for word in words]
    first = next((place for place, kind in enumerate(kinds) if kind), 0)
    if not first:
        return None
    types = [kind[1] for kind in takewhile(bool, kinds[first:]) if kind]
    isa = _first(_KLEIDIAI_ISA, words)
    return Kernel(
        name=name,
        family="kleidiai",
        data_types=tuple(types),
        operation="_".join(words[:first]).removesuffix("_clamp"),
        tile=_first(_KLEIDIAI_TILE, words),
        isa=isa,
        instruction="_".join(words[words.index(isa) + 1 :]) or None if isa else None,
        isa_family=_isa_family(isa),
    )


def _first(pattern: re.Pattern[str], words: list[str]) -> str | None:
    return next((word for word in words if pattern.fullmatch(word)), None)


def _isa_family(isa: str | None) -> IsaFamily:
    extension = (isa or "").removeprefix("neon")
    if extension.startswith("sme2"):
        return "SME2"
    if extension.startswith("sme"):
        return "SME"
    return "NEON" if isa and isa.startswith("neon") else "other"


def read_xnntrace(source: str | Path, *, pid: int | None = None) -> Xnntrace:
    """Read a trace log: a runner's stderr and stdout, or a phone's logcat in its `threadtime` format.

    Args:
        source: the text, or the file that contains it.
        pid: the runner's process on a phone; if given, only lines of logcat from this process are counted.

    Raises:
        InputError: the file cannot be read.
    """
    selected: Counter[tuple[str, Kernel]] = Counter()
    assumed: list[AssumedDatatype] = []
    running: Counter[str] = Counter()
    unparsed: list[str] = []
    ignored_lines = 0
    for message in _messages(source, pid):
        if match := _SELECTED.match(message):
            if kernel := parse_kernel(match["name"]):
                selected[match["kind"], kernel] += 1
            else:
                unparsed.append(message)
        elif match := _ASSUMED.match(message):
            assumed.append(AssumedDatatype(int(match["node"]), match["operator"], match["datatype"]))
        elif operator := _running_operator(message):
            running[operator] += 1
        elif message.startswith(("Using ", "Setting assumed_datatype", "running operator")):
            unparsed.append(message)
        else:
            ignored_lines += 1
    selections = (Selection(kind, kernel, count) for (kind, kernel), count in selected.items())
    return Xnntrace(tuple(selections), tuple(assumed), dict(running), ignored_lines, tuple(unparsed))


def _running_operator(message: str) -> str | None:
    """Return the operator that a message reports as running; its place in the sources, after it, is left out."""
    match = _RUNNING.fullmatch(message)
    places = list(_PLACE.finditer(match["operator_and_place"])) if match else []
    return match["operator_and_place"][: places[-1].start()] if match and places else None


def _messages(source: str | Path, pid: int | None) -> Iterator[str]:
    """Yield XNNPACK's message in each line; an empty string for other lines and for lines of other processes."""
    if isinstance(source, Path):
        try:
            source = source.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InputError(f"{source}: cannot be read ({error.strerror})") from error
    for line in source.splitlines():
        if match := _LOGCAT.fullmatch(line):
            is_ours = match["tag"].rstrip() == "XNNPACK" and pid in (None, int(match["pid"]))
            yield match["message"] if is_ours else ""
        else:
            stdio = _STDIO.search(line) if pid is None else None
            yield stdio["message"] if stdio else ""
