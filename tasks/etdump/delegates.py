"""What the delegates of ExecuTorch write into an ETDump: the only table of them, with the source of each fact.

A delegate may log any two numbers as start and end of an event. Only some of them are times of the runtime's clock.
"""

import re
from dataclasses import dataclass
from enum import Enum


class Times(Enum):
    """What the times of a delegate's events are."""

    HOST = "times of the runtime's clock, or durations that add up on it"
    GPU = "scopes of the runtime's clock, and dispatches in nanoseconds of the GPU's clock"
    ESTIMATE = "the time of the whole, divided by the weights of a cost model"
    NONE = "no times"
    UNKNOWN = "unknown: times of the runtime's clock if they lie in their call"


@dataclass(frozen=True)
class Delegate:
    """A backend that runs parts of a program."""

    name: str
    """As tables show it."""
    times: Times
    events: re.Pattern[str] | None = None
    """Found in the names of its events, and of no other delegate's; None if names show nothing."""
    why: str = ""
    """Why its events are no times."""


GPU_SCOPE = "ETVK_COMPUTE_GRAPH_EXECUTE"
"""The scope in which the runtime waits for the GPU of Vulkan; the dispatches are logged after it."""
GPU_DISPATCH = re.compile(r'"dispatch_id": \d+\}$')
COST = b'"estimatedCost"'
"""In the metadata of Core ML's events."""
ESTIMATE_MARK = " [estimate]"
"""At the end of the name of an operator whose time is an estimate."""

# By the id that programs state. Sources: the runtime of each backend in pytorch/executorch, of November 2026.
DELEGATES = {
    # backends/xnnpack/runtime/profiling/XNNProfiler.cpp: "{operator} #{count}", full microseconds, each begins where
    # the one before ended.
    "XnnpackBackend": Delegate("XNNPACK", Times.HOST, re.compile(r" #\d+$")),
    # backends/qualcomm/runtime/backends/QnnProfiler.cpp: start 0, end the value of the event; HTP names its nodes
    # "conv:OpId_21 (cycles)".
    "QnnBackend": Delegate(
        "QNN",
        Times.NONE,
        re.compile(r"OpId_\d+|\((cycles|us)\)$"),
        "QNN reports cycles or microseconds, not the nanoseconds of an ETDump",
    ),
    # backends/vulkan/runtime/VulkanBackend.cpp: scopes ETVK_*, then "{..., "dispatch_id": N}" from GPU timestamps.
    "VulkanBackend": Delegate("Vulkan", Times.GPU, re.compile(rf"^ETVK_|{GPU_DISPATCH.pattern}")),
    # backends/apple/coreml/runtime/sdk/ETCoreMLModelProfiler.mm: the duration of a prediction times the weight of
    # each operator in MLComputePlan; ETCoreMLOperationProfilingInfo.mm writes the metadata.
    "CoreMLBackend": Delegate("Core ML", Times.ESTIMATE),
    # backends/arm/runtime/VGFBackend.cpp: nested scopes of the runtime's clock.
    "VgfBackend": Delegate("VGF", Times.HOST, re.compile(r"^VGF_")),
}


def delegate_of(backend: str) -> Delegate:
    """Return the delegate with this id; one that the table does not list is called by its id."""
    return DELEGATES.get(backend) or Delegate(backend, Times.UNKNOWN)


UNRECOGNIZED = Delegate("Unknown", Times.UNKNOWN)


def recognized(name: str, *, has_cost: bool) -> Delegate | None:
    """Return the delegate that an event with this name belongs to; None if the name shows nothing."""
    if has_cost:
        return DELEGATES["CoreMLBackend"]
    return next((each for each in DELEGATES.values() if each.events and each.events.search(name)), None)
