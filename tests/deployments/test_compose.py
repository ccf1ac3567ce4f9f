"""deployments/compose.yaml: complete, without a secret, with pinned images and the settings that the farm needs."""

import re
from typing import Any

import yaml

from tests.fixtures.paths import ROOT

TEXT = (ROOT / "deployments/compose.yaml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
EXAMPLE = (ROOT / "deployments/compose.env.example").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SETTINGS: dict[str, str] = COMPOSE["x-prefect"]["environment"]


def test_every_variable_of_the_compose_file_is_required_and_in_the_example() -> None:
    used = set(re.findall(r"\$\{(\w+)[^}]*\}", TEXT))
    assert "$" not in re.sub(r"\$\{\w+(:\?[^}]+)?\}", "", TEXT)
    # a required name that is missing ends `docker compose` with a sentence
    assert used == set(re.findall(r"\$\{(\w+):\?[^}]+\}", TEXT))
    assert set(re.findall(r"^(\w+)=", EXAMPLE, re.MULTILINE)) == used


def test_secrets_are_variables_and_empty_in_the_example() -> None:
    secrets = {
        name: value
        for service in [COMPOSE["x-prefect"], *SERVICES.values()]
        for name, value in service.get("environment", {}).items()
        if re.search("PASSWORD|AUTH|SECRET|TOKEN", name)
    }
    assert len(secrets) == 3
    assert all(re.fullmatch(r"\$\{\w+:\?[^}]+\}", value) for value in secrets.values()), secrets
    assert re.search(r"^ETFARM_AUTH=$", EXAMPLE, re.MULTILINE)
    assert re.search(r"^ETFARM_DATABASE_PASSWORD=$", EXAMPLE, re.MULTILINE)


def test_every_image_has_a_complete_version() -> None:
    images = [service["image"] for service in SERVICES.values()]
    images += re.findall(r"FROM (\S+)", SERVICES["server"]["build"]["dockerfile_inline"])
    assert [image for image in images if not re.search(r":\d+\.\d+", image)] == []


def test_prefect_has_the_version_of_the_farm() -> None:
    (pinned,) = re.findall(r"^prefect==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert COMPOSE["x-prefect"]["image"].endswith(f":{pinned}")
    assert f"prefect=={pinned} " in SERVICES["server"]["build"]["dockerfile_inline"]


def test_only_the_proxy_can_be_reached_from_outside() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    assert SERVICES["proxy"]["ports"] == ["443:443"]
    assert "network_mode" not in TEXT


def test_leases_messages_and_old_runs_are_looked_after() -> None:
    assert SETTINGS["PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"] == "prefect_redis.lease_storage"
    assert SETTINGS["PREFECT_SERVER_EVENTS_MESSAGING_BROKER"] == "prefect_redis.messaging"
    assert SETTINGS["PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED"] == "events,flow_runs"
