"""How near operators, models and devices come to the roof: what a device can do at most."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated

from tasks.results.cells import CellRow, Night, Variant
from tasks.results.table import NOTHING, Cell, Milliseconds, Name, Number, Percent, Row, Words
from tasks.results.text import in_ms, in_percent

_LIMITS = {"compute": "computing", "memory": "memory", "overhead": "too short to tell"}


@dataclass(frozen=True)
class RooflineRow(CellRow):
    """An operator of a cell with a roof; those that could win most come first."""

    query = "rooflines"
    operator: Annotated[str, Name("Operator")]
    bound: Annotated[str, Words("Limit")]
    time_ms: Annotated[float, Milliseconds("Time", unit="ms per run")]
    low_ms: Annotated[float | None, Milliseconds("95 % interval", unit="ms", only_with="low_ms")]
    high_ms: float | None
    roof_ms: Annotated[float, Milliseconds("At the roof")]
    winnable_ms: Annotated[float, Milliseconds("Could be won", "time above the roof")]
    share: Annotated[float | None, Percent("Of the roof", bar=True)]
    gmac_per_s: Annotated[float | None, Number("Computes", "GMAC/s", digits=1)]
    gb_per_s: Annotated[float | None, Number("Moves", "GB/s", digits=1)]
    intensity: Annotated[float | None, Number("Intensity", "MAC/byte", digits=1)]
    peak_gmac_per_s: float | None

    def bound_cell(self, _cell: Cell) -> Cell:
        return Cell(_LIMITS[self.bound], tone="quiet" if self.bound == "overhead" else "")

    def low_ms_cell(self, _cell: Cell) -> Cell:
        if self.low_ms is None or self.high_ms is None:
            return NOTHING
        return Cell(f"{self.low_ms:.3f} to {self.high_ms:.3f}", sort=self.low_ms)


@dataclass(frozen=True)
class ModelRooflineRow(CellRow):
    """A cell with a roof: the whole model beside it."""

    query = "model_rooflines"
    time_ms: float
    roof_ms: float
    share: float | None
    covered_share: float
    winnable_ms: float
    compute_bound_ms: float
    memory_bound_ms: float
    overhead_ms: float
    clock_ratio: float | None
    clock_differs: bool | None
    peak_gmac_per_s: float
    read_gb_per_s: list[float]
    """Of several sizes, the smallest first; the last one is the memory's."""

    @property
    def sentence(self) -> str:
        """The time at the roof beside the measured one, and what limits the model."""
        parts = {"computing": self.compute_bound_ms, "memory": self.memory_bound_ms, "calls": self.overhead_ms}
        limits = ", ".join(f"{name} {in_percent(ms / self.time_ms)}" for name, ms in parts.items() if ms)
        clock = ""
        if self.clock_differs:
            clock = f" The clock was {self.clock_ratio:.2f} times that of the roof's sessions: ignore the shares."
        return (
            f"At the roof of the device, operators with known work take {in_ms(self.roof_ms)} of "
            f"{in_ms(self.time_ms)} ({in_percent(self.roof_ms / self.time_ms)}). They are "
            f"{in_percent(self.covered_share)} of the time. Shares of the time by limit: {limits}.{clock}"
        )


@dataclass(frozen=True)
class DeviceRoofRow(Row):
    """The roof of a device in its newest night with one, in a precision, variant and number of threads."""

    query = "device_roofs"
    device: str
    night: Annotated[date | None, Night("Night")]
    precision: Annotated[str, Words("Precision")]
    variant: Annotated[str, Variant("Variant")]
    threads: Annotated[int | None, Number("Threads")]
    peak_gmac_per_s: Annotated[
        float, Number("Computes", "GMAC/s", "median of the fastest run of each session", digits=1)
    ]
    low_gmac_per_s: Annotated[float | None, Words("95 % interval", "GMAC/s", only_with="low_gmac_per_s")]
    high_gmac_per_s: float | None
    read_speeds: Annotated[list[dict[str, float]] | None, Words("Reads", "GB/s", "by the size of the data", wraps=True)]
    clock_mhz: Annotated[float | None, Number("Clock", "MHz", only_with="clock_mhz")]
    sessions: Annotated[int, Number("Sessions")]

    def low_gmac_per_s_cell(self, _cell: Cell) -> Cell:
        if self.low_gmac_per_s is None or self.high_gmac_per_s is None:
            return NOTHING
        return Cell(f"{self.low_gmac_per_s:.1f} to {self.high_gmac_per_s:.1f}", sort=self.low_gmac_per_s)

    def read_speeds_cell(self, _cell: Cell) -> Cell:
        if not self.read_speeds:  # the runner had no memory to read
            return NOTHING
        return Cell(", ".join(f"{_size(int(each['bytes']))}: {each['gb_per_s']:.1f}" for each in self.read_speeds))


def _size(size_bytes: int) -> str:
    return f"{size_bytes >> 20} MB" if size_bytes >= 1 << 20 else f"{size_bytes >> 10} KB"
