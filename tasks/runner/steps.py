"""What every build with CMake needs: a folder that make can handle, and steps whose output is in a log."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tasks.runner.manifest import RunnerError
from tasks.store.files import scratch_folder

_NOT_FOR_MAKE = frozenset('"#;')
# Settings of the user's shell that would change what is built.
_SHELL_SETTINGS = re.compile(
    r"CC|CXX|CFLAGS|CPPFLAGS|CXXFLAGS|LDFLAGS|CPATH|CPLUS_INCLUDE_PATH|LIBRARY_PATH|CMAKE_.*|MAKE.*"
)
_ERROR = re.compile(r"error|\*\*\*", re.IGNORECASE)


@contextlib.contextmanager
def plain_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder whose path CMake and make can handle: `folder` itself, or a temporary one."""
    if _NOT_FOR_MAKE.isdisjoint(str(folder)):
        yield folder
        return
    with scratch_folder() as elsewhere:
        yield elsewhere


def run_step(command: Sequence[str], platform: str, log: Path, env: dict[str, str], limit_s: float) -> None:
    """Run a command of the build for `platform`; what it prints is appended to `log` at once.

    The command gets `env`, and not the settings for compilers of the user's shell. Raises RunnerError in one sentence
    with the first error that it prints and the log's path.
    """
    inherited = {name: value for name, value in os.environ.items() if not _SHELL_SETTINGS.fullmatch(name)}
    with log.open("ab+") as output:
        start = output.seek(0, os.SEEK_END)
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=inherited | env,
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RunnerError(f"building the runner for {platform} took over {limit_s:.0f} s; see {log}") from None
        output.seek(start)
        if done.returncode != 0:
            cause = _first_error(output.read().decode(errors="replace").splitlines())
            raise RunnerError(f"the runner for {platform} does not build: {cause}; the full output is in {log}")


def _first_error(lines: Sequence[str]) -> str:
    """Return the first line with an error; CMake ends it with a colon and writes the cause below it."""
    printed = [line.strip() for line in lines if line.strip()]
    for line, below in zip(printed, [*printed[1:], ""], strict=True):
        if _ERROR.search(line):
            return f"{line} {below}" if line.endswith(":") else line
    return printed[-1] if printed else "it printed nothing"
