"""Devices behind links that can be cut: a real sshd in one lab and a real adbd in the other, as far as installed."""

import contextlib
from typing import Any

from tests.lab import loopback
from tests.lab.journal import LabError
from tests.lab.link_proxy import LinkProxy
from tests.lab.packages import PackageError, Packages, default_cache


def linked_devices(stack: contextlib.ExitStack) -> tuple[list[dict[str, Any]], dict[str, LinkProxy]]:
    """Start the daemons; return entries of an inventory, and the link to each by its name. What is missing is told."""
    entries, links = [], {}
    for make in (_host, _phone):
        try:
            entry, link = make(stack)
        except (LabError, PackageError) as error:
            print(f"left out: {error}", flush=True)
            continue
        entries.append(entry | {"emulated": True})  # its times mean nothing on a machine that does so much else
        links[entry["name"]] = link
    return entries, links


def _host(stack: contextlib.ExitStack) -> tuple[dict[str, Any], LinkProxy]:
    server = stack.enter_context(loopback.sshd())
    link = stack.enter_context(LinkProxy("127.0.0.1", server.port))
    known_hosts = server.known_hosts.with_name("known_hosts_of_link")
    key = server.known_hosts.read_text(encoding="utf-8").split(" ", 1)[1]
    known_hosts.write_text(f"[127.0.0.1]:{link.port} {key}", encoding="utf-8")
    address = {"address": "127.0.0.1", "port": link.port, "user": server.user}
    files = {"identity_file": str(server.identity_file), "known_hosts": str(known_hosts)}
    return {"name": "host", "transport": "ssh", "site": "north", **address, **files}, link


def _phone(stack: contextlib.ExitStack) -> tuple[dict[str, Any], LinkProxy]:
    packages = Packages(default_cache())
    phone = stack.enter_context(loopback.adbd(packages))
    link = stack.enter_context(LinkProxy("127.0.0.1", phone.port))
    port = stack.enter_context(loopback.adb_server())
    address = {"address": f"127.0.0.1:{link.port}", "adb_server_port": port}
    return {"name": "phone", "transport": "adb", "site": "south", **address}, link
