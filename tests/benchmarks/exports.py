"""How long the exports of the smoke sweep take: from one server that imports torch once, and from a new one each.

Run: python -m tests.benchmarks.exports [MODEL ...]

Both ways alternate, and each starts without any export. Besides the wall time, which depends on what else this machine
does, it prints the CPU time of the export processes.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from tasks.prepare.export import run
from tasks.prepare.export.export import export_model

MODELS = ("toy_cnn", "mobilenet_v2", "mobilevit_xs", "bert_tiny")
PRECISIONS = ("fp32", "fp16")


def main() -> None:
    """Export all pairs cold in both ways, twice, and print the times in seconds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    print("| way | exports | wall (s) | user CPU (s) |\n| --- | --- | --- | --- |")
    for _ in range(options.rounds):
        for way, export_all in (("one server", _from_one_server), ("server each", _from_a_server_each)):
            with tempfile.TemporaryDirectory() as folder, _timed(way, len(options.models) * len(PRECISIONS)):
                export_all(Path(folder), options.models)


def _from_one_server(folder: Path, models: list[str]) -> None:
    pairs = list(product(models, PRECISIONS))
    with ThreadPoolExecutor(len(pairs)) as pool:
        for future in [pool.submit(export_model, *pair, folder) for pair in pairs]:
            future.result()
    run.end_server()


def _from_a_server_each(folder: Path, models: list[str]) -> None:
    for model, precision in product(models, PRECISIONS):
        export_model(model, precision, folder)
        run.end_server()


@contextmanager
def _timed(way: str, count: int) -> Iterator[None]:
    began, cpu = time.monotonic(), os.times().children_user
    yield
    print(f"| {way} | {count} | {time.monotonic() - began:.1f} | {os.times().children_user - cpu:.1f} |", flush=True)


if __name__ == "__main__":
    main()
