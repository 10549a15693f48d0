"""Asks HDF5's own library, for `verify`, whether it sees what we see, and whether the fingerprints agree. This runs in
a process of its own, because a damaged file may crash it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hyperslab.errors import HyperslabError

SECONDS = 60  # and one more for each MB
OPEN = "file is already open for write"  # what HDF5 says of a file of its newest layouts
FAULTS = (
    OSError,
    KeyError,
    RuntimeError,
    ValueError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    SystemError,
)


@dataclass
class Testimony:
    """What was seen: damage (what, array, versions); which versions are proved; and why the others are not."""

    damages: list[tuple[str, str | None, list[str] | None]] = field(default_factory=list)
    proved: list[str] = field(default_factory=list)
    unproved: dict[str, str] = field(default_factory=dict)

    def add(self, what: str, array: str | None = None, versions: Sequence[str] | None = None) -> None:
        """Report damage."""
        self.damages.append((what, array, None if versions is None else list(versions)))

    @contextmanager
    def heard(self, what: str, array: str | None = None, versions: Sequence[str] | None = None) -> Iterator[None]:
        """Report as damage what HDF5 cannot do."""
        try:
            yield
        except (*FAULTS, HyperslabError) as error:
            self.add(f"{what}: {type(error).__name__}: {error}", array, versions)


def ask(path: str, names: Sequence[str] | None) -> Testimony:
    """Ask HDF5's library about versions of a file, by default all, in another process.

    Raises
    ------
    ModuleNotFoundError
        h5py is not installed.
    """
    import h5py  # noqa: F401 -- a missing h5py is not damage

    environment = {
        **os.environ,
        "HDF5_USE_FILE_LOCKING": "FALSE",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, "-c", "from hyperslab.versions.inspect.witness import main; main()"]
    seconds = SECONDS + Path(path).stat().st_size / 1e6
    asked = json.dumps([path, None if names is None else list(names)])
    try:
        done = subprocess.run(
            command, input=asked, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return Testimony([(f"HDF5 did not read it within {seconds:.0f} s", None, None)])
    if done.returncode < 0:
        return Testimony([(f"HDF5 crashes when it reads the file (signal {-done.returncode})", None, None)])
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return Testimony([(f"HDF5 cannot read the file: {last}", None, None)])
    said = json.loads(done.stdout.splitlines()[-1])
    return Testimony(
        [(what, array, versions) for what, array, versions in said["damages"]], said["proved"], said["unproved"]
    )


def main() -> None:
    """The other process."""
    path, names = json.loads(sys.stdin.read())
    print(json.dumps(asdict(testify(path, names))))


def testify(path: str, names: Sequence[str] | None) -> Testimony:
    """Look at versions of a file through h5py."""
    import h5py

    from hyperslab.journal.settling import between_commits
    from hyperslab.versions.inspect.second_look import SecondLook
    from hyperslab.versions.layout.reading import version_table

    found = Testimony()
    with between_commits(path), found.heard("HDF5 cannot read the file"):
        try:
            file = h5py.File(path, "r", locking=False)
        except OSError as error:
            if OPEN not in str(error):
                raise
            reason = "HDF5 refuses to read a file that is marked as open for writing: close it, then verify again"
            found.unproved.update(dict.fromkeys(version_table(path) if names is None else names, reason))
            return found
        with file:
            SecondLook(path, file, found, names).look()
    return found
