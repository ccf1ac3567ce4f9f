"""Every benchmark of the farm but the long ones, one after the other, each in a separate process.

Run: make bench
"""

import subprocess
import sys
from pathlib import Path

# No benchmark, or one of many minutes.
_LEFT_OUT = ("__init__", "run_all", "farm")


def main() -> None:
    """Run each benchmark of this folder; their output is the result."""
    for program in sorted(Path(__file__).parent.glob("*.py")):
        if program.stem not in _LEFT_OUT:
            print(f"== {program.stem}", flush=True)
            subprocess.run([sys.executable, "-m", f"tests.benchmarks.{program.stem}"], check=True)


if __name__ == "__main__":
    main()
