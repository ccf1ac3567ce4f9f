"""Which exports of a sweep are needed: not those for a delegate that none of its devices can run."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from devices.errors import FarmError
from devices.ondevice.facts import Facts
from tasks.bundle.delegates import needed_backends
from tasks.bundle.runtime import parse_runtime
from tasks.export.entry import ExportRequest, ModelEntry
from tasks.export.key import check_user_functions
from tasks.measure.matrix_rules import spec_delegates, why_no_runner, why_skipped
from tasks.measure.prepare import (
    ExportSettings,
    ExportSnapshot,
    ExportStatus,
    Pair,
    runner_uses,
    runners_without_build,
)
from tasks.measure.sweep_file import SweepSpec

NOT_NEEDED = ExportStatus("not needed", note="no selected device can run its delegate")


def status_without_export(entry: ModelEntry, recipe: str, settings: ExportSettings) -> ExportStatus:
    """Return the status of an export that no device needs: wrong if a function of yours does not exist."""
    try:
        check_user_functions(ExportRequest(entry, recipe, settings.folder, settings.seed))
    except FarmError as error:
        return ExportStatus("wrong", note=f"cannot export {entry.name} as {recipe}: {error}")
    return NOT_NEEDED


def runnable_everywhere(spec: SweepSpec) -> set[str | None]:
    """Return the delegates of a sweep that a runner of every platform has, by their words."""
    return {each for each in spec_delegates(spec) if needed_backends(each) == frozenset()}


def runnable_delegates(spec: SweepSpec, platform: str | None, runners: Path) -> set[str | None]:
    """Return the delegates of a sweep that a device can run: with an unknown platform (None), it may run all.

    `runners` is the folder of the runners; a registered one has what the user states.
    """
    delegates = set(spec_delegates(spec))
    if platform is None or not any(why_no_runner(each, platform) for each in delegates):
        return delegates
    present = runners_without_build(platform, runner_uses(spec), runners)
    return delegates - why_skipped(spec, Facts(platform=platform), present.by_use.keys()).keys()


def leave_out_unneeded(
    exports: ExportSnapshot, spec: SweepSpec, platforms: Iterable[str | None], runners: Path
) -> ExportSnapshot:
    """Return the exports of a sweep on devices of these platforms; pending ones that none can run are not needed."""
    needed = runnable_everywhere(spec)
    for platform in set(platforms):
        needed |= runnable_delegates(spec, platform, runners)

    def status(pair: Pair, now: ExportStatus) -> ExportStatus:
        return NOT_NEEDED if now.is_pending and parse_runtime(pair[0]).delegate not in needed else now

    return replace(exports, statuses={pair: status(pair, each) for pair, each in exports.statuses.items()})
