"""Sentences about the memory of a program: what is planned, what holds it, and what the file contains."""

from collections.abc import Iterator, Sequence

from tasks.bundle.memory_plan import INPUT, OUTPUT, STATE, LiveBuffer, MemoryPlan, short_operator
from tasks.bundle.runner_stats import Stats
from tasks.bundle.sizes import size_text

_MAX_BUFFERS = 3
_ALWAYS = {INPUT: "an input", OUTPUT: "an output", STATE: "state"}


def describe_plan(plan: MemoryPlan) -> Iterator[str]:
    """Yield a line on the planned arenas, on the buffers that hold most of them, and on the data of the program."""
    yield f"memory: {size_text(plan.planned_bytes)} planned{_bound(plan)}"
    if plan.live_operator and plan.live_bytes:
        at = f"instruction {plan.live_at} of {plan.instructions} ({short_operator(plan.live_operator)})"
        held = ", ".join(describe_buffer(each, plan.instructions) for each in plan.buffers[:_MAX_BUFFERS])
        yield f"largest live set: {size_text(plan.live_bytes)} at {at}: {held}"
    parts = {
        "constants": plan.constant_bytes,
        "weights that delegates share": plan.named_bytes,
        **{f"payload of {backend}": size for backend, size in plan.payload_bytes.items()},
        "files of weights": plan.external_bytes,
    }
    listed = ", ".join(f"{size_text(size)} {name}" for name, size in parts.items() if size)
    yield f"data of the program: {listed or 'none'}"


def describe_measured(stats: Sequence[Stats]) -> str | None:
    """Return the measured memory of the session with the largest peak; None if no session reports it."""
    reported = [each for each in stats if each.model_peak_memory_bytes and each.load_anonymous_bytes]
    if not reported:
        return None
    largest = max(reported, key=lambda each: each.model_peak_memory_bytes or 0)
    moments = {
        "before loading": (largest.start_anonymous_bytes, largest.start_file_bytes),
        "loaded": (largest.load_anonymous_bytes, largest.load_file_bytes),
        "after the first run": (largest.model_anonymous_bytes, largest.model_file_bytes),
    }
    parts = [
        f"{size_text((anonymous or 0) + (of_files or 0))} {name}" for name, (anonymous, of_files) in moments.items()
    ]
    return f"measured: {', '.join([*parts, f'{size_text(largest.model_peak_memory_bytes or 0)} at the peak'])}"


def describe_buffer(buffer: LiveBuffer, instructions: int) -> str:
    """Return a buffer as `600 kB from mul, last used by add (over 3 of 40 instructions)`."""
    producer, last_user = (_ALWAYS.get(each, short_operator(each)) for each in (buffer.producer, buffer.last_user))
    size = size_text(buffer.bytes)
    if buffer.producer == STATE:
        return f"{size} of {producer}"
    lives = f"over {buffer.instructions} of {instructions} instructions"
    used = last_user if buffer.last_user == OUTPUT else f"last used by {last_user}"
    return f"{size} from {producer}, {used} ({lives})"


def _bound(plan: MemoryPlan) -> str:
    if not plan.largest_shape:
        return ""
    largest, measured = ("x".join(map(str, shape)) for shape in (plan.largest_shape, plan.measured_shape))
    if plan.needed_bytes is None:
        return f" for the largest shape, {largest}; what {measured} needs is unknown for a .pte file"
    return f" for the largest shape, {largest}; {measured} needs {size_text(plan.needed_bytes)}"
