"""The virtual lab: stand-ins for two Android phones and two Macs, on one Linux machine, with root.

up        start what is not running, print the state of each device and how to reach it
down      end and remove everything that `up` made
"""

import argparse
import fcntl
import json
import os
import sys
from pathlib import Path

from tests.lab import lab
from tests.lab.journal import LabError
from tests.lab.packages import PackageError


def main() -> int:
    """Run the command line; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("up", "down"))
    command = parser.parse_args().command
    try:
        # two at the same time would create the same things
        with Path(__file__).open(encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if command == "down":
                lab.down()
                return 0
            lab.up(Path(os.environ.get("ETFARM_DATA_DIR") or "var") / "lab")
        sys.stdout.write(json.dumps(lab.status(), indent=1) + "\n")
    except (LabError, PackageError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
