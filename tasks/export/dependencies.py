"""Record the modules and data files that a factory uses when it is imported and called; they are part of its key."""

import importlib.metadata
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_STANDARD_LIBRARY = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
_SYSTEM = [os.path.realpath(root) for root in (*_STANDARD_LIBRARY, "/proc", "/sys", "/dev", "/etc")]
_INSTALLED = {"site-packages", "dist-packages"}
"""Names of folders with installed packages, in any environment: one may use those of another."""

loaded_before_exports: set[str] = set()
"""Modules that the export server had loaded before those that exports need; empty in processes not forked from it."""


class Dependencies:
    """The files (data, and modules outside installed packages) and the installed distributions that were used."""

    def __init__(self) -> None:
        self.files: set[Path] = set()
        self.distributions: set[str] = set()

    def add_file(self, name: Any) -> None:
        """Add an opened file unless it is a device, compiled Python, or part of an installed package or the system."""
        path = Path(os.path.realpath(os.fsdecode(name)))
        if path.is_file() and path.suffix != ".pyc" and not is_installed(path):
            self.files.add(path)

    def add_modules(self, names: set[str]) -> None:
        """Add imported modules: of an installed one its distribution, of any other its file."""
        owners = importlib.metadata.packages_distributions()
        for name in names:
            origin = getattr(sys.modules.get(name), "__file__", None)
            if origin is None:
                continue
            if is_installed(Path(origin).resolve()):
                self.distributions.update(owners.get(name.split(".")[0], ()))
            else:
                self.add_file(origin)


@contextmanager
def recorded_dependencies() -> Iterator[Dependencies]:
    """Yield a record of the files that are opened for reading in the block, by Python or safetensors.

    The modules imported in the block are added at its end. Files that other native code reads are not recorded: a
    change in such a file alone does not cause a new export.
    """
    used, before = Dependencies(), set(loaded_before_exports or sys.modules)
    active = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if active and event == "open" and isinstance(arguments[0], str | bytes):
            flags = arguments[2]
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR) == 0:
                used.add_file(arguments[0])

    sys.addaudithook(hook)  # cannot be removed again: this process ends with the export
    _watch_safetensors(used)
    try:
        yield used
    finally:
        active = False
    used.add_modules(set(sys.modules) - before)


def _watch_safetensors(used: Dependencies) -> None:
    try:
        import safetensors
    except ImportError:
        return
    original = safetensors.safe_open

    def safe_open(filename: Any, *arguments: Any, **named: Any) -> Any:
        used.add_file(os.fspath(filename))
        return original(filename, *arguments, **named)

    # Modules that were imported before have a reference to the function.
    for module in [module for module in sys.modules.values() if vars(module).get("safe_open") is original]:
        vars(module)["safe_open"] = safe_open


def is_installed(path: Path) -> bool:
    """Return whether an absolute path is part of an installed package, of Python or of the system."""
    return bool(_INSTALLED & {*path.parts}) or any(path.is_relative_to(root) for root in _SYSTEM)
