"""Measure two contents alternately on one device, load what came of it, and compare them."""

from dataclasses import dataclass, field
from datetime import datetime

from devices.errors import FarmError
from devices.inventory import DeviceSpec
from flows.comparison.results import Results
from flows.device.job import DeviceJob, SweepTerms
from flows.device.measure import measure_device
from flows.dispatch import probe_step, runner_step
from flows.export_queue import ExportQueue
from flows.server.states import outcome
from tasks.bundle.cell import VARIANTS, Purpose, Variant
from tasks.judge.cause import cause_of_rows
from tasks.judge.comparison import MARGIN, Comparison, compare_sessions
from tasks.measure.interleaved import Side, comparison_id, plan_round
from tasks.measure.prepare import Probe, Runners, Use
from tasks.measure.spec import Terms
from tasks.runner.manifest import Runner


@dataclass(frozen=True)
class Answer:
    """How side B compares with side A."""

    result: Comparison
    cause: str | None
    """The operators behind a difference; None if there is none or nothing can be named."""
    inaccurate_sides: tuple[str, ...] = ()
    """`A`, `B` or both, if their outputs are inaccurate: the times are then no result."""
    calls: int = 1
    """How many calls measured the sessions."""
    since: datetime | None = None
    """When the first of them was started, UTC."""
    cells: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Those of A and of B that were pooled."""
    variant: Variant = "sme2_off"
    """That of the runner that measured both."""

    @property
    def word(self) -> str:
        """different, same, unknown or inaccurate."""
        return "inaccurate" if self.inaccurate_sides else self.result.answer

    def in_words(self) -> str:
        """`+38.0 % (+37.1 % to +39.0 %; 8 and 8 sessions), different; cause: ...`."""
        found = self.result
        if found.ratio is None or found.low is None or found.high is None:
            return f"{found.answer}: {found.note or f'too few sessions ({found.sessions_a} and {found.sessions_b})'}"
        change, low, high = (f"{100 * (each - 1):+.1f} %" for each in (found.ratio, found.low, found.high))
        why = f" outputs of {' and '.join(self.inaccurate_sides)}" if self.inaccurate_sides else ""
        sessions = f"{found.sessions_a} and {found.sessions_b} sessions"
        beside = f"; cause: {self.cause}" if self.cause else ""
        beside += f"; {found.note}" if found.note else ""
        return f"{change} ({low} to {high}; {sessions}), {self.word}{why}{beside}"


@dataclass(frozen=True)
class Lane:
    """One device on which contents are compared, its runners, and where the results go."""

    probe: Probe
    runners: Runners
    results: Results
    terms: Terms = field(default_factory=Terms)

    @property
    def variant(self) -> Variant:
        """With SME2, or SME, where the device is known to have it, as a model is shipped."""
        facts = self.probe.facts
        return "sme2_on" if facts.sme2 else "sme1" if facts.sme else "sme2_off"

    @property
    def runner(self) -> Runner:
        """The present runner for that variant; raises FarmError if there is none."""
        if runner := self.runners.by_use.get((self.variant, "timing")):
            return runner
        raise FarmError(f"no runner for {self.probe.platform} and {self.variant}; see `etfarm devices runner --help`")

    def answer(self, a: Side, b: Side, purpose: Purpose, sessions: int, margin: float = MARGIN) -> Answer:
        """Measure both sides with this many sessions each, A B B A ..., and compare them.

        What was measured before in the same sweep is not measured again; what earlier sweeps measured counts, too.
        Raises FarmError, with the reason of the first failure, if this sweep has no session of a side that counts.
        """
        results = self.results
        tally = measure_device(self._job(a, b, purpose, sessions))
        results.load()
        comparisons = [comparison_id(sweep, a, b, purpose) for sweep in (*results.earlier, results.sweep)]
        pool = results.ask("comparison_pool", comparisons=comparisons)
        cells_a, cells_b = ([cell for arm, cell in pool if arm == side] for side in "ab")
        cells = [*cells_a, *cells_b]
        sides = {side: figures for side, *figures in results.ask("comparison_figures", cells=cells)}
        for name in "ab":
            if name not in sides:
                raise FarmError(f"side {name.upper()}: {tally.stopped_by or self._failure(comparisons[-1], name)}")
        (times_a, calls, since_a), (times_b, _, since_b) = sides["a"], sides["b"]
        result = compare_sessions(times_a, times_b, margin)
        cause = self._cause(cells_a, cells_b) if result.answer == "different" else None
        inaccurate = tuple(side.upper() for (side,) in results.ask("comparison_inaccurate", cells=cells))
        return Answer(
            result, cause, inaccurate, calls, min(since_a, since_b), (tuple(cells_a), tuple(cells_b)), self.variant
        )

    def _job(self, a: Side, b: Side, purpose: Purpose, sessions: int) -> DeviceJob:
        results = self.results
        terms = SweepTerms(self.terms, results.sweep, results.bundles, results.places, ExportQueue())
        again = plan_round(results.sweep, [(a, b)], purpose, sessions)
        return terms.job(self.probe, self.runners, again=again)

    def _cause(self, cells_a: list[str], cells_b: list[str]) -> str | None:
        return cause_of_rows(self.results.ask("comparison_operators", cells_a=cells_a, cells_b=cells_b))

    def _failure(self, comparison: str, side: str) -> str:
        """Return why no session of a side counts."""
        store = self.results.bundles
        for record in store.records(self.results.sweep.sweep_id, skip_damaged=True):
            if record.arm and (record.arm.comparison, record.arm.side) == (comparison, side) and record.reason:
                return f"{record.status}: {record.reason}"
        return "no session has a result; emulated and simulated devices have no times to compare"


def open_lane(device: DeviceSpec, results: Results, priority: int = 0) -> Lane:
    """Probe a device and build its runner, as tasks of the present flow run; raises FarmError."""
    probe: Probe = outcome(probe_step(device, results.places.registry, return_state=True))
    if probe.unusable or not probe.platform:
        raise FarmError(probe.unusable or f"{device.name}: unknown platform; state it in the inventory")
    uses: list[Use] = [(variant, "timing") for variant in VARIANTS]
    state = runner_step(probe.platform, uses, results.places.runners, return_state=True)
    runners: Runners = outcome(state)
    if not runners.by_use:
        raise FarmError(
            runners.error or f"no runner for {probe.platform}; build one with `etfarm devices runner build`"
        )
    return Lane(probe, runners, results, Terms(priority=priority))
