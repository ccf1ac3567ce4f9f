"""Load the function of a user that an entry names: `file.py:function` or `package.module:function`.

A file is loaded by its path, so that it may be named like a module of Python, of the farm or of an installed package.
Modules in its folder are found after Python's own and before installed packages.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from devices.errors import FarmError
from tasks.export.key import source_of


def load_function(own: str) -> Any:
    """Return the function that `package.module:function` or `file.py:function` names; raises FarmError."""
    name, _, function_name = own.rpartition(":")
    source = source_of(own).absolute()
    folder = source.parent if name.endswith(".py") else Path.cwd()
    if name.endswith(".py") or source == folder / f"{name}.py":
        module = _load_file(source)
    else:
        module = _import_module(name, source, folder)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise FarmError(f"{module.__file__} does not define a function named {function_name}")
    return function


def _load_file(path: Path) -> ModuleType:
    """Load a file, once; it gets its own name unless that is another module's."""
    name = path.stem.replace(".", "_")
    while _is_taken(name, path):
        name = f"file_{name}"
    if name in sys.modules:
        return sys.modules[name]
    _find_beside(path.parent, path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _is_taken(name: str, path: Path) -> bool:
    """Return whether a name means another module than the file."""
    if name in sys.stdlib_module_names:
        return True
    if name in sys.modules:
        return getattr(sys.modules[name], "__file__", None) != os.fspath(path)
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin != os.fspath(path)


def _import_module(name: str, source: Path, folder: Path) -> ModuleType:
    """Import a module of a package; raises FarmError if another package of that name is in the way."""
    _find_beside(folder, None)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        module = None
    if module is None or not (module.__file__ and source.samefile(module.__file__)):
        first = name.partition(".")[0]
        raise FarmError(f"the name {first} belongs to Python or to etfarm; name the file instead: {source}:...")
    return module


class _Beside:
    """Finds modules in a folder, before installed packages are searched."""

    def __init__(self, folder: Path, file_stem: str | None) -> None:
        self.folder, self.file_stem = [os.fspath(folder)], file_stem

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Return what is beside the file, but not the file: it is loaded, and a package may have its name."""
        if path is not None or name in sys.stdlib_module_names or name == self.file_stem:
            return None
        spec = PathFinder.find_spec(name, self.folder)
        return spec if spec and spec.loader else None  # a folder without __init__.py comes last, as in Python


def _find_beside(folder: Path, file_stem: str | None) -> None:
    sys.meta_path.insert(0, _Beside(folder, file_stem))
    if os.fspath(folder) not in sys.path:
        sys.path.append(os.fspath(folder))
