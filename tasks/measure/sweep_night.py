"""The identity of a sweep: its night, its id (name, night and, with --again, a number), the commit of its file."""

import contextlib
import logging
import os
import re
import subprocess
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from devices.errors import InputError
from devices.untrusted import excerpt
from tasks.bundle.record import Commit, Source, SweepNight
from tasks.bundle.values import night_fault

_ANSWER_S = 10.0
_MAX_NAME_CHARS = 200
_MAX_COMMITS, _MAX_SUBJECT_CHARS = 20, 69  # with "..." 72
_ID_DIGITS = 7  # as verdicts name commits
# Never take the user's lock on the index, and never run a program that the repository names.
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false")
_log = logging.getLogger(__name__)


def parse_night(text: str) -> date:
    """Return the night that is written as `2026-11-01`; raises InputError."""
    with contextlib.suppress(ValueError):
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
            return date.fromisoformat(text)
    raise InputError(f"`{text}` is not a night; write a date such as 2026-11-01")


def parse_nights(text: str, today: date) -> tuple[date, date]:
    """Return the first and the last night of `2026-11-01..2026-11-07`; raises InputError."""
    first, last = (parse_night(each) for each in text.split("..", 1))
    if first > last:
        raise InputError(f"`{text}`: the first night is after the last; swap them")
    return first, night_or_today(last, today)


def night_or_today(night: date | None, today: date) -> date:
    """Return the night of a sweep, by default today; InputError for one in the future, or before ExecuTorch."""
    if night and night > today:
        raise InputError(f"the night {night} is in the future (today is {today}); name today or an earlier night")
    _require_possible(night or today)
    return night or today


def _require_possible(night: date) -> None:
    """Raise InputError if no session can be of a night (`night_fault`), perhaps since this machine's clock is wrong."""
    if fault := night_fault(night):
        raise InputError(f"the night {night} {fault}; name a later night, or set the clock of this machine")


def sweep_night(name: str, night: date, sweep_ids: Iterable[str], *, again: bool) -> SweepNight:
    """Return the newest such sweep of `sweep_ids`, or the next if `again`: `smoke-2026-11-20`, then `....2`."""
    newest = max(_numbers(name, night, sweep_ids), default=0)
    return _build_sweep_night(name, night, newest + 1 if again and newest else max(newest, 1))


def later_sweep(name: str, night: date, source: Source | None) -> SweepNight:
    """Return the sweep that measures later what this night did not: `smoke-2026-11-20.later`."""
    sweep = _build_sweep_night(name, night, 1)
    later = {"sweep_id": f"{sweep.sweep_id}.later", "source": source, "measured_later": True}
    return sweep.model_copy(update=later)


def sweeps_of_night(name: str, night: date, sweep_ids: Iterable[str]) -> list[SweepNight]:
    return [_build_sweep_night(name, night, number) for number in sorted(_numbers(name, night, sweep_ids))]


def _numbers(name: str, night: date, sweep_ids: Iterable[str]) -> list[int]:
    """Return the numbers, from 1, of those of `sweep_ids` that are sweeps of this name and night."""
    first = _build_sweep_night(name, night, 1).sweep_id
    suffixes = [sweep_id.removeprefix(first) for sweep_id in sweep_ids if sweep_id.startswith(first)]
    return [int(suffix[1:] or 1) for suffix in suffixes if re.fullmatch(r"(\.\d+)?", suffix, re.ASCII)]


def _build_sweep_night(name: str, night: date, number: int) -> SweepNight:
    _require_possible(night)
    first = f"{name}-{night.isoformat()}"
    sweep_id = first if number == 1 else f"{first}.{number}"
    return SweepNight(sweep_id=sweep_id, name=name, night=night.isoformat())


def read_source(sweep_file: Path) -> Source | None:
    """Return the commit that a sweep file lies in, and the newest 20 up to it; None without git or a commit."""
    folder = sweep_file.absolute().parent
    fields = ("log", f"-{_MAX_COMMITS}", "--no-show-signature", "-z", "--format=%H%x00%an%x00%s")
    newest = _git_output(folder, *fields)
    if not newest:
        return None
    values = newest.split("\0")
    commit, author = values[:2]
    commits = [
        Commit(id=each[:_ID_DIGITS], author=excerpt(name, _MAX_NAME_CHARS), subject=excerpt(text, _MAX_SUBJECT_CHARS))
        for each, name, text in zip(values[::3], values[1::3], values[2::3], strict=False)
    ]
    changes = _git_output(folder, "status", "--porcelain", "--untracked-files=no")
    branch = _git_output(folder, "symbolic-ref", "--quiet", "--short", "HEAD") or ""
    return Source(
        commit=commit,
        is_dirty=None if changes is None else bool(changes),
        author=excerpt(author, _MAX_NAME_CHARS) or None,
        branch=excerpt(branch, _MAX_NAME_CHARS) or None,
        commits=commits,
    )


def _git_output(folder: Path, *arguments: str) -> str | None:
    """Return the output of git; None if git is not installed, fails or takes too long."""
    # Variables such as GIT_DIR, which git sets for its hooks, name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = [*_GIT, "-C", os.fspath(folder), *arguments]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_ANSWER_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.info("%s: the commit of the sweep file is not recorded: %s", folder, error)
        return None
    return done.stdout if done.returncode == 0 else None
