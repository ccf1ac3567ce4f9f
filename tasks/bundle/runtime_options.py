"""Run-time options: what each sets in the runtime, and how a session shows that it had an effect.

runtime_options.csv has a row for everything that a value of an option sets: its `key` and `setting` in a backend
(empty: how the program is loaded), the versions of ExecuTorch that have the key (`until`: the first without it; empty
if there is none), and how the effect is seen:

    reported     the runner states what it passed to the runtime
    read_back    the backend returns the value; 1.5 takes such a key before the load and also at the load
    cache_file   the file that the backend writes; 1.5 takes its path only at the load
    included     nothing to set: 1.5 saves the cache whenever a load added to it
    at_load      the backend takes it at the load, refuses a value that it does not have, and returns nothing: that a
                 session succeeded shows that the value is known, not what executed it

The runtime accepts every key, also one that it does not have. So an option that is not in the table is `unchecked`.
"""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tasks.bundle.cell import XNNPACK
from tasks.bundle.delegates import DELEGATES, case_backends
from tasks.bundle.runner_stats import Stats

UNCHECKED = "unchecked"
_CACHE = "cache_file"
_LOAD, _DEFAULT_LOAD = ("", "load_mode"), "file"
Options = Iterable[tuple[str, str]]
"""Name and value of each option, as in the name of a case."""


@dataclass(frozen=True)
class Setting:
    """A row of the table, or an option that is not in it, with the effect `unchecked`."""

    name: str
    value: str
    backend: str
    key: str
    setting: str
    since: str = ""
    until: str = ""
    effect: str = UNCHECKED

    @property
    def option(self) -> str:
        return f"{self.name}={self.value}"

    def is_in(self, version: str) -> bool:
        """Return whether a version of ExecuTorch has the key."""
        number = _numbers(version)
        return _numbers(self.since) <= number and not (self.until and number >= _numbers(self.until))


with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as _stream:
    SETTINGS = tuple(Setting(**row) for row in csv.DictReader(_stream))


def settings(options: Options) -> list[Setting]:
    """Return everything that the options set; a key that is not in the table is one of XNNPACK."""
    every: list[Setting] = []
    for name, value in options:
        rows = [each for each in SETTINGS if (each.name, each.value) == (name, value)]
        every += rows or ([] if name == UNCHECKED else [Setting(name, value, XNNPACK, name, value)])
    return every


def for_delegate(options: Options, word: str | None) -> tuple[tuple[str, str], ...]:
    """Return the options that concern a case of the delegates `word`: of these, and of how a program is loaded.

    A partitioner of the user's may name any backend, so that every option stays.
    """
    backends = case_backends(word)
    every = tuple(options)
    if backends is None:
        return every
    stays = tuple(each for each in every if all(row.backend in {"", *backends} for row in settings([each])))
    return () if {name for name, _ in stays} == {UNCHECKED} else stays


def delegate_of(name: str) -> str | None:
    """Return the delegate that an option is of; None for one of how a program is loaded."""
    backend = next((row.backend for row in SETTINGS if row.name == name), XNNPACK)
    return next((delegate for delegate, each in DELEGATES.items() if each.backend == backend), None)


def runner_flags(options: Options, further: Iterable[Setting] = ()) -> list[str]:
    """Return the flags of the farm's runner for the options and further settings.

    A cache is a file in the folder of the session.
    """
    of_backends: dict[str, dict[str, str]] = {}
    flags: list[str] = []
    for each in [*settings(options), *further]:
        if not each.backend:
            flags.append(f"--{each.key}={each.setting}")
        elif each.effect != "included":
            of_backends.setdefault(each.backend, {})[each.key] = each.setting
    if of_backends:
        texts = [f"{backend}:{','.join(map('='.join, keys.items()))}" for backend, keys in of_backends.items()]
        flags.append(f"--backend_options={';'.join(texts)}")
    return flags + [f"--cache_file={name}" for name in cache_files(options)]


def cache_files(options: Options) -> list[str]:
    """Return the names of the caches that the options write, in the folder of the session."""
    return [each.setting for each in settings(options) if each.effect == _CACHE]


def without_effect(options: Options, stats: Stats) -> str | None:
    """Return which option had no effect, by what the runner reports; None if each had one or cannot be checked."""
    for each in settings(options):
        if each.effect == "reported" and stats.load_mode != each.setting:
            return f"{each.option} had no effect: the runner loaded the program with {stats.load_mode}"
        if each.effect == "read_back":
            value = returned_value(each, stats)
            if value != each.setting:
                return f"{each.option} had no effect: {each.backend} returned {value} for {each.key}"
        if each.effect == _CACHE and not stats.cache_bytes:
            return f"{each.option} had no effect: {each.backend} wrote no {each.setting} at the first start"
    return None


def returned_value(setting: Setting, stats: Stats) -> str:
    """Return what a backend returned for a key; `none` if nothing."""
    return _text(((stats.backend_options or {}).get(setting.backend) or {}).get(setting.key))


def unstated(options: Options, stats: Stats, further: Iterable[str] = ()) -> str | None:
    """Return what the runner reports to have set although no option does; None if there is nothing.

    `further` are backends whose settings are not options.
    """
    by_key = {(each.backend, each.key): each.setting for each in settings(options)}
    if stats.load_mode not in (None, by_key.get(_LOAD, _DEFAULT_LOAD)):
        return f"load={stats.load_mode}"
    keys = ((backend, key) for backend, values in (stats.backend_options or {}).items() for key in values)
    keys = ((backend, key) for backend, key in keys if backend not in further)
    return next((f"{key} of {backend}" for backend, key in keys if (backend, key) not in by_key), None)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _text(value: bool | int | str | None) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
