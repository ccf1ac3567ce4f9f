"""The settings of the environment: read each time, checked in one sentence, and never printed if they are secret."""

from pathlib import Path

import pytest

from devices.errors import InputError
from devices.settings import settings


def test_a_setting_is_read_as_it_is_now_and_an_empty_one_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ETFARM_BUNDLES", raising=False)
    assert settings().bundles is None
    monkeypatch.setenv("ETFARM_BUNDLES", "s3://bucket/prefix")
    assert settings().bundles == "s3://bucket/prefix"
    monkeypatch.setenv("ETFARM_BUNDLES", "")
    monkeypatch.setenv("ETFARM_INVENTORY", "farm.yaml")
    assert (settings().bundles, settings().inventory) == (None, Path("farm.yaml"))


@pytest.mark.parametrize("text", ["farm.example.org", "https://"])
def test_a_wrong_value_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("ETFARM_REPORT_URL", text)
    with pytest.raises(InputError, match=f"^ETFARM_REPORT_URL={text}: must be a URL"):
        settings()


def test_no_text_of_the_settings_has_the_credentials_of_a_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETFARM_NOTIFY", "slack://secret-token")
    assert settings().notify.get_secret_value() == "slack://secret-token"
    assert "secret-token" not in f"{settings()!r} {settings()}"
