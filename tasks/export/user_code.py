"""Find and load the function of a user that an entry names, and report errors with the user's file and line.

A file is loaded by its path, so it may have the name of a module of Python, the farm or an installed package. Modules
in its folder are imported after Python's and before installed packages.
"""

import ast
import importlib
import importlib.util
import linecache
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from devices.errors import FarmError
from tasks.export.process.dependencies import is_installed
from tasks.export.process.refusals import find_refusal

_FARM = [Path(__file__).parents[2] / layer for layer in ("flows", "tasks", "devices", "sql")]
_LOCATION = re.compile(r'File "([^"]+)", line (\d+)')
_Function = ast.FunctionDef | ast.AsyncFunctionDef
# Two threads that clear Python's import caches at once remove the same entry, and one of them fails (KeyError).
_finding_lock = threading.Lock()


def find_source(reference: str) -> Path:
    """Return the file of `package.module:function` or `file.py:function` without importing it; raises FarmError."""
    module, _, function = reference.rpartition(":")
    if module.endswith(".py"):
        if not Path(module).is_file():
            raise FarmError(f"{module}: no such file")
        return Path(module)
    if not all(part.isidentifier() for part in (*module.split("."), function)):
        raise FarmError("your own model or recipe must have the form package.module:function or file.py:function")
    with _finding_lock:
        spec = _find_spec(module)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise FarmError(f"module {module} not found in {Path.cwd()} or the installed packages")
    return Path(spec.origin)


def _find_spec(module: str) -> ModuleSpec | None:
    """Return the spec of a module, first from the working directory, without importing its parent packages."""
    importlib.invalidate_caches()  # the module may have been written just now
    name, *rest = module.split(".")
    spec = PathFinder.find_spec(name, [os.fspath(Path.cwd())])
    if spec is None:
        spec = sys.modules[name].__spec__ if name in sys.modules else importlib.util.find_spec(name)
    for part in rest:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec


def check_function(path: Path, name: str, arguments: tuple[str, ...] = ()) -> None:
    """Raise ValueError if a file is not valid Python or does not define a function that takes `arguments`.

    The file is parsed, not imported: importing torch takes seconds. A function with decorators, any other kind of
    object, and what a file gets by `from x import *` or `__getattr__` are accepted.
    """
    file = display_path(path)
    try:
        parsed = ast.parse(path.read_bytes())
    except ValueError as error:  # of null bytes, before Python 3.11.4
        raise ValueError(f"{file}: {error}") from None
    except SyntaxError as error:
        where = f", line {error.lineno}" if error.lineno else ""
        code = f": `{error.text.strip()}`" if error.text else ""
        raise ValueError(f"{file}{where}: {error.msg}{code}") from None
    statements = list(_nodes_run_at_import(parsed))
    functions = {each.name: each for each in statements if isinstance(each, _Function)}
    if function := functions.get(name):
        signature, count = function.args, len(arguments)
        positional = len(signature.posonlyargs) + len(signature.args)
        is_callable = (
            positional - len(signature.defaults) <= count
            and (count <= positional or signature.vararg is not None)
            and None not in signature.kw_defaults  # no keyword is required
        )
        if not function.decorator_list and not is_callable:
            needed = f"takes ({', '.join(arguments)})" if arguments else "takes no arguments"
            text = linecache.getline(str(path), function.lineno).strip()
            raise ValueError(f"{file}, line {function.lineno}: `{text}`: a function that etfarm calls {needed}")
        return
    if {name, "*", "__getattr__"} & {*functions, *_other_names(statements)}:
        return
    if not statements:
        raise ValueError(f"{file}: the file is empty; define a function {name} in it")
    listed = ", ".join(each for each in functions if not each.startswith("_"))
    raise ValueError(f"{file}: no function named {name}; {f'it has {listed}' if listed else 'it defines none'}")


def list_functions(path: Path) -> list[str]:
    """Return the functions of a file that a model can name; empty for a file that is not valid Python."""
    try:
        statements = _nodes_run_at_import(ast.parse(path.read_bytes()))
    except (ValueError, SyntaxError):
        return []
    return [each.name for each in statements if isinstance(each, _Function) and not each.name.startswith("_")]


def _nodes_run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when a file is imported: all but the bodies of functions and classes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _Function | ast.ClassDef | ast.Lambda):
            yield from _nodes_run_at_import(child)


def _other_names(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names that are bound otherwise than by a function."""
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def load_function(reference: str) -> Any:
    """Import and return the function of `package.module:function` or `file.py:function`; raises FarmError."""
    name, _, function_name = reference.rpartition(":")
    source = find_source(reference).absolute()
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
    """Load a file once; its name gets `file_` in front while that is another module's name."""

    def is_taken(name: str) -> bool:
        if name in sys.stdlib_module_names:
            return True
        if name in sys.modules:
            return getattr(sys.modules[name], "__file__", None) != os.fspath(path)
        spec = importlib.util.find_spec(name)
        return spec is not None and spec.origin != os.fspath(path)

    name = path.stem.replace(".", "_")
    while is_taken(name):
        name = f"file_{name}"
    if name in sys.modules:
        return sys.modules[name]
    sys.meta_path.insert(0, _BesideFinder(path.parent, path.stem))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _import_module(name: str, source: Path, folder: Path) -> ModuleType:
    """Import a module by its name from `folder` or the installed packages; raises FarmError if that is not `source`."""
    sys.meta_path.insert(0, _BesideFinder(folder, None))
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


class _BesideFinder:
    """Finds modules in a folder before installed packages; also appends the folder to sys.path."""

    def __init__(self, folder: Path, file_stem: str | None) -> None:
        self.folder, self.file_stem = [os.fspath(folder)], file_stem
        if self.folder[0] not in sys.path:
            sys.path.append(self.folder[0])

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Return a module beside the file, but not the file: it is loaded already, and a package may have its name."""
        if path is not None or name in sys.stdlib_module_names or name == self.file_stem:
            return None
        spec = PathFinder.find_spec(name, self.folder)
        return spec if spec and spec.loader else None  # a folder without __init__.py comes last, as in Python


def explain_error(error: BaseException, sentence: str) -> str:
    """Return the cause of an error after the user's line that it comes from, and what to do if that is known.

    `sentence` is the cause of an error that is not in the table of refusals.
    """
    location = next(_user_locations(_error_locations(error)), None)
    hidden = _hidden_module_remedy(error, Path(location[0]).parent) if location else ""
    explained = f"{sentence}{hidden}" if hidden else find_refusal(error, sentence) or sentence
    return f"{_describe_location(*location)}: {explained}" if location else explained


def user_line(locations: Iterable[tuple[str, int]]) -> str | None:
    """Return the first (file, line) that is the user's code, as `model.py, line 3: CODE`; None if none is."""
    location = next(_user_locations(locations), None)
    return _describe_location(*location) if location else None


def _describe_location(file: str, line: int) -> str:
    return f"{display_path(Path(file))}, line {line}: `{linecache.getline(file, line).strip()}`"


def locations_in(text: str) -> list[tuple[str, int]]:
    """Return file and line of each frame in the text of a stack, innermost first."""
    return [(file, int(line)) for file, line in reversed(_LOCATION.findall(text))]


def _error_locations(error: BaseException) -> list[tuple[str, int]]:
    """Return file and line of the frames of an error, innermost first, then of those in its text and notes."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    texts = "\n".join([*getattr(error, "__notes__", ()), str(error)])
    return [*((frame.filename, frame.lineno or 0) for frame in frames), *locations_in(texts)]


def _user_locations(locations: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Yield the locations that are the user's code: not of installed packages and not of the farm."""
    for file, line in locations:
        path = Path(file)
        is_farms = any(path.is_relative_to(layer) for layer in _FARM)
        if line and path.is_file() and not is_farms and not is_installed(path.resolve()):
            yield file, line


def _hidden_module_remedy(error: BaseException, folder: Path) -> str:
    """Return a remedy if the error is about a module of Python that hides one beside the user's file; otherwise ""."""
    module = getattr(error, "obj", None)  # of an AttributeError
    full_name = error.name if isinstance(error, ImportError) else getattr(module, "__name__", None)
    name = str(full_name).partition(".")[0]
    is_module = isinstance(error, ImportError) or isinstance(module, ModuleType)
    if not is_module or name not in sys.stdlib_module_names:
        return ""
    beside = next((each for each in (folder / f"{name}.py", folder / name) if each.exists()), None)
    return f"; `{name}` is Python's own module: rename {beside.name} beside this file" if beside else ""


def display_path(path: Path) -> str:
    """Return a path for messages: relative to the working directory, elsewhere only the file's name."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name
