"""The pages of a big farm: the whole site, one more night, and again without anything new, in seconds.

Also the heaviest page of each kind, in kB.

Run: python -m tests.benchmarks.pages [--devices 60] [--models 40] [--nights 10]

The farm of docs/scale.md has 200 devices, 50 models and 60 nights.
"""

import resource
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

from tests.fixtures.big_farm import write_big_farm
from tests.fixtures.publications import publish_site


def main() -> None:
    """Write the farm and its pages into a temporary folder; print a line for each publication."""
    parser = ArgumentParser()
    for name, usual in (("devices", 60), ("models", 40), ("nights", 10)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="etfarm-pages-") as folder:
        after = Path(folder) / "warehouse.duckdb"
        before = Path(folder) / "before" / after.name  # each page names its source
        write_big_farm(after, asked.devices, asked.models, asked.nights, has_copies=True)
        before.parent.mkdir()
        after.with_name("before.duckdb").rename(before)
        print(f"{'publication':12} {'pages':>7} {'written':>8} {'removed':>8} {'wall':>9} {'CPU':>9}")
        for name, warehouse in (("whole site", before), ("next night", after), ("nothing new", after)):
            start, cpu_start = time.perf_counter(), cpu_s()
            done = publish_site(warehouse, str(Path(folder) / "site"))
            took_s, took_cpu_s = time.perf_counter() - start, cpu_s() - cpu_start
            counts = f"{done.pages:7} {done.written:8} {done.removed:8}"
            print(f"{name:12} {counts} {took_s:7.2f} s {took_cpu_s:7.2f} s", flush=True)
        print_weights(Path(folder) / "site")


def print_weights(site: Path) -> None:
    """Print the heaviest page of each folder of a site and its size in kB; home and lists are in none."""
    heaviest: dict[str, Path] = {}
    for page in sorted(site.rglob("*.html"), key=lambda page: page.stat().st_size):
        heaviest[page.relative_to(site).parts[0] if page.parent != site else ""] = page
    for page in heaviest.values():
        print(f"{page.stat().st_size / 1000:7.1f} kB {page.relative_to(site)}")


def cpu_s() -> float:
    """Return the CPU seconds of this process and of its processes that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    main()
