"""How long sessions take, by those of earlier sweeps."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from flows.terminal import show
from flows.warehouse.publish import ask_warehouse
from sql.errors import NoWarehouse, WarehouseError
from tasks.bundle.cell import Cell
from tasks.measure.plan import PlannedSession
from tasks.store.workspace import Workspace

_LEAST_KNOWN = 0.75
_WIDER = 4 / 3
"""A night may be faster or slower than all of the few before it, by a third on a machine with other work."""
_Kind = tuple[str, str, int, str, str, int]


class Pace:
    """Seconds of each kind of session in the newest sweeps of each device; nothing without a readable warehouse."""

    def __init__(self, models: Sequence[str], var: Path, warehouse: Path | None) -> None:
        self._sweeps: dict[str, dict[str, dict[_Kind, float]]] = defaultdict(lambda: defaultdict(dict))
        try:
            rows = ask_warehouse("pace", Workspace(var, warehouse), models=list(models))
            for device, sweep_id, *kind, seconds in rows:
                self._sweeps[device][sweep_id][tuple(kind)] = seconds
        except NoWarehouse:
            pass  # nothing was measured yet, so nothing is known
        except WarehouseError as error:  # a plan is complete without times
            show(f"etfarm: without expected times: {error}", err=True)

    def seconds(self, device: str, sessions: Iterable[PlannedSession]) -> tuple[float, float] | None:
        """Return the least and most time for sessions on a device, by earlier sweeps and a third more; None: unknown.

        A sweep counts if it measured three quarters of them; the others are taken to last as long.
        """
        kinds = [_kind(each.cell) for each in sessions]
        if not kinds:
            return 0.0, 0.0
        totals = []
        for known in self._sweeps[device].values():
            found = [known[kind] for kind in kinds if kind in known]
            if len(found) >= _LEAST_KNOWN * len(kinds):
                totals.append(sum(found) * len(kinds) / len(found))
        return (min(totals) / _WIDER, max(totals) * _WIDER) if totals else None


def _kind(cell: Cell) -> _Kind:
    return cell.model, cell.precision, cell.threads, cell.variant, cell.mode, cell.executions
