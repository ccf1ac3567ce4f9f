"""Read and check the YAML files that users write; an error message has the file, the line and the correction.

pydantic reports the path of a mistake but not its line, and PyYAML only lines: this module maps one to the other.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from devices.errors import InputError, Mistakes
from devices.suggest import did_you_mean, nearest
from devices.untrusted import excerpt, mask_credentials

Model = TypeVar("Model", bound=BaseModel)
_MAX_BYTES = 256 << 10  # reading YAML takes about 10 s for each MiB
_MAX_VALUES = 50_000
_MAX_MISTAKES = 20
_NOT_A_NUMBER = {"int_parsing": "must be a whole number", "float_parsing": "must be a number"}


_INT, _FLOAT, _BOOL = (f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "bool"))
# YAML 1.1 reads such a number in base 8.
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_Path = tuple[int | str, ...]


class _Refused(yaml.MarkedYAMLError):
    """YAML that is valid but not accepted; `problem` is the whole message."""


class _Loader(yaml.SafeLoader):
    """Refuses duplicate keys, of which PyYAML keeps the last, and too many values, counting what aliases repeat."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        before = self._values
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if is_alias:  # counts as all values that it repeats, but as one inside the node that it repeats
            self._values += self._sizes.get(id(node), 1)
        else:
            self._values += 1
            self._sizes[id(node)] = self._values - before
        if self._values > _MAX_VALUES:
            raise _Refused(problem=f"its aliases stand for more than {_MAX_VALUES} values; write them out")
        return node

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        mapping = super().compose_mapping_node(anchor)
        keys: set[str] = set()
        for key in (key for key, _ in mapping.value if isinstance(key, yaml.ScalarNode)):
            if key.value in keys:
                raise _Refused(problem=f"duplicate key `{key.value}`; remove one", problem_mark=key.start_mark)
            keys.add(key.value)
        return mapping


def load_checked(path: Path, model: type[Model]) -> Model:
    """Read the YAML file at `path` into `model`, whose validators find the file's folder in their context (`folder`).

    Raises InputError if it cannot be read or is not YAML, otherwise Mistakes: at most 20, each as
    `file:line: key: what is wrong; what to write instead`.
    """
    root, data = _parse(path, _read_text(path))
    try:
        checked = model.model_validate(data, context={"folder": path.parent})
    except ValidationError as error:
        mistakes = [f"{path}:{sentence}" for sentence in _mistakes(error, root, model)]
        more = [f"{path}: {len(mistakes) - _MAX_MISTAKES} more mistakes"] if len(mistakes) > _MAX_MISTAKES else []
        raise Mistakes([*mistakes[:_MAX_MISTAKES], *more]) from None
    if mistakes := _booleans_for_numbers(root, checked):
        raise Mistakes([f"{path}:{sentence}" for sentence in mistakes[:_MAX_MISTAKES]])
    return checked


def read_yaml(path: Path) -> dict[Any, Any]:
    """Return the content of a YAML file, not checked against a model; raises InputError as load_checked does."""
    return _parse(path, _read_text(path))[1]


def key_lines(path: Path) -> dict[str, int]:
    """Return the line of each key of a YAML file, not of keys below it; raises InputError as load_checked does."""
    root, _ = _parse(path, _read_text(path))
    return {str(key.value): key.start_mark.line + 1 for key, _ in root.value}


def key_place(path: Path, *key_path: int | str) -> str:
    """Return the beginning of a sentence about a key of a YAML file, "sweep.yaml:4: `delegates.0`: "."""
    root, _ = _parse(path, _read_text(path))
    _, line, _ = _find_node(root, key_path)
    return f"{path}:{line}: {_key_prefix(key_path)}"


def _mistakes(error: ValidationError, root: yaml.Node, model: type[BaseModel]) -> list[str]:
    """Return a sentence for each location with a mistake, by line; of several errors at a location, the first is kept.

    A missing key is left out if a misspelled one explains it.
    """
    sentences: dict[_Path, tuple[int, str]] = {}
    explained: set[_Path] = set()  # missing keys that are probably misspelled
    for *parent, key in (each["loc"] for each in error.errors() if each["type"] == "extra_forbidden"):
        if near := nearest(str(key), _keys_at(model, tuple(parent))):
            explained.add((*parent, near))
    for each in error.errors():
        key_path = each["loc"]
        node, line, depth = _find_node(root, key_path)
        # Beyond the nodes of the file, pydantic adds the kind that it tried, which is dropped, and keys for which the
        # file has a short text, which stay: `via: host:0` gives (..., "via", "port").
        location = key_path[:depth] + tuple(
            step for step in key_path[depth:] if step in _keys_at(model, key_path[:depth])
        )
        if not (each["type"] == "missing" and key_path in explained):
            sentences.setdefault(
                location, (line, f"{line}: {_key_prefix(location)}{excerpt(_advice(each, model, node), 400)}")
            )
    return [sentence for _, sentence in sorted(sentences.values(), key=lambda each: each[0])]


def _parse(path: Path, text: str) -> tuple[yaml.Node, dict[Any, Any]]:
    """Return the root of the file's nodes, which have lines, and its content; raises InputError."""
    try:
        loader = _Loader(text)
        root = loader.get_single_node() or yaml.compose("{}", _Loader)  # only comments
        if not isinstance(root, yaml.MappingNode):
            raise InputError(f"{path}:1: the file must consist of keys and values, such as `name: nightly`")
        for location, node in _scalars(root):
            _refuse_if_misread(loader, location, node)
        return root, loader.construct_document(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        kind = "" if isinstance(error, _Refused) else "not valid YAML: "
        raise InputError(f"{path}:{line}: {kind}{excerpt(str(getattr(error, 'problem', None) or error))}") from None
    except RecursionError:
        raise InputError(f"{path}:1: the brackets are nested too deeply") from None
    # PyYAML raises these for text that only looks like a date or a number, such as 2026-13-45.
    except (AttributeError, LookupError, ValueError) as error:
        raise InputError(f"{path}:1: a value does not match its type ({excerpt(str(error))}); quote it") from None


def _scalars(root: yaml.Node) -> Iterator[tuple[_Path, yaml.ScalarNode]]:
    """Yield each key and value without quotes, with its path in the file; what aliases repeat comes once."""
    left: list[tuple[_Path, yaml.Node]] = [((), root)]
    seen: set[int] = set()
    while left:
        location, node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                inner = (*location, str(key.value)) if isinstance(key, yaml.ScalarNode) else location
                left += [(inner, value), (inner, key)]
        elif isinstance(node, yaml.SequenceNode):
            left += [((*location, index), each) for index, each in enumerate(node.value)]
        elif isinstance(node, yaml.ScalarNode) and node.style is None:
            yield location, node


def _refuse_if_misread(loader: _Loader, location: _Path, node: yaml.ScalarNode) -> None:
    """Raise _Refused for a number that YAML 1.1 reads in base 60 or 8, such as 1:30 and 010; 07 has the same value."""
    written = str(node.value)
    base = 60 if ":" in written else 8 if _OCTAL.fullmatch(written) else 10
    if node.tag not in (_INT, _FLOAT) or base == 10:
        return
    value = loader.construct_object(node)
    if base == 8 and value == int(written):
        return
    cause = f"YAML reads {excerpt(written, 40)} as {value}, in base {base}"
    remedy = f'write "{excerpt(written, 40)}" in quotes or a number in base 10'
    raise _Refused(problem=f"{_key_prefix(location)}{cause}; {remedy}", problem_mark=node.start_mark)


def _booleans_for_numbers(root: yaml.Node, checked: BaseModel) -> list[str]:
    """Return a sentence for each yes, true, ... that became a number: pydantic takes them for 1 and 0."""
    sentences = []
    for location, node in _scalars(root):
        value: Any = checked
        for step in location if node.tag == _BOOL else ():
            try:
                value = getattr(value, str(step)) if isinstance(value, BaseModel) else value[step]
            except (AttributeError, LookupError, TypeError):  # a text or a list that is short for a model
                value = None
        if node.tag == _BOOL and isinstance(value, int | float) and not isinstance(value, bool):
            line = node.start_mark.line + 1
            sentences.append(f"{line}: {_key_prefix(location)}must be a number, not {node.value}")
    return sentences


def _read_text(path: Path) -> str:
    """Return the text of a file, without a byte order mark; raises InputError, also above 256 KiB."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise InputError(f"{path}: larger than {_MAX_BYTES >> 10} KiB; pass a file that is written by hand")
        return content.decode().removeprefix("\ufeff")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; `etfarm init` writes files to begin with") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from None


def _find_node(node: yaml.Node, key_path: _Path) -> tuple[yaml.Node, int, int]:
    """Return the last YAML node of pydantic's location, its line (that of its key), and the number of steps to it."""
    line, depth = node.start_mark.line + 1, 0
    for number, step in enumerate(key_path, 1):
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(step):
                    node, line, depth = value, key.start_mark.line + 1, number
                    break
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node, depth = node.value[step], number
            line = node.start_mark.line + 1
    return node, line, depth


def _key_prefix(key_path: _Path) -> str:
    """Return the beginning of a sentence about a key, "`sweep.night`: "; empty for the whole file."""
    key = excerpt(".".join(str(step) for step in key_path), 100)
    return f"`{key}`: " if key else ""


def _advice(error: ErrorDetails, model: type[BaseModel], node: yaml.Node) -> str:
    """Return what is wrong at a node and, as far as pydantic's message lacks it, what is written there."""
    if error["type"] == "extra_forbidden":
        keys = _keys_at(model, error["loc"][:-1])
        return "unknown key" + (did_you_mean(str(error["loc"][-1]), keys) or f"; the keys are {', '.join(keys)}")
    if error["type"] == "missing":
        return "required key is missing"
    if error["type"] == "model_type":
        return "must consist of keys and values"
    if error["type"] == "literal_error" and error["ctx"]["expected"] == "True":
        return "must be true, or the key must be removed"
    if error["type"] == "path_type":
        return f"must be one path, written as text, not {excerpt(str(error['input']), 60)}"
    message = _NOT_A_NUMBER.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    written = error["input"]
    is_simple = isinstance(written, str | int | float | bool)
    is_shown = is_simple and not re.search(rf"(?<!\w){re.escape(str(written))}(?!\w)", message)
    message = f"{message[:1].lower()}{message[1:]}"
    if _is_secret(error["loc"], model):
        return f"{message}; write one text in quotes"
    is_number = isinstance(written, int | float) and error["type"] == "string_type"
    if isinstance(node, yaml.ScalarNode) and (is_number or (isinstance(written, bool) and node.tag == _BOOL)):
        return f'{message}, not {node.value}; write "{node.value}" in quotes if it is a text'
    if not is_shown:
        return message
    if isinstance(written, str):
        written = mask_credentials(written)
    return f"{message} (written: {written!r})" if "; " in message else f"{message}, not {written!r}"


def _is_secret(key_path: _Path, model: type[BaseModel]) -> bool:
    field = model.model_fields.get(str(key_path[0])) if key_path else None
    return field is not None and SecretStr in _nested_types(field.annotation)


def _keys_at(model: type[BaseModel], key_path: _Path) -> list[str]:
    """Return the keys at a location, sorted; where several models are possible, those of the first."""
    current = model
    for step in key_path:
        if field := current.model_fields.get(str(step)):
            kinds = (kind for kind in _nested_types(field.annotation) if isinstance(kind, type))
            current = next((kind for kind in kinds if issubclass(kind, BaseModel)), current)
    return sorted(current.model_fields)


def _nested_types(annotation: Any) -> list[Any]:
    """Return the annotation and every type inside its brackets (`list[Thing]`, `Thing | None`)."""
    inner = [kind for argument in getattr(annotation, "__args__", ()) for kind in _nested_types(argument)]
    return [annotation, *inner]
