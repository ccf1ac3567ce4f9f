"""The ETDump reader on a million mutated ETDumps: none may crash it, hang it or take more than four times its size.

Run: python -m tests.benchmarks.fuzz --mutations 1000000 --seed 20261121
Repeat a finding: python -m tests.benchmarks.fuzz --replay SEED INDEX
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tests.fixtures.etdump_fuzz import CONSTANT_BYTES, LONGEST_S, MOST_TIMES_THE_FILE, Outcome, mutated, outcome_of

_PART = 2000


def main() -> None:
    """Read the mutations on all cores and print what they came to; exits with 1 if a promise was broken."""
    options = _options()
    if options.replay:
        print(outcome_of(mutated(*options.replay)))
        return
    print(
        f"Seed {options.seed}; limits: {LONGEST_S:g} s of processor time and "
        f"{MOST_TIMES_THE_FILE:g} times the file + {CONSTANT_BYTES >> 10} KiB"
    )
    folder = Path(tempfile.mkdtemp(prefix="etfarm-fuzz-"))
    start_s, accepted, slowest_s, most_times, findings = time.monotonic(), 0, 0.0, 0.0, 0
    for first, outcomes in _outcomes(options.seed, options.mutations):
        accepted += sum(outcome.accepted for outcome in outcomes)
        slowest_s = max(slowest_s, *(outcome.cpu_s for outcome in outcomes))
        most_times = max(most_times, *(outcome.times_the_file for outcome in outcomes))
        for index, outcome in enumerate(outcomes, first):
            if outcome.failure:
                findings += 1
                print(f"  {_keep(folder, options.seed, index)}: {outcome.failure}", flush=True)
    per_s = options.mutations / (time.monotonic() - start_s)
    print(
        f"{options.mutations} mutations, {per_s:.0f} per second on {os.cpu_count()} cores: {accepted} accepted, "
        f"{options.mutations - accepted} refused; slowest {slowest_s:.2f} s, largest memory {most_times:.1f}x the file"
    )
    if findings:
        sys.exit(f"{findings} findings in {folder}; repeat one with --replay {options.seed} INDEX")
    folder.rmdir()
    print("findings: 0")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Read mutated ETDumps.")
    parser.add_argument("--mutations", type=int, default=1_000_000, help="how many; default: a million")
    tonight = int(datetime.now(UTC).strftime("%Y%m%d"))
    parser.add_argument("--seed", type=int, default=tonight, help="default: the date, so that every night differs")
    parser.add_argument("--replay", type=int, nargs=2, metavar=("SEED", "INDEX"), help="read this one mutation again")
    return parser.parse_args()


def _outcomes(seed: int, mutations: int) -> Iterator[tuple[int, list[Outcome]]]:
    """Yield the index of the first mutation of each part and the outcomes of the part."""
    firsts = range(0, mutations, _PART)
    done = 0
    with ProcessPoolExecutor() as pool:
        try:
            for first, outcomes in zip(firsts, pool.map(partial(_part, seed, mutations), firsts), strict=True):
                yield first, outcomes
                done = first + len(outcomes)
        except BrokenProcessPool:
            sys.exit(f"seed {seed}: a reading process was killed by a mutation from index {done} on; replay them")


def _part(seed: int, mutations: int, first: int) -> list[Outcome]:
    return [outcome_of(mutated(seed, index)) for index in range(first, min(first + _PART, mutations))]


def _keep(folder: Path, seed: int, index: int) -> Path:
    path = folder / f"{seed}-{index}.etdump"
    path.write_bytes(mutated(seed, index))
    return path


if __name__ == "__main__":
    main()
