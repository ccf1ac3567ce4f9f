"""The virtual lab: stand-ins for two Android phones and two Macs, on one Linux machine, with root.

up        start what is not running, print how to reach each device
down      end and remove everything that `up` made
status    print the state of each device
loopback  without root: one sshd and one adbd on loopback ports, until interrupted
"""

import argparse
import fcntl
import json
import os
import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.lab import lab, loopback
from tests.lab.journal import LabError
from tests.lab.packages import PackageError, Packages, default_cache


def main() -> int:
    """Run the command line; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("up", "down", "status"):
        commands.add_parser(name)
    alone = commands.add_parser("loopback")
    alone.add_argument("--sshd-port", type=int, default=0, help="0 picks a free port")
    alone.add_argument("--adbd-port", type=int, default=0, help="0 picks a free port")
    arguments = parser.parse_args()
    folder = Path(os.environ.get("ETFARM_VAR") or "var") / "lab"
    try:
        if arguments.command == "loopback":
            return _loopback(arguments.sshd_port, arguments.adbd_port)
        return _with_lock(arguments.command, folder)
    except (LabError, PackageError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _with_lock(command: str, folder: Path) -> int:
    if command == "status":
        _show(lab.status())
        return 0
    with Path(__file__).open(encoding="utf-8") as lock:  # two at the same time would create the same things
        fcntl.flock(lock, fcntl.LOCK_EX)
        if command == "up":
            lab.up(folder)
            _show(lab.status())
        else:
            lab.down()
    return 0


def _loopback(sshd_port: int, adbd_port: int) -> int:
    """Serve until SIGINT or SIGTERM, then remove everything."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    packages = Packages(default_cache())
    with suppress(KeyboardInterrupt), ExitStack() as stack:  # Ctrl-C ends it
        sshd = stack.enter_context(loopback.sshd(sshd_port))
        adbd = stack.enter_context(loopback.adbd(packages, adbd_port))
        server = stack.enter_context(loopback.adb_server())
        _show({"sshd": sshd.__dict__, "adbd": {**adbd.__dict__, "adb_server_port": server}})
        signal.pause()
    return 0


def _show(what: object) -> None:
    sys.stdout.write(json.dumps(what, indent=1, default=str) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
