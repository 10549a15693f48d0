"""Network namespaces, each with one link to the host that lets through a limited number of bytes a second."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hyperslab.errors import RunError

# The name of a namespace has the process that made it: what is left of a process that is gone can be removed.
PREFIX = "hyperslab-"
NAME = re.compile(rf"^{PREFIX}(\d+)-(\d+)\b")
# A burst is what passes without waiting: a request must be far larger. The limit is what may wait.
BURST_NBYTES, LIMIT_NBYTES = 1 << 13, 1 << 22
COMMAND_SECONDS = 20


def why_not() -> str | None:
    """Why there can be no namespaces with rate limits here. None if there can be."""
    missing = [name for name in ("ip", "tc") if shutil.which(name) is None]
    if missing:
        return f"the programs {' and '.join(missing)} are missing: install iproute2"
    if os.geteuid() != 0:
        return "it needs root: network namespaces and rate limits belong to the administrator"
    probe = f"{PREFIX}{os.getpid()}-999"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, timeout=COMMAND_SECONDS)
    if made.returncode:
        return f"the system makes no network namespaces: {made.stderr.strip()}"
    _quietly("ip", "netns", "del", probe)
    return None


@dataclass(frozen=True)
class Namespace:
    """A namespace, and the address of the server in it."""

    name: str
    address: str


def make(number: int, mbit_s: float) -> Namespace:
    """A namespace whose link to the host lets through so many megabits a second in each direction.

    Raises
    ------
    RunError
        A command of `ip` or `tc` failed.
    """
    owner = os.getpid()
    name, outside, inside = f"{PREFIX}{owner}-{number}", f"hs{owner}o{number}", f"hs{owner}i{number}"
    # A block of addresses for private networks; the owner's number keeps two stores apart.
    net = f"10.{150 + owner % 100}.{number}"
    limit = ["tbf", "rate", f"{mbit_s:g}mbit", "burst", str(BURST_NBYTES), "limit", str(LIMIT_NBYTES)]
    _run("ip", "netns", "add", name)
    _run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
    _run("ip", "addr", "add", f"{net}.1/30", "dev", outside)
    _run("ip", "link", "set", outside, "up")
    _run("ip", "-n", name, "addr", "add", f"{net}.2/30", "dev", inside)
    _run("ip", "-n", name, "link", "set", inside, "up")
    _run("tc", "qdisc", "add", "dev", outside, "root", *limit)
    _run("tc", "-n", name, "qdisc", "add", "dev", inside, "root", *limit)
    return Namespace(name, f"{net}.2")


def remove(name: str) -> None:
    """Remove a namespace, its link, and whatever still runs in it."""
    listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, timeout=COMMAND_SECONDS)
    for process in listed.stdout.split():
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(process), signal.SIGKILL)
    matched = NAME.match(name)
    if matched:
        _quietly("ip", "link", "del", f"hs{matched[1]}o{matched[2]}")
    _quietly("ip", "netns", "del", name)


def remove_left() -> list[str]:
    """Remove the namespaces of processes that are gone, and return their names."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, timeout=COMMAND_SECONDS)
    left = []
    for each in listed.stdout.splitlines():
        matched = NAME.match(each)
        if matched and not Path(f"/proc/{matched[1]}").exists():
            left.append(matched[0])
            remove(matched[0])
    return left


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    if done.returncode:
        raise RunError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")


def _quietly(*command: str) -> None:
    subprocess.run(command, capture_output=True, timeout=COMMAND_SECONDS)
