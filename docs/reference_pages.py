"""The pages docs/reference/*.md, made from the code: commands, keys of files, and the values of keys.

They are committed, so that they can be read where the code is; `make docs` writes them, and
tests/test_reference.py refuses old ones. Meanings and examples stand beside the code, never here.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from devices.inventory import TRANSPORT_KEYS, DeviceSpec, Inventory
from devices.settings import Settings, variable_name
from devices.ssh.config import SshAddress
from devices.start_limits import Limits
from flows.cli.main import PANELS, app
from sql.question import questions
from tasks.bundle.cell import MODE_MEANINGS, VARIANT_MEANINGS
from tasks.bundle.failure_kinds import FAILURE_KINDS
from tasks.export.entry import AccuracyRequirement, ModelEntry
from tasks.export.generate_options import CacheOptions, GenerateOptions
from tasks.export.recipes import FORMS
from tasks.measure.run_options import RunOptions
from tasks.measure.sweep_file import SweepSpec
from tasks.runner.executorch_versions import ExecutorchVersions

FOLDER = Path(__file__).with_name("reference")
KEYS: dict[type[BaseModel], tuple[str, str]] = {
    SweepSpec: ("A sweep file", "[Sweeps](../sweeps.md) describes their use."),
    ModelEntry: (
        "An entry of models",
        "A text, or these keys. A text is a model of the zoo, a factory `package.module:function` or "
        "`./file.py:function`, a program `./file.pte`, or `transformers:Class`. With keys, "
        "`{name: wide, factory: mobilenet_v2}` is the same model under another name. See [models](../models.md).",
    ),
    AccuracyRequirement: ("Accuracy of a model", "See [required accuracy](../models.md#required-accuracy)."),
    GenerateOptions: ("Generate of a model", "See [language models](../llm.md)."),
    CacheOptions: ("Cache of generate", "See [language models](../llm.md)."),
    ExecutorchVersions: (
        "An entry of executorch",
        "`own` is the version of the farm. `1.5.0` is short for both keys. See "
        "[versions and options](../sweeps.md#versions-and-options).",
    ),
    RunOptions: (
        "An entry of options",
        "`{}` is as the runtime does it by default. [Run-time options](../sweeps.md#run-time-options) describes how a "
        "session checks each.",
    ),
    Limits: ("Limits", "Of a sweep or a device. See [limits](../devices.md#limits-when-a-session-starts)."),
    Inventory: ("An inventory", "See [devices](../devices.md)."),
    DeviceSpec: ("An entry of devices", "The first word of a meaning names the transports that have the key."),
    SshAddress: ("An SSH host", "The key `via`. The text `[user@]host[:port]` is short for three of the keys."),
    Settings: (
        "Settings",
        "An option of a command comes first, then the variable, then the key in `etfarm.yaml` of the current folder, "
        "then the default. `etfarm doctor` prints each value with its origin.",
    ),
}
"""Each kind of keys, with the title and the first sentences of its section."""
VARIABLES = {
    "ANDROID_ADB_SERVER_PORT": "port of the adb server of this machine, where the inventory has none",
    "CI_PROJECT_URL": "in a job of GitLab: the repository that commits link to",
    "GITHUB_REPOSITORY": "in a job of GitHub: the repository that commits link to",
    "GITHUB_SERVER_URL": "its server, if that is not `https://github.com`",
    "NO_COLOR": "any text: no colours in the terminal",
    "PREFECT_API_URL": "URL of the Prefect server; without it, a sweep runs one of its own",
    "TERM": "`dumb`: no colours in the terminal",
}
"""Variables that the product reads and that are not its settings; tests/test_reference.py refuses a missing one."""
_NOTE = "Generated from the code by `make docs`; do not edit.\n"


def reference_pages() -> dict[str, str]:
    """Return each page by the name of its file."""
    return {"commands.md": _commands(), "files.md": _files(), "values.md": _values()}


def _page(title: str, introduction: str, lines: Sequence[str]) -> str:
    return "\n".join([f"# {title}\n", _NOTE, f"{introduction}\n", *lines])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return ["", *(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *cells]), ""]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def commands() -> Iterator[tuple[str, Any]]:
    """Yield each command and group of commands, by its words, in the order of `etfarm --help`."""
    group: Any = typer.main.get_command(app)
    for names in PANELS.values():
        for name in names:
            yield from _below(name, group.commands[name])


def _below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _below(f"{words} {name}", inner)


def _commands() -> str:
    lines = []
    for words, command in commands():
        text = re.sub(r"\n\s*Example: .*", "", command.help or "").strip()
        if command.no_args_is_help:
            lines += [f"## etfarm {words}\n", text, f"\nCommands: {_commands_below(words, command)}.\n"]
            continue
        example = (command.epilog or "").removeprefix("Example: ").replace(", or: ", "\n")
        lines += [f"## etfarm {words}\n", text, f"\n```sh\n{example}\n```"]
        lines += _table(("argument or option", "default", "variable", "meaning"), _parameters(words, command))
    common = "Every command has `--help`. [Settings](files.md#settings) lists variables and their keys in etfarm.yaml."
    return _page("Commands", common, lines)


def _commands_below(words: str, group: Any) -> str:
    return ", ".join(f"[{name}](#etfarm-{words}-{name})".replace(" ", "-") for name in group.commands)


def _parameters(words: str, command: Any) -> list[tuple[str, str, str, str]]:
    context = command.make_context(words, [], resilient_parsing=True)
    rows = []
    for parameter in command.params:
        if parameter.name == "help" or parameter.hidden:
            continue
        head, described = parameter.get_help_record(context)
        meaning, _, extra = described.partition("  [")
        parts = extra.removesuffix("]").split("; ") if extra else []
        states = dict(part.split(": ", 1) for part in parts if ": " in part)
        others = [part for part in parts if ": " not in part and part != "required"]
        default = "required" if "required" in parts else _code(states.get("default", "").strip("()"))
        meaning = f"{meaning} {_code(others[0])}" if others else meaning
        rows.append((_code(head), default, _code(states.get("env var", "")), meaning))
    return rows


def _files() -> str:
    lines = []
    for model, (title, introduction) in KEYS.items():
        lines += [f"## {title}\n", introduction]
        properties = _properties(model.model_json_schema())
        keys = sorted(model.model_fields.items(), key=lambda key: not key[1].is_required())
        rows = [_key_row(model, name, field, properties[name]) for name, field in keys]
        lines += _table(("key", "type", "default", "meaning", "example"), rows)
    rows = [(_code(name), meaning) for name, meaning in VARIABLES.items()]
    lines += [
        "## Other variables\n",
        "Variables of the environment that are not etfarm's.",
        *_table(("variable", "meaning"), rows),
    ]
    return _page("Keys of files", "`etfarm validate FILE` lists every mistake of such a file.", lines)


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of each key; a model that has a text as a short form is one of several."""
    inner = schema
    if "anyOf" in schema:
        inner = next(each for each in schema["anyOf"] if each.get("type") != "string")
    if "$ref" in inner:
        inner = schema["$defs"][inner["$ref"].rpartition("/")[2]]
    return _properties({**inner, "$defs": schema.get("$defs")}) if "anyOf" in inner else inner["properties"]


def _key_row(model: type[BaseModel], name: str, field: FieldInfo, schema: dict[str, Any]) -> tuple[str, ...]:
    owners = [transport for transport, keys in TRANSPORT_KEYS.items() if name in keys] if model is DeviceSpec else []
    meaning = f"{', '.join(owners)}: {field.description}" if owners else str(field.description)
    if model is Settings:
        meaning = f"{meaning} Variable: `{variable_name(name)}`."
    example = _code(example_of(name, field)) if field.examples else ""
    return f"`{name}`", _type(schema), _default(field), meaning, example


def example_of(name: str, field: FieldInfo) -> str:
    """Return a key with its example, as a line of a YAML file."""
    written = yaml.safe_dump(
        {name: (field.examples or [None])[0]}, default_flow_style=True, sort_keys=False, width=1000, allow_unicode=True
    )
    return written.strip()[1:-1]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    factory = field.default_factory
    if factory is not None and factory not in (dict, list, Limits):
        return "see there"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, list) and all(isinstance(each, BaseModel) for each in value) and value:
        return _code(f"[{', '.join('own' if isinstance(each, ExecutorchVersions) else '{}' for each in value)}]")
    if isinstance(value, BaseModel):
        return "`{}`"
    return "none" if value is None or str(value) in ("", "**********") else _code(_yaml(value))


def _yaml(value: Any) -> str:
    """Return a value as a file has it: true, not True."""
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    plain = json.dumps(value if isinstance(value, int | float | str | bool | list | dict) else str(value))
    return plain.replace('"', "")


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a key in words, from its JSON schema."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        title = next(title for model, (title, _) in KEYS.items() if model.__name__ == name)
        return f"[{title.lower()}](#{title.lower().replace(' ', '-')})"
    if "anyOf" in schema:
        kinds = [_type(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum") or [schema["const"]]
        return ", ".join(_code(_yaml(value)) for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"mapping to {_type(inner)}" if isinstance(inner, dict) else "mapping"
    words = {"string": "text", "integer": "integer", "number": "number", "boolean": "`true`, `false`"}
    kind = "path" if schema.get("format") == "path" else words[schema["type"]]
    return kind + _bounds(schema)


def _bounds(schema: dict[str, Any]) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" {low:g} to {high:g}"
    words = {"at least": low, "above": above, "at most": high, "below": below}
    stated = [f"{word} {limit:.15g}" for word, limit in words.items() if limit is not None]
    return f" {', '.join(stated)}" if stated else ""


def _values() -> str:
    lines = ["## Precisions\n", "Recipes, the entries of `precisions`: see [models](../models.md#precisions)."]
    lines += _table(("recipe", "conversion"), [(_code(form), meaning) for form, meaning in FORMS.items()])
    lines += ["## Variants\n", "A device measures the variants that it has: see [SME2](../sme.md)."]
    lines += _table(("variant", "meaning"), [(_code(name), text) for name, text in VARIANT_MEANINGS.items()])
    lines += ["## Modes\n", "Only `timing` counts as latency: see [SME2](../sme.md#evidence)."]
    lines += _table(("mode", "records"), [(_code(name), text) for name, text in MODE_MEANINGS.items()])
    lines += ["## Named questions\n", "`etfarm sql NAME` answers one; each option restricts it."]
    named = [
        (_code(each.name), each.summary, " ".join(_code(f"--{name.replace('_', '-')}") for name in each.parameters))
        for each in questions().values()
    ]
    lines += _table(("question", "meaning", "options"), named)
    lines += ["## Views\n", "The [dictionary](../../sql/DICTIONARY.md) has each view with its columns.\n"]
    lines += [
        "## Kinds of failure\n",
        "[Failures](../failures.md) describes where they stand. `About` is what to look at first.",
    ]
    kinds = [(_code(each.kind), each.subject, each.meaning, each.remedy) for each in FAILURE_KINDS.values()]
    lines += _table(("kind", "about", "meaning", "what to do"), kinds)
    return _page("Values", "What the keys of files can have, what can be asked, and how sessions fail.", lines)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in reference_pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
