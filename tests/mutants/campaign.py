"""What both commands share: a fault, the options, the sample of faults and the tally of those that tests find."""

import argparse
import contextlib
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fault:
    """One fault in a file: where it is, what stood there, and what stands there instead."""

    file: str
    line: int
    before: str
    after: str
    text: Callable[[], str] = field(compare=False)
    """Returns the whole file with the fault."""

    def __str__(self) -> str:
        before, after = (" ".join(part.split())[:80] for part in (self.before, self.after))
        return f"{self.file}:{self.line}: {before} -> {after}"


def read_options(description: str, rooms: Iterable[str]) -> argparse.Namespace:
    """Return the options of the command line; `rooms` are the names from which it chooses."""
    known = list(rooms)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"{', '.join(known)}; default: all")
    parser.add_argument("--sample", type=int, default=60, help="faults of each room; default: 60")
    parser.add_argument("--seed", type=int, default=1, help="another seed takes other faults; default: 1")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="part of FILE:LINE of the faults")
    parser.add_argument("--seconds", type=float, default=3600, help="starts no further fault after so long")
    options = parser.parse_args()
    if unknown := set(options.rooms).difference(known):
        parser.error(f"unknown room: {', '.join(sorted(unknown))}; available: {', '.join(known)}")
    options.rooms = options.rooms or known
    return options


@contextlib.contextmanager
def temporary_folder() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="etfarm-mutants-", ignore_cleanup_errors=True) as folder:
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        yield


def run_campaign(
    room: str, known: Iterable[Fault], find: Callable[[Fault], bool | None], options: argparse.Namespace
) -> None:
    """Try a sample of the known faults; print each that no test finds, and how many were found in each file.

    `find` returns whether a test finds a fault, and None of a fault that does not count.
    """
    began = time.monotonic()
    wanted = [fault for fault in known if any(text in f"{fault.file}:{fault.line}" for text in options.only)]
    random.Random(f"{room} {options.seed}").shuffle(wanted)
    print(f"{room}: {min(options.sample, len(wanted))} of {len(wanted)} faults, seed {options.seed}", flush=True)
    killed: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for fault in wanted:
        if tried.total() == options.sample:
            break
        if time.monotonic() - began > options.seconds:
            print("  out of time: the other faults were not tried")
            break
        is_found = find(fault)
        if is_found is not None:
            tried[fault.file] += 1
            killed[fault.file] += is_found
        if is_found is False:
            print(f"  survived, number {tried.total()}: {fault}", flush=True)
    for file, count in sorted(tried.items()):
        print(f"  {file}: {killed[file]} of {count} killed")
    share = 100 * killed.total() / max(tried.total(), 1)
    print(f"{room}: {killed.total()} of {tried.total()} killed ({share:.0f} %)", flush=True)
