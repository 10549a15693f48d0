"""The memory that reading a whole array takes: the peak of a new process, minus its memory before the read.

    python benchmarks/peak_memory.py READER FILE

The kernel records the peak of resident memory (VmHWM in /proc/self/status). Writing 5 to /proc/self/clear_refs resets
it, proc(5). Pages of the page cache that are not mapped do not count.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peers
from comparison import OURS, provenance, verdict
from files import Files

MIB = 1 << 20
MOST_BEYOND_OUTPUT_NBYTES = 64 * MIB
READERS: dict[str, Callable[[Path], peers.Read]] = {
    OURS: peers.by_hyperslab,
    "h5py": peers.by_h5py,
    "hidefix": peers.by_hidefix,
}


def measure(files: Files, times: int) -> dict[str, Any]:
    """Measure the row: for each reader, the largest of several peaks."""
    path = files.hdf5("deflate")
    beyond: dict[str, list[int]] = {}
    comparisons = []
    for reader in READERS:
        status = "measured"
        for _ in range(times):
            command = [sys.executable, __file__, reader, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                error = done.stderr.strip().splitlines()[-1]
                status = f"{'not installed' if error.startswith('ModuleNotFoundError') else 'failed'}: {error}"
                break
            beyond.setdefault(reader, []).append(json.loads(done.stdout)["beyond_output_nbytes"])
        if reader != OURS:
            found = max(beyond[reader]) if status == "measured" else None
            comparisons.append({"peer": reader, "status": status, "target": None, "nbytes": found})
        elif status != "measured":
            raise RuntimeError(f"memory: hyperslab itself: {status}")
    ours = max(beyond[OURS])
    most = MOST_BEYOND_OUTPUT_NBYTES
    return {
        "key": "memory",
        "work": "peak memory beyond the output, everything, deflate+shuffle",
        "turns": times,
        "output_nbytes": files.data.nbytes,
        "comparisons": comparisons,
        "limit": {"nbytes": ours, "target": most, "verdict": verdict(ours, min(beyond[OURS]), ours, most)},
        "samples": beyond,
        **provenance(),
    }


def status_nbytes(field: str) -> int:
    """A memory field of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024


def main() -> None:
    """Read the file with one reader in this process, and print the memory that it took."""
    reader, path = sys.argv[1], Path(sys.argv[2])
    read = READERS[reader](path)
    Path("/proc/self/clear_refs").write_text("5")
    before = status_nbytes("VmRSS")
    out = read(...)
    print(json.dumps({"beyond_output_nbytes": status_nbytes("VmHWM") - before - out.nbytes}))


if __name__ == "__main__":
    main()
