"""Every benchmark of the farm, one after the other, each in a separate process.

Run: make bench
"""

import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Run each benchmark of this folder; their output is the result."""
    for program in sorted(Path(__file__).parent.glob("*.py")):
        if program.name not in ("__init__.py", Path(__file__).name):
            print(f"== {program.stem}", flush=True)
            subprocess.run([sys.executable, "-m", f"tests.benchmarks.{program.stem}"], check=True)


if __name__ == "__main__":
    main()
