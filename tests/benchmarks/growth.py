"""How CPU time and memory grow with devices, sessions, models, nights and labs, each of which is doubled alone.

Run: python -m tests.benchmarks.growth [words of cases, such as labs]

A line has the CPU time of the smallest size and of one eight times as large, and what fits all sizes: a part that is
the same for all, and the exponent of the other part, so that a large fixed cost does not hide what grows with the
square. The exponent is the least one whose curve comes within 5 % of all costs, * one above 1.1. A cost that grows by
less than a tenth, or by less than 4 MB, is flat. Each size has a process, and the least of three counts.
"""

import argparse
import json
import logging
import os
import resource
import shutil
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np

from tests.fixtures import growing

DOUBLINGS, TIMES, LIMIT, NOISE = 3, 3, 1.1, 0.05
_MIN_BYTES = 4 << 20  # a process of Python gains as much by chance


@dataclass(frozen=True)
class Case:
    """Work in a folder that `prepare` has filled for the size; of cases with equal `prepare`, it is filled once."""

    name: str
    of: str
    start: int
    work: Callable[[Path, int], object]
    prepare: Callable[[Path, int], object] | None = None


def _sized(work: Callable[..., object], of: str, **more: object) -> Callable[[Path, int], object]:
    """Return work whose size is its argument `of`."""
    return lambda folder, size: work(folder, **more, **{of: size})


def _unsized(work: Callable[[Path], object]) -> Callable[[Path, int], object]:
    """Return work whose size is that of the farm in its folder."""
    return lambda folder, _size: work(folder)


def _cases() -> list[Case]:
    sweeps = {"devices": 25, "sessions": 25, "models": 50}
    cases = [Case("sweep, and again", of, start, _sized(growing.sweep, of)) for of, start in sweeps.items()]
    cases.append(Case("sweep during exports", "models", 50, _sized(growing.sweep, "models", is_live=True)))
    cases.append(Case("labs with 4 devices", "labs", 4, _sized(growing.measure_in_labs, "labs")))
    for of, start in {"devices": 5, "models": 5, "nights": 8}.items():
        prepare = _sized(growing.write_farm, of)
        works = {
            "judge one more night": growing.judge_night,
            "load 20 sessions": growing.load_sessions,
            "pages of one more night": growing.publish_pages,
            "verdicts, explain": growing.ask,
        }
        for name, work in works.items():
            cases.append(Case(name, of, start, _unsized(work), prepare))
    return cases


def main() -> None:
    """Print a line for each case whose words are all in its name or in what it doubles."""
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    words = parser.parse_args().words
    logging.disable()
    chosen = [case for case in _cases() if all(word in f"{case.name} {case.of}" for word in words)]
    print(f"{'':24} {'':8} {'sizes':>11}  {'CPU':>19} {'fixed':>8} exponent  {'memory':>19} {'fixed':>8} exponent")
    for (start, prepare), cases in groupby(chosen, lambda case: (case.start, case.prepare)):
        _print_lines(start, prepare, list(cases))


def _print_lines(start: int, prepare: Callable[[Path, int], object] | None, cases: Sequence[Case]) -> None:
    sizes = [start << doubling for doubling in range(DOUBLINGS + 1)]
    with tempfile.TemporaryDirectory(prefix="etfarm-growth-") as name:
        for size in sizes:
            (Path(name) / str(size)).mkdir()
            if prepare:
                _in_process(partial(prepare, Path(name) / str(size), size))
        for case in cases:
            costs = [_cost(case, Path(name) / str(size), size) for size in sizes]
            cpu_s, peak_bytes = zip(*costs, strict=True)
            print(
                f"{case.name:24} {case.of:8} {sizes[0]:4} to {sizes[-1]:3} "
                f"{_cells(sizes, cpu_s, 1e3, 'ms')}  {_cells(sizes, peak_bytes, 1e-6, 'MB', _MIN_BYTES)}",
                flush=True,
            )


def _cells(sizes: Sequence[int], costs: Sequence[float], factor: float, unit: str, min_growth: float = 0) -> str:
    """Return the first and last cost, the fixed part and the exponent of the other one; * if that is above LIMIT."""
    text = f"{factor * costs[0]:7.0f} to {factor * costs[-1]:5.0f} {unit}"
    if costs[-1] - costs[0] < max(0.1 * costs[0], min_growth):
        return f"{text} {'':10}  flat   "
    fixed, exponent = fitted(sizes, costs)
    return f"{text} {factor * fixed:6.0f} {unit} {exponent:6.2f} {'*' if exponent > LIMIT else ' '}"


def fitted(sizes: Sequence[int], costs: Sequence[float]) -> tuple[float, float]:
    """Return the fixed part of costs and the exponent of the other part.

    Of the curves that come within NOISE of each cost, it is that of the least exponent; without any, the nearest one.
    """
    curves = []
    for exponent in np.arange(0.05, 3, 0.01).tolist():
        parts = np.array([[1.0, size**exponent] for size in sizes]) / np.array(costs)[:, None]
        (fixed, slope), *_ = np.linalg.lstsq(parts, np.ones(len(sizes)), rcond=None)
        if fixed < 0:
            fixed, slope = 0.0, float(parts[:, 1].sum() / (parts[:, 1] ** 2).sum())
        error = float(np.abs(parts @ [fixed, slope] - 1).max())
        curves.append((max(error, NOISE), exponent, float(fixed)))
    _, exponent, fixed = min(curves)
    return fixed, exponent


def _cost(case: Case, folder: Path, size: int) -> tuple[float, float]:
    """Return the least CPU seconds of the work, and the least of its peaks of memory in bytes."""
    costs = []
    for _ in range(TIMES):
        with tempfile.TemporaryDirectory(prefix="etfarm-growth-") as copy:
            shutil.copytree(folder, copy, dirs_exist_ok=True)
            costs.append(_in_process(partial(case.work, Path(copy), size)))
    return min(cpu_s for cpu_s, _ in costs), min(peak for _, peak in costs)


def _in_process(work: Callable[[], object]) -> tuple[float, float]:
    """Do the work in a fork of this process; return its CPU seconds, and by how many bytes it grew at most."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
            before = _memory_bytes("VmRSS")
            start_s = _cpu_s()
            work()
            cost = _cpu_s() - start_s, _memory_bytes("VmHWM") - before
            os.write(writing, json.dumps(cost).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    if not text:
        raise SystemExit("the work failed; see above")
    cpu_s, peak_bytes = json.loads(text)
    return cpu_s, peak_bytes


def _cpu_s() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _memory_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


if __name__ == "__main__":
    main()
