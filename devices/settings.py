"""The farm's settings: variables `ETFARM_*`, then the file etfarm.yaml of the current folder, then defaults.

Options of commands come before all three. The package pydantic-settings reads such sources too, but it takes 0.1 s to
import, which every question would pay, and it reports neither the line of a mistake nor that of a value.
"""

import os
import re
import stat
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from devices.errors import InputError
from devices.untrusted import mask_credentials

PREFIX = "ETFARM_"
FILE = Path("etfarm.yaml")
"""Only that of the current folder: the file of a folder above it may belong to somebody else."""
BUILT_IN_INVENTORY = Path(__file__).with_name("this_machine.yaml")
LOCAL_INVENTORY = Path("deployments/inventories/local.yaml")
"""That of a clone, which its user may have edited; it comes before the built-in one."""


def _checked_url(text: str) -> str:
    if not re.match(r"https?://[^\s/]", text):
        raise ValueError("must be a URL such as https://farm.example.org/reports")
    return text.rstrip("/")


def _default_inventory() -> Path:
    return LOCAL_INVENTORY if LOCAL_INVENTORY.is_file() else BUILT_IN_INVENTORY


def _checked_text(text: str) -> str:
    if not text or re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("must not be empty or contain control characters; without a value, remove the key")
    return text


_Text = Annotated[str, AfterValidator(_checked_text)]
_Url = Annotated[_Text, AfterValidator(_checked_url)]
_Location = Annotated[_Text, AfterValidator(os.path.expanduser)]
"""A path or a URL. A shell replaces `~`, but neither YAML nor a service manager does."""
_Path = Annotated[
    Path,
    BeforeValidator(lambda value: _checked_text(value) if isinstance(value, str) else value),
    AfterValidator(Path.expanduser),
]


class Settings(BaseModel):
    """Each setting is a key of etfarm.yaml and a variable: `data_dir` is `ETFARM_DATA_DIR`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data_dir: _Path = Field(default=Path("var"), description="Folder for all results.", examples=["/srv/etfarm"])
    warehouse: _Path | None = Field(
        default=None,
        description="DuckDB file to use instead of the warehouse in the data folder.",
        examples=["/srv/etfarm/farm.duckdb"],
    )
    bundles: _Location | None = Field(
        default=None,
        description="Folder or URL of all bundles instead of the folder in the data folder.",
        examples=["s3://farm/bundles"],
    )
    inventory: _Path = Field(
        default_factory=_default_inventory,
        description=f"Inventory file: the list of devices. Default: {LOCAL_INVENTORY} of the current folder; without "
        "that file, this machine.",
        examples=["inventory.yaml"],
    )
    site: _Text | None = Field(
        default=None,
        description="Lab that this machine belongs to: it reaches the devices of that lab itself.",
        examples=["berlin"],
    )
    notify: SecretStr = Field(
        default=SecretStr(""),
        description="Services to notify at the end of a sweep: URLs of apprise, which contain credentials, separated "
        "by spaces.",
        examples=["slack://token-a/token-b/token-c"],
    )
    report_url: _Url | None = Field(
        default=None,
        description="Where the folder of reports is served; links in messages start with it.",
        examples=["https://farm.example.org/reports"],
    )
    site_url: _Url | None = Field(
        default=None,
        description="Where `etfarm site` is served; links in messages start with it.",
        examples=["https://farm.example.org/site"],
    )
    log: _Location | None = Field(
        default=None,
        description="File to which the log is appended as JSON; `json` for standard error.",
        examples=["/var/log/etfarm/log.json"],
    )
    metrics: _Path | None = Field(
        default=None,
        description="File of metrics for Prometheus, as node_exporter reads it.",
        examples=["/var/lib/node_exporter/etfarm.prom"],
    )


def settings() -> Settings:
    """Return the settings as they are now; an empty variable counts as not set.

    Raises InputError with one sentence for the first wrong variable, or with the lines of the file.
    """
    variables = _variables()
    return _file().model_copy(update={name: getattr(variables, name) for name in variables.model_fields_set})


def load_settings(file: Path) -> Settings:
    """Return the settings of a file; raises InputError, also if other users may read its secret."""
    from devices.checked_yaml import load_checked  # yaml is slow to import, and most folders have no file

    read = load_checked(file, Settings)
    if "notify" in read.model_fields_set and file.stat().st_mode & 0o077:
        raise InputError(f"{file}: contains the secret `notify`, and other users may read it; run `chmod 600 {file}`")
    return read


def setting_origins() -> dict[str, str]:
    """Return where the value of each setting comes from: `ETFARM_DATA_DIR`, `etfarm.yaml:2` or `default`."""
    from devices.checked_yaml import key_lines  # yaml is slow to import, and most folders have no file

    variables, in_file = _variables().model_fields_set, _file().model_fields_set
    lines = key_lines(FILE) if in_file else {}
    file_origins = {name: f"{FILE}:{lines[name]}" for name in in_file}
    return {
        name: variable_name(name) if name in variables else file_origins.get(name, "default")
        for name in Settings.model_fields
    }


def settings_as_variables() -> dict[str, str]:
    """Return the settings that are set as variables with absolute paths, for processes that start in other folders."""
    present = settings()
    values = {name: getattr(present, name) for name in present.model_fields_set}
    return {variable_name(name): _as_variable(name, value) for name, value in values.items()}


def variable_name(setting: str) -> str:
    return f"{PREFIX}{setting}".upper()


def _as_variable(name: str, value: Path | SecretStr | str) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    is_path = isinstance(value, Path) or (name in ("bundles", "log") and "://" not in value and value != "json")
    return str(Path(value).absolute()) if is_path else str(value)


def _variables() -> Settings:
    variables = {name: os.environ.get(variable_name(name)) for name in Settings.model_fields}
    try:
        return Settings.model_validate({name: value for name, value in variables.items() if value})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        cause = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{variable_name(str(first['loc'][0]))}={mask_credentials(first['input'])}: {cause}") from None


def _file() -> Settings:
    try:
        state = FILE.stat()
    except FileNotFoundError:
        return Settings()
    if not stat.S_ISREG(state.st_mode):  # a pipe would be read without end
        raise InputError(f"{FILE}: is not a regular file; move it away")
    owner = FILE.absolute().parent.stat().st_uid
    return _read_file(Path.cwd(), state.st_mtime_ns, state.st_size, state.st_mode, state.st_uid in (os.getuid(), owner))


@lru_cache(maxsize=1)
def _read_file(_folder: Path, _changed_ns: int, _size_bytes: int, _mode: int, is_trusted: bool) -> Settings:
    """Read the file of the current folder; the parameters are what changes if it does, since a metric asks each time.

    In a folder that everybody can write, such as /tmp, a file of another user must not move what this user writes.
    """
    if not is_trusted:
        raise InputError(f"{FILE}: belongs to another user; run the command in another folder, or copy the file")
    return load_settings(FILE)
