"""Read and check the YAML files that users write; an error message has the file, the line and the correction.

pydantic reports the path of a mistake but not its line, and PyYAML only lines: this module maps one to the other.
"""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from devices.errors import InputError, one_line
from devices.suggest import did_you_mean

Model = TypeVar("Model", bound=BaseModel)
_MOST_BYTES = 256 << 10  # reading YAML takes about 10 s for each MiB
_MOST_VALUES = 50_000


def load_checked(path: Path, model: type[Model]) -> Model:
    """Read the YAML file at `path` into `model`, whose validators find the file's folder in their context (`folder`).

    Raises InputError with the first mistake: `file:line: key: what is wrong; what to write instead`.
    """
    root, data = _parse(path, _read_text(path))
    try:
        return model.model_validate(data, context={"folder": path.parent})
    except ValidationError as error:
        # A misspelt key explains the missing one.
        first = min(error.errors(), key=lambda mistake: mistake["type"] != "extra_forbidden")
        where = _line_of(root, first["loc"])
        raise InputError(f"{path}:{where}: {_key_of(first['loc'])}{one_line(_advice(first, model))}") from None


def _parse(path: Path, text: str) -> tuple[yaml.Node, dict[Any, Any]]:
    """Return the nodes of the file, which have lines, and its keys and values; raises InputError."""
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise InputError(f"{path}:1: the file must consist of keys and values, such as `name: nightly`")
        if duplicate := _duplicate_key(root):
            where, key = duplicate.start_mark.line + 1, one_line(duplicate.value)
            raise InputError(f"{path}:{where}: duplicate key `{key}`; remove one")
        if _expanded(root) > _MOST_VALUES:
            raise InputError(f"{path}:1: its aliases stand for more than {_MOST_VALUES} values; write them out")
        return root, loader.construct_document(root)
    except yaml.YAMLError as error:
        raise InputError(_syntax_error(path, error)) from None
    except RecursionError:
        raise InputError(f"{path}:1: the brackets are nested too deeply") from None
    # PyYAML raises these for text that only looks like a date or a number, such as 2026-13-45.
    except (AttributeError, LookupError, ValueError) as error:
        raise InputError(f"{path}:1: a value does not match its type ({one_line(str(error))}); quote it") from None


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise InputError(f"{path}: larger than {_MOST_BYTES >> 10} KiB; pass a file that is written by hand")
        return content.decode().removeprefix("\ufeff")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from None


def _expanded(root: yaml.Node) -> int:
    """Return how many values the file stands for: an alias counts as often as it is used, one of itself once."""
    sizes: dict[int, int] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        below = _below(node)
        if id(node) not in sizes:
            sizes[id(node)] = 1  # also while the nodes below are counted, so that a circle ends
            waiting.extend(each for each in below if id(each) not in sizes)
            continue
        waiting.pop()
        sizes[id(node)] = min(_MOST_VALUES + 1, 1 + sum(sizes[id(each)] for each in below))
    return sizes[id(root)]


def _below(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _syntax_error(path: Path, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark is not None else 1
    problem = one_line(str(getattr(error, "problem", None) or error))
    return f"{path}:{line}: not valid YAML: {problem}"


def _duplicate_key(root: yaml.Node) -> yaml.ScalarNode | None:
    """Return a key that its mapping contains twice. The YAML parser silently keeps the last one.

    Every node is visited once: aliases may refer to it many times, or from inside itself.
    """
    waiting, known = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        below: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in keys:
                        return key
                    keys.add(key.value)
                below.append(value)
        elif isinstance(node, yaml.SequenceNode):
            below = node.value
        fresh = [each for each in below if id(each) not in known]
        known.update(id(each) for each in fresh)
        waiting.extend(fresh)
    return None


def _line_of(node: yaml.Node, loc: tuple[int | str, ...]) -> int:
    """Follow pydantic's location through the YAML nodes as far as it goes; unknown keys point at the key itself."""
    line = node.start_mark.line + 1
    for step in loc:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(step):
                    node, line = value, key.start_mark.line + 1
                    break
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
    return line


def _key_of(loc: tuple[int | str, ...]) -> str:
    key = one_line(".".join(str(step) for step in loc), 100)
    return f"`{key}`: " if key else ""


def _advice(error: ErrorDetails, model: type[BaseModel]) -> str:
    if error["type"] == "extra_forbidden":
        known = _keys_at(model, error["loc"][:-1])
        return f"unknown key; the keys are {', '.join(known)}{did_you_mean(str(error['loc'][-1]), known)}"
    if error["type"] == "missing":
        return "required key is missing"
    if error["type"] == "model_type":
        return "must consist of keys and values"
    message = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    written = error["input"]
    shown = f", not {written!r}" if isinstance(written, str | int | float | bool) else ""
    return f"{message[:1].lower()}{message[1:]}{shown}"


def _keys_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    current: Any = model
    for step in loc:
        if isinstance(step, int):
            continue
        field = current.model_fields.get(step) if _is_model(current) else None
        if field is None:
            continue
        current = next((kind for kind in _kinds(field.annotation) if _is_model(kind)), current)
    return sorted(current.model_fields)


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _kinds(annotation: Any) -> list[Any]:
    """The annotation itself and every type inside its brackets (`list[Thing]`, `Thing | None`)."""
    inner = [kind for argument in getattr(annotation, "__args__", ()) for kind in _kinds(argument)]
    return [annotation, *inner]
