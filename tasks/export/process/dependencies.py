"""Record the modules and data files that a factory uses when it is imported and called; they are part of its key."""

import importlib.metadata
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_STANDARD_LIBRARY = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
_SYSTEM = [os.path.realpath(root) for root in (*_STANDARD_LIBRARY, "/proc", "/sys", "/dev", "/etc")]
_INSTALLED = {"site-packages", "dist-packages"}
"""Names of folders with installed packages, in any environment: one may use those of another."""

loaded_before_exports: set[str] = set()
"""Modules that the export server had loaded before those that exports need; empty in processes not forked from it."""


@dataclass
class Dependencies:
    """What a model used: data files and modules outside installed packages, and installed distributions."""

    files: set[Path] = field(default_factory=set)
    distributions: set[str] = field(default_factory=set)

    def add_file(self, name: Any) -> None:
        """Add an opened file unless it is a device, compiled Python, or part of an installed package or the system."""
        path = Path(os.path.realpath(os.fsdecode(name)))
        if path.is_file() and path.suffix != ".pyc" and not is_installed(path):
            self.files.add(path)


@contextmanager
def recorded_dependencies() -> Iterator[Dependencies]:
    """Yield a record of the files that are opened for reading in the block, by Python or safetensors.

    The modules imported in the block are added at its end: of an installed one its distribution, of any other its file.
    Files that other native code reads are not recorded: a change in such a file alone does not cause a new export.
    """
    used, before = Dependencies(), set(loaded_before_exports or sys.modules)
    active = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if active and event == "open" and isinstance(arguments[0], str | bytes):
            flags = arguments[2]
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR) == 0:
                used.add_file(arguments[0])

    sys.addaudithook(hook)  # cannot be removed again: this process ends with the export
    with suppress(ImportError):
        import safetensors

        original = safetensors.safe_open

        def safe_open(filename: Any, *arguments: Any, **named: Any) -> Any:
            used.add_file(os.fspath(filename))
            return original(filename, *arguments, **named)

        # Modules that were imported before have a reference to the function.
        for module in [module for module in sys.modules.values() if vars(module).get("safe_open") is original]:
            vars(module)["safe_open"] = safe_open
    try:
        yield used
    finally:
        active = False
    owners = importlib.metadata.packages_distributions()
    for name in set(sys.modules) - before:
        origin = getattr(sys.modules.get(name), "__file__", None)
        if origin is not None and is_installed(Path(origin).resolve()):
            used.distributions.update(owners.get(name.split(".")[0], ()))
        elif origin is not None:
            used.add_file(origin)


def is_installed(path: Path) -> bool:
    """Return whether an absolute path is part of an installed package, of Python or of the system."""
    return bool(_INSTALLED & {*path.parts}) or any(path.is_relative_to(root) for root in _SYSTEM)
