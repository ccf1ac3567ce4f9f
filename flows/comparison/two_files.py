"""Compare two .pte files by measuring them alternately on one device."""

from pathlib import Path

from prefect import flow, runtime

from devices.inventory import DeviceSpec
from flows.artifacts import shown_progress
from flows.comparison.lane import Answer, Lane, open_lane
from flows.comparison.results import Results
from flows.progress import board
from flows.shutdown import shutdown_handler
from tasks.bundle.cell import Cell
from tasks.export.prebuilt import exported_or_prebuilt
from tasks.measure.interleaved import Side
from tasks.measure.spec import SweepSpec


@flow(name="compare", flow_run_name="compare {a.name} and {b.name} on {device.name}", validate_parameters=False)
def compare_files(
    a: Path, b: Path, device: DeviceSpec, results: Results, sessions: int, margin: float, priority: int
) -> Answer:
    """Measure two .pte files in turns, with `sessions` each; `margin` is a fraction. Raises FarmError.

    A sweep of lower `priority` releases the device for them, after its present session.
    """
    with shutdown_handler(runtime.flow_run.id), shown_progress():
        lane = open_lane(device, results, priority)
        board.expect("compare", 1)
        answer = lane.answer(_side(a, lane), _side(b, lane), "comparison", sessions, margin)
        board.done("compare", answer.in_words())
        return answer


def _side(pte: Path, lane: Lane) -> Side:
    """Return what measures a file: one thread, and as many executions as a sweep without settings of its own."""
    export = exported_or_prebuilt(pte, lane.results.places.exports)
    executions = export.executions(
        *(SweepSpec.model_fields[name].default for name in ("executions", "warmup_executions"))
    )
    cell = Cell(lane.probe.device.name, export.model, export.precision, 1, lane.variant, "timing", *executions)
    return Side(cell, export, lane.runner)
