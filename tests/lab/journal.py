"""A journal of everything that the lab makes on this machine, so that `down` removes exactly that.

It is in /run, which a restart of the machine clears, as it does everything else that the lab makes.
"""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.lab import processes

RUN = Path("/run/etfarm-lab")
_PATH = RUN / "made.jsonl"
BINFMT = Path("/proc/sys/fs/binfmt_misc")


class LabError(Exception):
    """A command of the lab failed; the text is one sentence."""


def note(kind: str, name: str, **what: Any) -> None:
    RUN.mkdir(exist_ok=True)
    with _PATH.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"kind": kind, "name": name, **what}) + "\n")


def noted(kind: str | None = None) -> list[dict[str, Any]]:
    try:
        lines = _PATH.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return [entry for entry in map(json.loads, lines) if kind in (None, entry["kind"])]


def is_noted(kind: str, name: str) -> bool:
    return any(entry["name"] == name for entry in noted(kind))


def run_tool(*argv: str | Path) -> str:
    """Run one command to its end and return its output; raises LabError with its error message if it fails."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LabError(f"`{words[0]}` cannot be run: {error.strerror}") from None
    if done.returncode:
        raise LabError(f"`{' '.join(words[:8])}` failed: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def is_mounted(path: Path) -> bool:
    mount_points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()]
    return str(path) in mount_points


def start(name: str, argv: list[str], env: Mapping[str, str] | None = None) -> None:
    """Start a process of the lab in a new session, with its output in RUN/`name`.log.

    The command waits until it is noted: if this process is killed before, it never runs.
    """
    gate = ["sh", "-c", 'read -r go && exec "$@" </dev/null', "sh"]
    with (RUN / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [*gate, *argv], stdin=subprocess.PIPE, stdout=log, stderr=log, env=env, cwd="/", start_new_session=True
        )
    note("process", name, pid=process.pid, started=processes.start_of(process.pid))
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.close()


def pid_of(name: str) -> int | None:
    """Return the id of the process that was last started as `name`, None if it has ended."""
    found = [entry for entry in noted("process") if entry["name"] == name]
    if found and processes.is_alive(found[-1]["pid"], found[-1]["started"]):
        return int(found[-1]["pid"])
    return None


def end(name: str) -> None:
    """End all processes that were started as `name`."""
    for entry in noted("process"):
        if entry["name"] == name:
            _end_process(entry)


def undo_everything() -> None:
    """Remove everything in the journal, the newest first, and then the journal; may be interrupted and repeated.

    Raises LabError with the first failure, after removing everything else; the journal then stays.
    """
    failures = []
    for entry in reversed(noted()):
        try:
            _UNDO[entry["kind"]](entry)
        except (LabError, OSError) as error:
            failures.append(str(error))
    if failures:
        raise LabError(failures[0])
    shutil.rmtree(RUN, ignore_errors=True)


def _end_process(entry: Mapping[str, Any]) -> None:
    if not processes.end(entry["pid"], entry["started"]):
        raise LabError(f"{entry['name']} (process {entry['pid']}) did not end within {processes.END_S:g} s of a kill")


def _remove_interface(entry: Mapping[str, Any]) -> None:
    if Path(f"/sys/class/net/{entry['name']}").exists():
        run_tool("ip", "link", "delete", entry["name"])


def _remove_namespace(entry: Mapping[str, Any]) -> None:
    if Path(f"/run/netns/{entry['name']}").exists():
        run_tool("ip", "netns", "delete", entry["name"])


def _unmount(entry: Mapping[str, Any]) -> None:
    if is_mounted(Path(entry["name"])):
        run_tool("umount", entry["name"])


def _remove_binfmt(entry: Mapping[str, Any]) -> None:
    with contextlib.suppress(FileNotFoundError):
        (BINFMT / entry["name"]).write_text("-1")


def _remove_path(entry: Mapping[str, Any]) -> None:
    path = Path(entry["name"])
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


_UNDO: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "process": _end_process,
    "interface": _remove_interface,
    "namespace": _remove_namespace,
    "mount": _unmount,
    "binfmt": _remove_binfmt,
    "path": _remove_path,
}
