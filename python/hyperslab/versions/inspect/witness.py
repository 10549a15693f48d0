"""Asks HDF5's own library, for `verify`, whether it sees what we see, and whether the fingerprints agree. This runs in
a process of its own, because a damaged file may crash it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from hyperslab.versions.inspect.testimony import Testimony

SECONDS = 60  # without a word; and one more for each MB
TOLD_SECONDS = 1
KILLS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU)  # by others, not by HDF5
OPEN = "file is already open for write"  # what HDF5 says of a file of its newest layouts


Heard: TypeAlias = Callable[[], Testimony | None]
Ask: TypeAlias = Callable[[str, Sequence[str] | None], Heard]


@contextmanager
def hired() -> Iterator[Ask]:
    """Start another process, which loads HDF5's library while you do something else. Gives a function that asks it once
    about versions of a file (None: all). It works from then on; what that function returns waits for its answer, which
    is None if h5py is not installed.
    """
    try:
        import h5py  # noqa: F401 -- a missing h5py is not damage
    except ModuleNotFoundError:
        yield lambda _path, _names: lambda: None
        return
    environment = {
        **os.environ,
        "HDF5_USE_FILE_LOCKING": "FALSE",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, "-c", "from hyperslab.versions.inspect.witness import main; main()"]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )

        def ask(path: str, names: Sequence[str] | None) -> Heard:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps([path, None if names is None else list(names)]))
                process.stdin.close()

            def heard() -> Testimony:
                testimony = _listened(process, SECONDS + Path(path).stat().st_size / 1e6)
                if not testimony.is_complete and testimony.silence is None:
                    errors.seek(0)
                    _add_ending(testimony, process.returncode, errors.read())
                return testimony

            return heard

        with process:
            try:
                yield ask
            finally:
                process.kill()


def _listened(process: subprocess.Popen[str], seconds: float) -> Testimony:
    """What the other process says, until it ends or says nothing for so long."""
    testimony, lines = Testimony(), queue.SimpleQueue[str]()

    def read() -> None:
        assert process.stdout is not None
        with suppress(ValueError):  # it was closed, because everything had been said
            for line in process.stdout:
                lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    while not testimony.is_complete:
        try:
            line = lines.get(timeout=seconds)
        except queue.Empty:
            testimony.silence = (
                f"HDF5 read nothing more of it within {seconds:.0f} s: the machine is busy, or HDF5 hangs"
            )
            break
        if not line:
            process.wait()
            break
        testimony.hear(json.loads(line))
    return testimony


def _add_ending(testimony: Testimony, status: int, errors: str) -> None:
    """Add what it means that the other process ended before it had read everything."""
    last = (errors.strip().splitlines() or ["no reason given"])[-1]
    if -status in KILLS:
        testimony.silence = f"the process that reads it with HDF5 was killed (signal {-status})"
    elif status < 0:
        testimony.add(f"HDF5 crashes when it reads the file (signal {-status})")
    elif last.startswith("MemoryError"):
        testimony.silence = "there is not enough memory to read it with HDF5"
    else:
        testimony.add(f"HDF5 cannot read the file: {last}")


def main() -> None:
    """The other process. It says from time to time what it has found since."""
    from hyperslab.versions.inspect import second_look  # noqa: F401 -- takes long, and nobody may have asked yet

    asked = sys.stdin.read()
    if not asked:  # nobody will
        return
    path, names = json.loads(asked)
    told, last = Testimony(), time.monotonic()

    def tell(testimony: Testimony, *, is_complete: bool = False) -> None:
        nonlocal last
        if is_complete or time.monotonic() > last + TOLD_SECONDS:
            last = time.monotonic()
            print(json.dumps({**testimony.since(told), "is_complete": is_complete}), flush=True)

    tell(testify(path, names, tell), is_complete=True)


def testify(path: str, names: Sequence[str] | None, tell: Callable[[Testimony], None]) -> Testimony:
    """Look at versions of a file through h5py, and tell from time to time what was found."""
    import h5py

    from hyperslab.journal.settling import between_commits
    from hyperslab.versions.inspect.second_look import SecondLook
    from hyperslab.versions.layout.reading import version_table

    testimony = Testimony()
    with between_commits(path), testimony.heard("HDF5 cannot read the file"):
        try:
            file = h5py.File(path, "r", locking=False)
        except OSError as error:
            if OPEN not in str(error):
                raise
            reason = "HDF5 refuses to read a file that is marked as open for writing: close it, then verify again"
            testimony.unproved.update(dict.fromkeys(version_table(path) if names is None else names, reason))
            return testimony
        with file:
            SecondLook(path, file, testimony, names, lambda: tell(testimony)).look()
    return testimony
