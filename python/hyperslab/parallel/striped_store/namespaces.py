"""Network namespaces, each with one link to the host that lets through a limited number of bytes a second."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hyperslab.errors import RunError

# The name of a namespace has the process that made it: what is left of a process that is gone can be removed.
PREFIX = "hyperslab-"
ROOM = "hyperslab-striped-"  # a directory of logs and plans, also with the process that made it
NAME = re.compile(rf"^{PREFIX}(\d+)-(\d+)\b")
ROOM_NAME = re.compile(rf"^{ROOM}(\d+)-")
# A burst is what passes without waiting: a request must be far larger. The limit is what may wait.
BURST_NBYTES, LIMIT_NBYTES = 1 << 13, 1 << 22
COMMAND_SECONDS = 60

_network: str | None = None


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
    net = f"{free_network()}.{number}"
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


def free_network() -> str:
    """Two numbers of private addresses that no link of this machine has, and always the same ones for this process."""
    global _network
    if _network is None:
        listed = subprocess.run(["ip", "-o", "-4", "addr"], capture_output=True, text=True, timeout=COMMAND_SECONDS)
        taken = set(re.findall(r"inet (10\.\d+)\.", listed.stdout))
        # The owner's number makes it unlikely that two stores that start at the same time choose the same one.
        order = [f"10.{150 + (os.getpid() + k) % 100}" for k in range(100)]
        free = next((each for each in order if each not in taken), None)
        if free is None:
            raise RunError("no private addresses are free: 10.150 to 10.249 are all in use")
        _network = free
    return _network


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
    """Remove the namespaces and directories of processes that are gone, and return the names of the namespaces."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, timeout=COMMAND_SECONDS)
    left = []
    for each in listed.stdout.splitlines():
        matched = NAME.match(each)
        if matched and not Path(f"/proc/{matched[1]}").exists():
            left.append(matched[0])
            remove(matched[0])
    for room in Path(tempfile.gettempdir()).glob(f"{ROOM}*"):
        owner = ROOM_NAME.match(room.name)
        if owner and not Path(f"/proc/{owner[1]}").exists():
            shutil.rmtree(room, ignore_errors=True)
    return left


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{' '.join(command)}: no answer within {COMMAND_SECONDS} s") from error
    if done.returncode:
        raise RunError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")


def _quietly(*command: str) -> None:
    subprocess.run(command, capture_output=True, timeout=COMMAND_SECONDS)
