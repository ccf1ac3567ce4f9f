"""The automations of a Prefect server: runs whose process died become Crashed; an offline worker is reported."""

from pathlib import Path
from typing import Any

import yaml
from prefect.blocks.notifications import SlackWebhook
from prefect.client.orchestration import get_client
from prefect.events.schemas.automations import AutomationCore
from pydantic import SecretStr, ValidationError

from devices.errors import InputError
from flows.server.connection import require_server
from tasks.bundle.values import first_mistake
from tasks.pages.notify import silence_loggers, split_urls


def deploy_automations(file: Path, notify: str) -> list[str]:
    """Create the automations of a file at the server, or update those of the same name; return a line for each.

    The server notifies the services in `notify`, URLs of apprise, and stores these encrypted. Without any, automations
    that only notify are left out. Raises InputError, and ServerGoneError if the server cannot be used.
    """
    entries = _read_entries(file)
    require_server()
    blocks = _save_services(notify)
    lines = []
    with get_client(sync_client=True) as client:
        for entry in entries:
            actions = _with_blocks(entry["actions"], blocks)
            if not actions:
                lines.append(f"{entry['name']}: left out; set ETFARM_NOTIFY to be notified")
                continue
            try:
                automation = AutomationCore.model_validate({**entry, "actions": actions})
            except ValidationError as error:
                raise InputError(f"{file}: {entry['name']}: {first_mistake(error)}") from None
            if existing := client.read_automations_by_name(automation.name):
                client.update_automation(existing[0].id, automation)
            else:
                client.create_automation(automation)
            lines.append(f"{entry['name']}: {'updated' if existing else 'created'}")
    return lines


def _read_entries(file: Path) -> list[dict[str, Any]]:
    """Return the automations of a YAML file as mappings, which the server checks further; raises InputError."""
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise InputError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(entries, list) or not all(
        isinstance(each, dict) and {"name", "actions"} <= each.keys() for each in entries
    ):
        raise InputError(f"{file}: must be a list of automations, each with `name`, `trigger` and `actions`")
    return entries


def _with_blocks(actions: list[dict[str, Any]], blocks: list[str]) -> list[dict[str, Any]]:
    """Return the actions, with one notification per block in the place of each notification."""
    result = []
    for action in actions:
        is_notification = action["type"] == "send-notification"
        result += [{**action, "block_document_id": block} for block in blocks] if is_notification else [action]
    return result


def _save_services(notify: str) -> list[str]:
    """Store each service at the server, its URL not logged; return the blocks' ids. InputError for a bad URL."""
    from apprise import Apprise

    silence_loggers()
    blocks = []
    for number, url in enumerate(split_urls(notify), start=1):
        if Apprise.instantiate(url) is None:
            raise InputError(f"entry {number} of ETFARM_NOTIFY: apprise does not accept its URL; correct it")
        # Prefect has no block of apprise itself; this one passes any URL on to apprise, not only one of Slack.
        block = SlackWebhook(url=SecretStr(url), notify_type="warning")
        blocks.append(str(block.save(f"etfarm-notify-{number}", overwrite=True)))
    return blocks
