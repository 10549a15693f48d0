"""Properties of the machine that affect the figures of a run."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hyperslab.errors import MissingLibrary
from hyperslab.formats import availability


@dataclass(frozen=True)
class Environment:
    """Properties that must be equal before two runs may be compared. Unknown values are None."""

    cpu: str | None
    cpu_count: int
    memory_nbytes: int | None
    kernel: str
    python: str
    file_system: str | None
    mount_options: str | None
    read_ahead_kib: int | None
    rotational: bool | None
    can_drop_caches: bool
    libraries: dict[str, str]  # format -> its library, with versions

    # Library versions and load also change figures, but they are often the reason for comparing two runs.
    MUST_AGREE = ("cpu", "cpu_count", "memory_nbytes", "file_system", "read_ahead_kib", "rotational")

    def differences(self, other: Environment) -> list[str]:
        """Differences between two machines, in words. Empty if their runs may be compared."""
        pairs = [(name, getattr(self, name), getattr(other, name)) for name in self.MUST_AGREE]
        return [f"{name}: {here} against {there}" for name, here, there in pairs if not agree(name, here, there)]

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for run.json."""
        return asdict(self)


def agree(name: str, here: Any, there: Any) -> bool:
    """Whether a fact is the same on two machines. The memory may differ by a hundredth: a kernel keeps some of it."""
    if name == "memory_nbytes" and isinstance(here, int) and isinstance(there, int):
        return abs(here - there) <= max(here, there) // 100
    return bool(here == there)


def observe(scratch: Path, formats: list[str]) -> Environment:
    """The environment of a run that writes its files to `scratch` and uses `formats`."""
    mount = _mount_of(scratch)
    queue = _queue_of(scratch)
    return Environment(
        cpu=_cpu(),
        cpu_count=len(os.sched_getaffinity(0)),
        memory_nbytes=_memory_nbytes(),
        kernel=platform.release(),
        python=platform.python_version(),
        file_system=mount[0] if mount else None,
        mount_options=mount[1] if mount else None,
        read_ahead_kib=_number(queue / "read_ahead_kb") if queue else None,
        rotational=_flag(queue / "rotational") if queue else None,
        can_drop_caches=os.access("/proc/sys/vm/drop_caches", os.W_OK),
        libraries=dict(_libraries(formats)),
    )


def _libraries(formats: list[str]) -> list[tuple[str, str]]:
    known = []
    for name in formats:
        library = availability(name)
        if not isinstance(library, MissingLibrary):
            parts = "".join(f", {part} {version}" for part, version in library.parts)
            known.append((name, f"{library.name} {library.version}{parts}"))
    return known


def machine_text() -> str:
    """This machine in words: what tells it from another kind of machine."""
    return machine_of(_cpu(), _memory_nbytes())


def machine_of(cpu: str | None, memory_nbytes: int | None) -> str:
    """A machine in words."""
    memory = "" if memory_nbytes is None else f", {memory_nbytes / 1e9:.0f} GB of memory"
    return f"{cpu or 'an unknown processor'}{memory}"


def _cpu() -> str | None:
    return _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or None


def _field(path: Path, name: str) -> str | None:
    lines = _text(path).splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def _memory_nbytes() -> int | None:
    total = _field(Path("/proc/meminfo"), "MemTotal")
    return int(total.split()[0]) * 1024 if total else None


def _mount_of(path: Path) -> tuple[str, str] | None:
    """The file system type and options of the nearest mount point above `path`."""
    mounts = [line.split() for line in _text(Path("/proc/mounts")).splitlines()]
    above = [m for m in mounts if path.resolve().is_relative_to(m[1])]
    nearest = max(above, key=lambda m: len(m[1]), default=None)
    return (nearest[2], nearest[3]) if nearest else None


def _queue_of(path: Path) -> Path | None:
    """The kernel's queue settings of the block device under `path`, or None if there is no such device."""
    device = path.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for candidate in (block / "queue", block.resolve().parent / "queue"):
        if candidate.is_dir():
            return candidate
    return None


def throttle_of(path: Path) -> str | None:
    """The control groups' limits for this process on the disk under `path`, such as `rbps=10485760`.

    None without limits.
    """
    queue = _queue_of(path)
    device = _text(queue.parent / "dev").strip() if queue else ""
    throttles = dict[str, None]()
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, group = line.split(":", 2)
        for mount in _mounts_of_groups(controllers):
            folders = [mount / group.lstrip("/"), *(mount / group.lstrip("/")).parents]
            for folder in (folder for folder in folders if folder.is_relative_to(mount)):
                throttles |= dict.fromkeys(_limits(folder, device))
    return " ".join(throttles) or None


def _mounts_of_groups(controllers: str) -> list[Path]:
    """The mount points of the hierarchy with these controllers. An empty string means version 2."""
    mounts = [line.split() for line in _text(Path("/proc/mounts")).splitlines()]
    if not controllers:
        return [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    wanted = set(controllers.split(",")) & {"blkio"}
    return [Path(mount[1]) for mount in mounts if mount[2] == "cgroup" and wanted & set(mount[3].split(","))]


# The files of version 1, with version 2's names for the same limits.
_LIMIT_FILES = {
    f"blkio.throttle.{verb}_{unit}_device": f"{verb[0]}{unit}" for verb in ("read", "write") for unit in ("bps", "iops")
}


def _limits(group: Path, device: str) -> list[str]:
    settings = [line.split()[1:] for line in _text(group / "io.max").splitlines() if line.split()[0] == device]
    limits = [limit for line in settings for limit in line if not limit.endswith("=max")]
    for name, limit in _LIMIT_FILES.items():
        lines = map(str.split, _text(group / name).splitlines())
        limits += [f"{limit}={number}" for where, number in lines if where == device]
    return limits


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _flag(path: Path) -> bool | None:
    value = _number(path)
    return None if value is None else bool(value)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def pressure() -> dict[str, float | None]:
    """How busy the machine is now, for the record of a trial: `io_pressure` and `load`.

    `io_pressure` is the per cent of the last ten seconds during which all work waited for I/O. A value is None if the
    kernel does not say.
    """
    full = [line for line in _text(Path("/proc/pressure/io")).splitlines() if line.startswith("full")]
    avg10 = float(full[0].split("avg10=")[1].split()[0]) if full else None
    try:
        load = os.getloadavg()[0]
    except OSError:
        load = None
    return {"io_pressure": avg10, "load": load}
