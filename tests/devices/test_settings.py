"""The settings: options aside, a variable comes before etfarm.yaml, which comes before the default; secrets stay so."""

import os
import re
from pathlib import Path

import pytest

from devices.errors import InputError
from devices.inventory import load_inventory
from devices.settings import FILE, LOCAL_INVENTORY, Settings, setting_origins, settings, settings_as_variables


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty, and no variables."""
    for name in [name for name in os.environ if name.startswith("ETFARM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_variable_comes_before_the_file_and_the_file_before_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    # given three settings in the file, one of them and another one as variables, and an empty variable
    FILE.write_text("site: berlin\n\nbundles: s3://file/x\nlog: json\n", encoding="utf-8")
    monkeypatch.setenv("ETFARM_BUNDLES", "s3://variable/x")
    monkeypatch.setenv("ETFARM_METRICS", "farm.prom")
    monkeypatch.setenv("ETFARM_LOG", "")
    # when they are read, then each has the value and the origin of the first place that sets it
    present, origins = settings(), setting_origins()
    assert (present.bundles, origins["bundles"]) == ("s3://variable/x", "ETFARM_BUNDLES")
    assert (present.site, origins["site"], present.log, origins["log"]) == (
        "berlin",
        "etfarm.yaml:1",
        "json",
        "etfarm.yaml:4",
    )
    assert (present.data_dir, origins["data_dir"]) == (Path("var"), "default")
    # and a process in another folder gets the same
    variables = {"ETFARM_SITE": "berlin", "ETFARM_LOG": "json", "ETFARM_METRICS": str(Path("farm.prom").absolute())}
    assert settings_as_variables() == variables | {"ETFARM_BUNDLES": "s3://variable/x"}


def test_a_file_that_changes_is_read_again_and_none_above_the_current_folder_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FILE.write_text("site: berlin\n", encoding="utf-8")
    assert settings().site == "berlin"
    FILE.write_text("site: oslo-2\n", encoding="utf-8")
    assert settings().site == "oslo-2"
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert settings().site is None


def test_without_an_inventory_the_only_device_is_this_machine_also_in_a_clone(folder: Path) -> None:
    (device,) = load_inventory(settings().inventory).devices
    assert (device.name, device.transport) == ("this-machine", "local")
    LOCAL_INVENTORY.parent.mkdir(parents=True)
    LOCAL_INVENTORY.touch()
    assert settings().inventory == LOCAL_INVENTORY


def test_a_file_of_comments_sets_nothing_and_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    FILE.write_text("# data_dir: var\n", encoding="utf-8")
    assert (settings(), setting_origins()["data_dir"]) == (Settings(), "default")
    FILE.write_text("data_dir: ~/farm\nlog: ~/farm.log\n", encoding="utf-8")
    monkeypatch.setenv("ETFARM_BUNDLES", "~/bundles")
    present = settings()
    assert (present.data_dir, present.log) == (Path.home() / "farm", str(Path.home() / "farm.log"))
    assert present.bundles == str(Path.home() / "bundles")


@pytest.mark.parametrize("line", ['data_dir: ""', 'warehouse: "a\\0b"', 'log: "\\e[31m"', 'site: ""'])
def test_an_empty_text_or_a_control_character_is_refused_with_its_line(line: str) -> None:
    FILE.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"^etfarm.yaml:1: `[a-z_]*`: must not be empty or contain control characters"):
        settings()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("farm.example.org", "farm.example.org"),
        ("https://", "https://"),
        ("ftp://me:pass/word@farm.org/x", "***@farm.org/x"),
        ("me:pass@word@farm.org", "***@farm.org"),
    ],
)
def test_a_wrong_url_is_refused_with_its_name_and_without_its_password(
    monkeypatch: pytest.MonkeyPatch, text: str, shown: str
) -> None:
    FILE.write_text(f"report_url: {text}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"^etfarm.yaml:1: `report_url`: must be a URL") as refused:
        settings()
    assert "pass" not in str(refused.value)
    FILE.unlink()
    monkeypatch.setenv("ETFARM_REPORT_URL", text)
    with pytest.raises(InputError, match=f"^ETFARM_REPORT_URL={re.escape(shown)}: must be a URL"):
        settings()


def test_a_pipe_in_place_of_the_file_is_refused_and_not_read() -> None:
    os.mkfifo(FILE)
    with pytest.raises(InputError, match=r"^etfarm.yaml: is not a regular file; move it away$"):
        settings()


def test_a_misspelled_key_is_refused_with_its_line_and_the_right_one() -> None:
    FILE.write_text("site: berlin\ndata_dr: /srv\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"^etfarm.yaml:2: `data_dr`: unknown key; did you mean `data_dir`\?$"):
        settings()


def test_a_secret_stands_only_in_a_file_that_others_cannot_read_and_in_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    FILE.write_text("notify: slack://secret-token\n", encoding="utf-8")
    FILE.chmod(0o640)
    with pytest.raises(
        InputError, match=r"^etfarm.yaml: contains the secret `notify`, .*; run `chmod 600 etfarm.yaml`$"
    ):
        settings()
    FILE.chmod(0o600)
    FILE.write_text("notify: 1234567\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"^etfarm.yaml:1: `notify`: input should be .*; write one text in quotes$"):
        settings()
    FILE.write_text("notify: slack://secret-token\n", encoding="utf-8")
    assert settings().notify.get_secret_value() == "slack://secret-token"
    assert "secret-token" not in f"{settings()!r} {settings()}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_is_refused_in_a_folder_that_is_not_theirs(folder: Path) -> None:
    FILE.write_text("data_dir: /home/victim\n", encoding="utf-8")
    os.chown(FILE, 12345, -1)
    with pytest.raises(InputError, match=r"^etfarm.yaml: belongs to another user; "):
        settings()
    os.chown(folder, 12345, -1)  # such as a checkout, with the inventory and the models in it
    assert settings().data_dir == Path("/home/victim")


def test_each_setting_has_a_description_and_an_example() -> None:
    lacking = [name for name, field in Settings.model_fields.items() if not field.description or not field.examples]
    assert lacking == []
