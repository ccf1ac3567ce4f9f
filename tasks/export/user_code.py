"""Mistakes in a user's own code, told with file and line: found before it runs, or from the error of an export."""

import ast
import linecache
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from tasks.export.used import belongs_to_the_system

_FARM = [Path(__file__).parents[2] / room for room in ("flows", "tasks", "devices", "sql")]
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')
_NO_OPERATOR = re.compile(
    r"Missing out variants: \{'([^']+)'|Operator: <EdgeOpOverload: ([\w.]+)>|"
    r"Operator torch\._ops\.([\w.]+) is not in Core ATen"
)
# What torch writes -> what to do.
_OF_DATA = {
    r"Could not extract specialized|_local_scalar_dense": "keep the value in a tensor, or pass it as an input",
    r"GuardOnDataDependentSymNode|data-dependent|Dynamic control flow": "use torch.where or torch.cond",
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def check_function(path: Path, name: str, arguments: tuple[str, ...] = ()) -> None:
    """Raise ValueError if a file does not define a function that takes `arguments`: seconds before torch is imported.

    What a file gets by `from x import *` or by `__getattr__` cannot be known; it is then believed to have the function.
    """
    statements = list(_at_import(_parsed(path)))
    functions = {each.name: each for each in statements if isinstance(each, _Function)}
    if function := functions.get(name):
        if not function.decorator_list and not _takes(function.args, len(arguments)):
            wanted = f"takes ({', '.join(arguments)})" if arguments else "takes no arguments"
            text = linecache.getline(str(path), function.lineno).strip()
            raise ValueError(f"{shown(path)}, line {function.lineno}: `{text}`: a function that etfarm calls {wanted}")
        return
    if {name, "*", "__getattr__"} & {*functions, *_names(statements)}:
        return
    listed = ", ".join(each for each in functions if not each.startswith("_"))
    raise ValueError(f"{shown(path)}: no function named {name}; {f'it has {listed}' if listed else 'it defines none'}")


def in_users_words(error: BaseException, sentence: str) -> str:
    """Return the sentence about an error of an export after the line of the user's own code that it came from."""
    text = f"{type(error).__name__}: {error}"
    if operator := _NO_OPERATOR.search(text):
        name = next(filter(None, operator.groups()))
        sentence = f"ExecuTorch does not support {name}, or not with these types ({sentence.rstrip(':')})"
    place = next(_own_places(error), None)
    if place is None:
        return sentence
    file, line = place
    where = f"{shown(Path(file))}, line {line}: `{linecache.getline(file, line).strip()}`"
    for known, way_on in _OF_DATA.items():
        if re.search(known, text):
            return f"{where} depends on data, which an export cannot follow; {way_on}"
    return f"{where}: {sentence}{_hidden(error, Path(file).parent)}"


def _hidden(error: BaseException, folder: Path) -> str:
    """Return what to do if an error is about a module of Python, and one of the same name is beside the user's file."""
    module = getattr(error, "obj", None)  # of an AttributeError
    full_name = error.name if isinstance(error, ImportError) else getattr(module, "__name__", None)
    name = str(full_name).partition(".")[0]
    is_module = isinstance(error, ImportError) or isinstance(module, ModuleType)
    if not is_module or name not in sys.stdlib_module_names:
        return ""
    beside = next((each for each in (folder / f"{name}.py", folder / name) if each.exists()), None)
    return f"; `{name}` is Python's own module: rename {beside.name} beside this file" if beside else ""


def shown(path: Path) -> str:
    """Return a file as a user names it: below the working directory relative to it, elsewhere without its folders."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except SyntaxError as error:
        where = f", line {error.lineno}" if error.lineno else ""
        code = f": `{error.text.strip()}`" if error.text else ""
        raise ValueError(f"{shown(path)}{where}: {error.msg}{code}") from None


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs when a file is imported: everything but the bodies of functions and classes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, _Function | ast.ClassDef | ast.Lambda):
            yield from _at_import(child)


def _names(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names that are bound otherwise than by a function."""
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _takes(arguments: ast.arguments, count: int) -> bool:
    most = len(arguments.posonlyargs) + len(arguments.args)
    has_required_keyword = None in arguments.kw_defaults
    is_enough = count <= most or arguments.vararg is not None
    return most - len(arguments.defaults) <= count and is_enough and not has_required_keyword


def _own_places(error: BaseException) -> Iterator[tuple[str, int]]:
    """Yield file and line of the user's own code, the innermost first: from the traceback, then as torch names them.

    Code of installed packages and of the farm is not the user's.
    """
    frames = reversed(traceback.extract_tb(error.__traceback__))
    found = [(frame.filename, frame.lineno or 0) for frame in frames]
    found += [(file, int(line)) for file, line in reversed(_PLACE.findall(str(error)))]
    for file, line in found:
        path = Path(file)
        is_farms = any(path.is_relative_to(room) for room in _FARM)
        if line and path.is_file() and not is_farms and not belongs_to_the_system(path.resolve()):
            yield file, line
