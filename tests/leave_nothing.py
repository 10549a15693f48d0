"""Runs a command with a folder for temporary files, and fails if it leaves any: `leave_nothing.py COMMAND ...`.

pytest's own folder may stay: it has the files of tests that failed. So may locks without content: tests that must be
alone find each other by them. Workers of Dask have a folder of their own: one that is too slow to end on a busy machine
is killed by Dask, and leaves what it had.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main(command: list[str]) -> int:
    """The status of the command, or 1 if it succeeded and left files behind."""
    folder = Path(tempfile.mkdtemp(prefix="hs-"))  # short: sockets have paths of 107 bytes at most
    folder.chmod(0o1777)  # as /tmp: some tests work as another user
    with tempfile.TemporaryDirectory(prefix="hs-dask-", ignore_cleanup_errors=True) as workers:
        # Tests run side by side, and multiply small matrices: threads of BLAS would only wait for each other.
        own = {"TMPDIR": str(folder), "DASK_TEMPORARY_DIRECTORY": workers, "OPENBLAS_NUM_THREADS": "1"}
        environment = {**os.environ, **own}
        status = subprocess.run(command, env=environment, check=False).returncode
    left = sorted(
        path.name for path in folder.iterdir() if not path.name.startswith("pytest-of-") and holds_files(path)
    )
    if left:
        print(f"tests left {len(left)} files in TMPDIR: {', '.join(left[:20])}", file=sys.stderr)
    if status == 0 or not any(folder.glob("pytest-of-*")):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"the files of tests that failed are in {folder}", file=sys.stderr)
    return status or bool(left)


def holds_files(path: Path) -> bool:
    """Whether a path is, or has, anything but folders and empty locks."""
    inner = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
    return any(not (one.is_dir() or (one.suffix == ".lock" and one.stat().st_size == 0)) for one in inner)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
