"""What the reader promises beside executorch.devtools: the same events to the nanosecond. Needs the export extra."""

from collections import Counter
from pathlib import Path
from typing import Any

from tasks.etdump import Etdump, EventKind, read_etdump


def assert_same_as_devtools(path: Path) -> None:
    """Read `path` with our reader, with devtools' schema and with Inspector, and assert that all three agree."""
    from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc

    ours = read_etdump(path)
    theirs = deserialize_from_etdump_flatcc(path.read_bytes())
    expected = [
        (run_index, event.profile_event)
        for run_index, run in enumerate(theirs.run_data)
        for event in run.events or ()
        if event.profile_event is not None
    ]
    others = [event for run in theirs.run_data for event in run.events or () if event.profile_event is None]
    rows = zip(
        ours.run_data_index.tolist(),
        [ours.names[number] for number in ours.name_id],
        (ours.kind == EventKind.DELEGATED).tolist(),
        ours.chain_index.tolist(),
        ours.instruction_id.tolist(),
        ours.start_ns.tolist(),
        ours.end_ns.tolist(),
        ours.dur_ns.tolist(),
        strict=True,
    )
    assert list(rows) == [_row(run_index, event) for run_index, event in expected]
    assert ours.version == theirs.version
    assert ours.debug_events == sum(event.debug_event is not None for event in others)
    assert ours.allocation_events == sum(event.allocation_event is not None for event in others)
    executes = [event for _, event in expected if event.name == "Method::execute"]
    assert ours.execute_ns.tolist() == [event.end_time - event.start_time for event in executes]
    assert ours.executions == len(executes)
    if not ours.allocation_events:  # Inspector refuses files that hold one
        _assert_same_as_inspector(ours, path)


def _row(run_index: int, event: Any) -> tuple[Any, ...]:
    """Return what our reader should say of an event of devtools."""
    name, text, number = event.name, event.delegate_debug_id_str, event.delegate_debug_id_int
    return (
        run_index,
        name or text or ("(unnamed)" if number == -1 else f"delegate:{number}"),
        not name and (bool(text) or number != -1),
        event.chain_index,
        event.instruction_id,
        event.start_time,
        event.end_time,
        event.end_time - event.start_time,
    )


def _assert_same_as_inspector(ours: Etdump, path: Path) -> None:
    """Compare with Inspector, which keeps only the last of the events that repeat a signature within a run."""
    from executorch.devtools import Inspector
    from executorch.devtools.inspector import TimeScale

    names = [ours.names[number] for number in ours.name_id]
    last = dict(
        zip(
            zip(
                ours.run_data_index.tolist(),
                ours.instruction_id.tolist(),
                ours.chain_index.tolist(),
                names,
                strict=True,
            ),
            ours.dur_ns.tolist(),
            strict=True,
        )
    )
    inspector = Inspector(etdump_path=str(path), source_time_scale=TimeScale.NS, target_time_scale=TimeScale.NS)
    theirs = Counter(
        (f"delegate:{event.name}" if isinstance(event.delegate_debug_identifier, int) else event.name, duration_ns)
        for block in inspector.event_blocks
        for event in block.events
        if event.perf_data is not None
        for duration_ns in event.perf_data.raw
    )
    assert Counter((name.replace("(unnamed)", ""), duration) for (*_, name), duration in last.items()) == theirs
