"""The farm's settings: the environment variables `ETFARM_*`, each of which an option of a command may override."""

import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr, ValidationError

from devices.errors import InputError

PREFIX = "ETFARM_"


def _checked_url(text: str) -> str:
    if not re.match(r"https?://[^\s/]", text):
        raise ValueError("must be a URL such as https://farm.example.org/reports")
    return text.rstrip("/")


class Settings(BaseModel):
    """The variables as they are now; an empty one counts as not set."""

    model_config = ConfigDict(frozen=True)

    # Folder for all results.
    data_dir: Path = Path("var")
    # DuckDB file to use instead of the warehouse in the data folder.
    warehouse: Path | None = None
    # Folder or URL of all bundles, such as s3://bucket/prefix, instead of the folder in the data folder.
    bundles: str | None = None
    # Inventory file: the list of devices.
    inventory: Path = Path("deployments/inventories/local.yaml")
    # Site of the lab that this machine belongs to: it reaches that lab's devices itself.
    site: str | None = None
    # Services to notify at the end of a sweep: URLs of apprise, which contain credentials.
    notify: SecretStr = SecretStr("")
    # Where the folder of reports is served; links in messages begin with it.
    report_url: Annotated[str, AfterValidator(_checked_url)] | None = None
    # Where `etfarm site` is served; links in messages begin with it.
    site_url: Annotated[str, AfterValidator(_checked_url)] | None = None
    # File to which the log is appended as JSON; `json` for standard error.
    log: str | None = None
    # File of metrics for Prometheus, as node_exporter reads it.
    metrics: Path | None = None


def settings() -> Settings:
    """Read the environment; raises InputError with one sentence for the first wrong value."""
    # The package pydantic-settings does this, and imports asyncio and ssl, which takes 0.1 s.
    variables = {name: os.environ.get(f"{PREFIX}{name}".upper()) for name in Settings.model_fields}
    try:
        return Settings.model_validate({name: value for name, value in variables.items() if value})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = f"{PREFIX}{first['loc'][0]}".upper()
        cause = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{name}={first['input']}: {cause}") from None
