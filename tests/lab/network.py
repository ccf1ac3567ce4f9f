"""A bridge, and a network namespace with an address for each device, reachable only from this machine."""

import ipaddress
from pathlib import Path

from tests.lab.journal import LabError, is_noted, note, run_tool

BRIDGE = "etfarm0"
NETWORK = ipaddress.ip_network("10.77.0.0/24")
_NAMESPACES = Path("/run/netns")


def address_of(number: int) -> str:
    return str(NETWORK[10 + number])


def namespace_of(number: int) -> str:
    """Return the name of the network namespace of device `number`, and of its link's end on the bridge."""
    return f"etfarm-lab-{number}"


def refuse_foreign(numbers: list[int]) -> None:
    """Raise LabError if names or addresses of the lab are in use by something that it did not make."""
    for name in (BRIDGE, *map(namespace_of, numbers)):
        if Path(f"/sys/class/net/{name}").exists() and not is_noted("interface", name):
            raise LabError(f"this lab did not make the network interface {name}: run `ip link delete {name}`")
        if (_NAMESPACES / name).exists() and not is_noted("namespace", name):
            raise LabError(f"this lab did not make the network namespace {name}: run `ip netns delete {name}`")
    if not is_noted("interface", BRIDGE) and run_tool("ip", "route", "show", "to", "root", str(NETWORK)).strip():
        raise LabError(f"the lab needs the addresses {NETWORK}, which are in use: remove their route (`ip route`)")


def make_bridge() -> None:
    if not Path(f"/sys/class/net/{BRIDGE}").exists():
        note("interface", BRIDGE)
        run_tool("ip", "link", "add", BRIDGE, "type", "bridge")
    run_tool("ip", "address", "replace", f"{NETWORK[1]}/{NETWORK.prefixlen}", "dev", BRIDGE)
    run_tool("ip", "link", "set", BRIDGE, "up")


def connect(number: int) -> None:
    """Make the namespace of device `number` and its link to the bridge, unless they exist; restore a cut link.

    There is no default route: programs on a device reach the lab and nothing else.
    """
    name = namespace_of(number)
    if not (_NAMESPACES / name).exists():
        note("namespace", name)
        run_tool("ip", "netns", "add", name)
    if not Path(f"/sys/class/net/{name}").exists():
        note("interface", name)
        run_tool("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
    run_tool("ip", "link", "set", name, "master", BRIDGE)
    for inside in ("lo", "eth0"):
        run_tool("ip", "-n", name, "link", "set", inside, "up")
    run_tool("ip", "-n", name, "address", "replace", f"{address_of(number)}/{NETWORK.prefixlen}", "dev", "eth0")
    set_link(number, up=True)


def set_link(number: int, *, up: bool) -> None:
    """Restore or cut the link of device `number`; a cut link drops every packet without an error."""
    run_tool("ip", "link", "set", namespace_of(number), "up" if up else "down")
