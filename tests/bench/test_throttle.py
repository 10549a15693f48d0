"""A process finds the limits that its control group sets for a disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyperslab.lab.environment import throttle_of

MANY = 100_000_000_000  # bytes per second: no process waits for that
COMMAND = """
import pathlib, sys
from hyperslab.lab.environment import throttle_of

input()
print(throttle_of(pathlib.Path(sys.argv[1])))
"""


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Path]:
    """A new control group, of version 1 or 2, with a limit for the disk of `tmp_path`."""
    device = tmp_path.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    disk = block if (block / "queue").is_dir() else block.parent
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    groups = [(Path(mount[1]), mount[2]) for mount in mounts if mount[2] == "cgroup2" or "blkio" in mount[3].split(",")]
    for mount, kind in groups:
        made = mount / f"hyperslab-test-{os.getpid()}"
        limit = ("io.max", "rbps={}") if kind == "cgroup2" else ("blkio.throttle.read_bps_device", "{}")
        try:
            made.mkdir()
            (made / limit[0]).write_text(f"{(disk / 'dev').read_text().strip()} {limit[1].format(MANY)}\n")
        except OSError:
            if made.exists():
                made.rmdir()
            continue
        yield made
        made.rmdir()
        return
    pytest.skip("limiting a disk needs root, and a control group that has one")


def test_limits_are_found(group: Path, tmp_path: Path) -> None:
    assert throttle_of(tmp_path) is None
    command = [sys.executable, "-c", COMMAND, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        (group / "cgroup.procs").write_text(str(process.pid))
        said, _ = process.communicate("\n")
    assert said.strip() == f"rbps={MANY}"
