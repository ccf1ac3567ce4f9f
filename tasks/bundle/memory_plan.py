"""What a method of a program needs of memory, as far as its .pte file states it: planned before anything runs."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from tasks.bundle.names import Name
from tasks.bundle.values import Bytes, SmallCount

MAX_BUFFERS = 5
"""Buffers of the largest live set that are listed; the others are small or many."""
MAX_ARENAS, MAX_BACKENDS = 64, 16
INPUT, OUTPUT, STATE = "input", "output", "state"
_User = Annotated[str, Field(min_length=1, max_length=200)]
"""An operator such as `aten::add.out`, a backend such as `XnnpackBackend`, or one of INPUT, OUTPUT and STATE."""
_Shape = Annotated[list[SmallCount], Field(max_length=16)]


def short_operator(called: str) -> str:
    """Return `add` for the operator `aten::add.out`; a backend, `input` and so on stay as they are."""
    return called.partition("::")[2].partition(".")[0] or called


class _Plan(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class LiveBuffer(_Plan):
    """A planned buffer; values that share its memory, such as views, are one."""

    bytes: Bytes
    producer: _User
    last_user: _User
    first: SmallCount
    """The instruction that writes it; 0 for inputs and state."""
    last: SmallCount
    """The last instruction that uses it; the last of the method for outputs and state."""

    @property
    def instructions(self) -> int:
        """Number of instructions during which its memory cannot be used for anything else."""
        return self.last - self.first + 1


class MemoryPlan(_Plan):
    """The planned memory of a method and the data of its program, in bytes."""

    arenas_bytes: Annotated[list[Bytes], Field(max_length=MAX_ARENAS)]
    """Each arena that the runtime allocates when it loads the method."""
    instructions: SmallCount
    live_bytes: Bytes
    """Of the buffers that are alive at the instruction where these are largest."""
    live_at: SmallCount
    live_operator: _User | None = None
    """What this instruction calls; None for a method without calls."""
    buffers: Annotated[list[LiveBuffer], Field(max_length=MAX_BUFFERS)] = []
    """The largest ones that are alive there, in descending order."""
    constant_bytes: Bytes = 0
    """Constants and initial state in the program, of all methods."""
    named_bytes: Bytes = 0
    """Data in the program that delegates share by name, such as the weights of XNNPACK, of all methods."""
    payload_bytes: Annotated[dict[Name, Bytes], Field(max_length=MAX_BACKENDS)] = {}
    """What the program contains for the delegates of the method, by backend."""
    external_bytes: Bytes = 0
    """Files of weights outside the program (.ptd)."""
    largest_shape: _Shape = []
    """Of the first dynamic input, the shape that arenas and buffers are planned for; empty if all shapes are static."""
    measured_shape: _Shape = []
    """The shape of that input in the case that is measured."""
    needed_bytes: Bytes | None = None
    """The largest live set at the measured shapes; None for static shapes, and where the program alone is known."""

    @property
    def planned_bytes(self) -> int:
        return sum(self.arenas_bytes)

    @property
    def delegate_bytes(self) -> int:
        """What the program and its files contain for delegates: files of weights are theirs for the most part."""
        return self.named_bytes + sum(self.payload_bytes.values()) + self.external_bytes
