"""deployments/compose.yaml: complete, without a secret, with pinned images and the settings that the farm needs."""

import re
from typing import Any

import yaml

from tests.fixtures.paths import ROOT

TEXT = (ROOT / "deployments/compose.yaml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
EXAMPLE = (ROOT / "deployments/compose.env.example").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def test_every_variable_is_required_and_in_the_example_and_secrets_are_variables() -> None:
    used = set(re.findall(r"\$\{(\w+)[^}]*\}", TEXT))
    assert "$" not in re.sub(r"\$\{\w+(:\?[^}]+)?\}", "", TEXT)
    # a required name that is missing ends `docker compose` with a sentence
    assert used == set(re.findall(r"\$\{(\w+):\?[^}]+\}", TEXT))
    assert set(re.findall(r"^(\w+)=", EXAMPLE, re.MULTILINE)) == used
    # and secrets are among them, and empty in the example
    secrets = {
        name: value
        for service in [COMPOSE["x-prefect"], *SERVICES.values()]
        for name, value in service.get("environment", {}).items()
        if re.search("PASSWORD|AUTH|SECRET|TOKEN", name)
    }
    assert len(secrets) == 3
    assert all(re.fullmatch(r"\$\{\w+:\?[^}]+\}", value) for value in secrets.values()), secrets
    assert {"ETFARM_AUTH", "ETFARM_DATABASE_PASSWORD"} <= set(re.findall(r"^(\w+)=$", EXAMPLE, re.MULTILINE))


def test_every_image_has_a_complete_version_and_prefect_that_of_the_farm() -> None:
    recipe = SERVICES["server"]["build"]["dockerfile_inline"]
    images = [service["image"] for service in SERVICES.values()] + re.findall(r"FROM (\S+)", recipe)
    assert [image for image in images if not re.search(r":\d+\.\d+", image)] == []
    (pinned,) = re.findall(r"^prefect==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert COMPOSE["x-prefect"]["image"].endswith(f":{pinned}")
    assert f"prefect=={pinned} " in recipe


def test_only_the_proxy_can_be_reached_from_outside() -> None:
    assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == {
        "proxy": ["443:443"]
    }
    assert "network_mode" not in TEXT
