"""The inventory: what the user may write, and what becomes of it."""

import getpass
import tempfile
from pathlib import Path

import pytest

from devices.errors import DeviceRefused, InputError
from devices.inventory import DeviceSpec, launch_prefix, load_inventory, open_device
from devices.ssh.config import SshAddress
from tests.fixtures.paths import INVENTORIES, LAB_INVENTORY

FULL = """
devices:
  - {name: this-machine, transport: local}
  - {name: mac-mini.4, transport: ssh, address: mini4, port: 2222, user: farm, identity_file: ~/.ssh/farm,
     proxy_jump: gate, site: lab-a, labels: {kind: mac, soc: m4}, launcher: [nice, -n, "-5"]}
  - {name: pixel, transport: adb, serial: 3A211JEHN00001, adb_server_port: 15037, cpu_affinity: [4, 5, 6],
     limits: {max_temperature_c: 38.5, min_battery_percent: 40}}
  - {name: pixel-bench, transport: adb, serial: 8A1X0EXMPL, via: lab@bench-7.example:2222}
  - {name: pixel-rack, transport: adb, serial: 9B2Y0EXMPL,
     via: {address: bench-8, user: lab, identity_file: ~/.ssh/farm, proxy_jump: gate}}
  - {name: pixel-wifi, transport: adb, address: 10.0.0.7, platform: linux-aarch64, emulated: true}
"""


def test_an_inventory_that_is_not_there_is_named_with_the_way_to_name_another(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml: no such inventory; pass another with --inventory"):
        load_inventory(tmp_path / "nowhere.yaml")


def complaint(tmp_path: Path, text: str) -> str:
    file = tmp_path / "inventory.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load_inventory(file)
    return str(caught.value).removeprefix(str(file))


def test_a_full_inventory_is_read_as_written(tmp_path: Path) -> None:
    (tmp_path / "inventory.yaml").write_text(FULL)
    local, mac, pixel, bench, rack, wifi = load_inventory(tmp_path / "inventory.yaml").devices
    assert (local.name, local.transport, local.emulated) == ("this-machine", "local", False)
    assert (mac.address, mac.port, mac.user, mac.proxy_jump) == ("mini4", 2222, "farm", "gate")
    assert (mac.site, mac.labels["soc"], mac.launcher) == ("lab-a", "m4", ["nice", "-n", "-5"])
    assert (pixel.serial, pixel.limits.max_temperature_c, pixel.limits.max_load_1m) == ("3A211JEHN00001", 38.5, None)
    assert bench.via == SshAddress(address="bench-7.example", port=2222, user="lab")
    assert rack.via == SshAddress(address="bench-8", user="lab", identity_file=Path("~/.ssh/farm"), proxy_jump="gate")
    assert (wifi.platform, wifi.emulated) == ("linux-aarch64", True)


@pytest.mark.parametrize("file", [*sorted(INVENTORIES.glob("*.yaml")), LAB_INVENTORY], ids=lambda file: file.name)
def test_the_inventories_that_come_with_the_farm_are_right(file: Path) -> None:
    assert load_inventory(file).devices


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("name: a b, transport: local", ".name`: a device's name consists of letters, digits, dots,"),
        ("name: a, transport: usb", ".transport`: input should be 'local', 'ssh', 'adb' or 'simulated',"),
        ("name: a, transport: ssh", "`: the ssh device `a` needs an `address`: a host name or an"),
        ("name: a, transport: adb", "`: the adb device `a` needs either a `serial` or an `address`"),
        ("name: a, transport: adb, serial: x, address: y", "`: the adb device `a` needs either a"),
        ("name: a, transport: local, serial: x", "`: `serial` is for adb devices, but `a` is local"),
        ("name: a, transport: local, address: x", "`: `address` is for ssh and adb devices, but `a` is"),
        ("name: a, transport: local, count: 3", "`: `count` is for simulated devices, but `a` is local; remove"),
        ("name: a, transport: simulated", "`: names of simulated devices begin with `simulated`, such as"),
        ("name: simulated-a, transport: local", "`: names of simulated devices begin with `simulated`,"),
        ("name: simulated, transport: simulated, emulated: false", "`: `emulated` cannot be set for the"),
        ("name: simulated, transport: simulated, platform: linux-x86_64", "`: `platform` cannot be set for"),
        ("name: a, transport: ssh, address: x, via: y", "`: `via` is for adb devices, but `a` is ssh; remove"),
        ("name: a, transport: adb, serial: x, via: lab@", ".via.address`: string should have at least 1"),
        ("name: a, transport: adb, serial: x, via: lab@y:0", ".via.port`: input should be greater than"),
        ("name: a, transport: adb, serial: x, via: {adress: y}", ".via.adress`: unknown key; did you mean `address`?"),
        ("name: a, transport: local, root: tmp", ".root`: the root must be an absolute folder below /,"),
        ("name: a, transport: local, root: /", ".root`: the root must be an absolute folder below /,"),
        ("name: a, transport: local, cpu_affinity: [-1]", ".cpu_affinity.0`: input should be greater"),
        ("name: a, transport: local, limits: {heat: 3}", ".limits.heat`: unknown key; the keys are"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(tmp_path: Path, entry: str, expected: str) -> None:
    assert complaint(tmp_path, f"devices:\n  - {{{entry}}}\n").startswith(f":2: `devices.0{expected}")


def test_one_entry_of_many_simulated_devices_gives_each_a_name_and_a_machine_apart(tmp_path: Path) -> None:
    entry = f"{{name: simulated, transport: simulated, count: 1000, root: {tmp_path}}}"
    (tmp_path / "inventory.yaml").write_text(f"devices: [{entry}]\n")
    specs = load_inventory(tmp_path / "inventory.yaml").devices
    assert [spec.name for spec in specs[:2]] == ["simulated-001", "simulated-002"]
    assert len({open_device(spec).machine_folder for spec in specs}) == 1000
    assert all(spec.emulated for spec in specs)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ("", "list should have at least 1 item"),
        ("{name: a, transport: local}, {name: a, transport: local}", "2 devices are named `a`;"),
        (
            "{name: simulated, transport: simulated, count: 2}, {name: simulated-002, transport: simulated}",
            "2 devices are named `simulated-002`;",
        ),
    ],
)
def test_an_inventory_without_devices_or_with_two_of_one_name_is_refused(
    tmp_path: Path, devices: str, expected: str
) -> None:
    assert complaint(tmp_path, f"devices: [{devices}]\n").startswith(f":1: `devices`: {expected}")


@pytest.mark.usefixtures("ssh_client")
def test_devices_have_a_root_of_their_own_where_the_entry_names_none(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host mini4\n  User farm\n")
    specs = [
        DeviceSpec(name="a", transport="local"),
        DeviceSpec(name="b", transport="ssh", address="mini4", ssh_config=tmp_path / "config"),
        DeviceSpec(name="c", transport="adb", serial="X"),
        DeviceSpec(name="d", transport="adb", serial="X", root="/data/local/tmp/mine"),
    ]
    assert [open_device(spec).root for spec in specs] == [
        f"{tempfile.gettempdir()}/etfarm-{getpass.getuser()}",
        "/var/tmp/etfarm-farm",
        "/data/local/tmp/etfarm",
        "/data/local/tmp/mine",
    ]


@pytest.mark.usefixtures("ssh_client")
def test_an_ssh_config_that_cannot_be_followed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host mini4\n  ProxyCommand nc %h %p\n")
    spec = DeviceSpec(name="mac", transport="ssh", address="mini4", ssh_config=tmp_path / "config")
    with pytest.raises(DeviceRefused, match="mac: ssh_config reaches mini4 by ProxyCommand; use ProxyJump instead"):
        open_device(spec)
    with pytest.raises(DeviceRefused, match=r"mac: cannot read ssh_config \(.*missing.*\); correct that file"):
        open_device(spec.model_copy(update={"ssh_config": tmp_path / "missing"}))


def test_a_runner_is_bound_to_cores_before_it_is_launched_but_not_on_macos() -> None:
    spec = DeviceSpec(name="mac", transport="local", cpu_affinity=[0, 4, 5], launcher=["nice", "-n", "5"])
    assert launch_prefix(spec, "linux") == ["taskset", "31", "nice", "-n", "5"]
    assert launch_prefix(DeviceSpec(name="a", transport="local", launcher=["nice"]), "macos") == ["nice"]
    with pytest.raises(DeviceRefused, match="mac: macOS cannot bind programs to cores; remove `cpu_affinity`"):
        launch_prefix(spec, "macos")


def test_devices_of_a_lab_are_reached_by_the_machine_that_is_this_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "inventory.yaml"
    file.write_text("labs: [lab-a]" + FULL)
    phones = ["pixel", "pixel-bench", "pixel-rack", "pixel-wifi"]
    assert [device.name for device in load_inventory(file).reached] == ["this-machine", *phones]
    monkeypatch.setenv("ETFARM_SITE", "lab-a")
    assert [device.name for device in load_inventory(file).reached] == ["this-machine", "mac-mini.4", *phones]


@pytest.mark.parametrize(
    ("labs", "cause"),
    [("[lab-b]", "lab `lab-b` has no devices; set `site"), ("[a/b]", "a lab's name consists of letters, digits,")],
)
def test_a_lab_needs_a_plain_name_and_devices(tmp_path: Path, labs: str, cause: str) -> None:
    assert cause in complaint(tmp_path, f"labs: {labs}{FULL}")
