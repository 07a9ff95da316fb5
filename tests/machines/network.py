"""A network of hosts: a namespace each, joined by a bridge in a namespace of its own."""

import ctypes
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

CLONE_NEWNET = 0x40000000


class Network:
    """Namespaces whose names begin with this process's id; nothing of the machine's own network changes."""

    def __init__(self) -> None:
        self.prefix = f"sameface{os.getpid()}"
        self.hosts: dict[str, str] = {}  # by name: the address
        try:
            self._namespace("switch")
            self._ip("switch", "link", "add", "bridge", "type", "bridge")
            self._ip("switch", "link", "set", "bridge", "up")
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", "") or str(error)
            self.remove()
            pytest.skip(f"no network namespaces can be made here: {said.strip()}")

    def add(self, name: str) -> str:
        """A new host of this name; returns its address."""
        address = f"10.83.0.{len(self.hosts) + 1}"
        self.hosts[name] = address
        self._namespace(name)
        peer = ["peer", "name", f"to-{name}", "netns", self.prefix + "switch"]
        self._ip(name, "link", "add", "eth0", "type", "veth", *peer)
        self._ip("switch", "link", "set", f"to-{name}", "master", "bridge", "up")
        self._ip(name, "addr", "add", f"{address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            self._ip(name, "link", "set", device, "up")
        return address

    def cut(self, name: str) -> None:
        """Cut a host off from all others."""
        self._ip("switch", "link", "set", f"to-{name}", "down")

    def join(self, name: str) -> None:
        """Bring a host back that was cut off."""
        self._ip("switch", "link", "set", f"to-{name}", "up")

    def inside(self, name: str, *command: str) -> list[str]:
        """The command that runs `command` on a host."""
        return ["ip", "netns", "exec", self.prefix + name, *command]

    def thread(self, name: str, work: Callable[[], object]) -> threading.Thread:
        """A thread whose sockets are on a host: a namespace belongs to a thread, and others stay."""

        def enter() -> None:
            with Path(f"/run/netns/{self.prefix}{name}").open("rb") as namespace:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(namespace.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            work()

        return threading.Thread(target=enter)

    def remove(self) -> None:
        """Delete all namespaces, and with them their devices."""
        for name in [*self.hosts, "switch"]:
            subprocess.run(["ip", "netns", "del", self.prefix + name], check=False, capture_output=True)

    def _namespace(self, name: str) -> None:
        run("ip", "netns", "add", self.prefix + name)

    def _ip(self, name: str, *words: str) -> None:
        run("ip", "-n", self.prefix + name, *words)


def run(*command: str) -> None:
    """Run a command; its error says what it printed."""
    subprocess.run(command, check=True, capture_output=True, text=True)
