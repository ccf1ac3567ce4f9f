"""The page of a certification: Markdown, to attach to a report of a bug."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def page_text(device: str, ended: Sequence[Any], log_folder: str) -> str:
    """Return the page; `ended` are the checks with `check`, `finding` and `took_s`."""
    environment = Environment(
        loader=PackageLoader("tasks.analyse.certify"),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plain"] = _plain
    return environment.get_template("page.md.j2").render(
        device=device,
        ended=ended,
        counts=counts(ended),
        logs=log_folder,
        version=version("etfarm"),
        host=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        moment=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def counts(ended: Sequence[Any]) -> str:
    """Return `7 passed, 0 failed, 1 not tried`."""
    statuses = [each.finding.status for each in ended]
    return ", ".join(f"{statuses.count(status)} {status}" for status in ("passed", "failed", "not tried"))


def _plain(text: str) -> str:
    """Return text of a device as it is in a cell of a table: without markup."""
    for letter in "\\`*_<>[]|":
        text = text.replace(letter, f"\\{letter}")
    return text
