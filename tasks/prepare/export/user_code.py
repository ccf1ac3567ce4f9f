"""Mistakes in the code of a user: which file and line, found without running it or from a traceback."""

import ast
import linecache
import re
import sysconfig
import traceback
from pathlib import Path

_OF_DATA = re.compile(r"GuardOnDataDependentSymNode|data-dependent|Could not guard|Dynamic control flow")
_INSTALLED = tuple({str(Path(path)) for path in sysconfig.get_paths().values()})
_FARM = str(Path(__file__).parents[3])


def check_function(path: Path, name: str) -> None:
    """Raise ValueError if a file is not Python or does not define a function: before torch is imported for seconds.

    What a file gets by `from x import *` or by `__getattr__` cannot be known; it is then believed to have the function.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}: `{(error.text or '').strip()}`") from None
    except ValueError as error:  # such as a null byte
        raise ValueError(f"{path}: is not a Python file: {error}") from None
    names = set[str]()
    for node in ast.walk(ast.Module(_top_level(tree), [])):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {each.asname or each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    if name in names or "*" in names or "__getattr__" in names:
        return
    functions = [each.name for each in tree.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]
    has = f"it has {', '.join(functions)}" if functions else "it defines no function"
    raise ValueError(f"{path}: no function named {name}; {has}")


def _top_level(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements that run when the file is imported; the bodies of functions and classes do not count."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            node.body = []
    return tree.body


def in_users_words(error: BaseException, first_line: str) -> str:
    """Return the sentence about an error of an export, with the line of the user's own code that it came from.

    `first_line` is the error's own sentence. Code of installed packages and of the farm is not the user's.
    """
    place = _place(error)
    if place is None:
        return first_line
    file, line, text = place
    where = f"{Path(file).name}, line {line}: `{text}`"
    if _OF_DATA.search(f"{type(error).__name__} {error}"):
        return f"{where} depends on data, which an export cannot follow; use torch.where or torch.cond"
    return f"{where}: {first_line}"


def _place(error: BaseException) -> tuple[str, int, str] | None:
    """Return file, line and text of the innermost frame of the user's own code; None if there is none."""
    own = [
        (frame.filename, frame.lineno, linecache.getline(frame.filename, frame.lineno).strip())
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.lineno and not frame.filename.startswith(("<", *_INSTALLED, f"{_FARM}/tasks", f"{_FARM}/flows"))
    ]
    if own:
        return own[-1]
    # torch.export names the line in its message where the frame is its own.
    named = re.findall(r'File "([^"]+)", line (\d+)', str(error))
    for file, line in reversed(named):
        if not file.startswith(("<", *_INSTALLED, _FARM)):
            return file, int(line), linecache.getline(file, int(line)).strip()
    return None
