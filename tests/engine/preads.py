"""What the operating system is asked for: reads made in a process of their own, which strace watches."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import hyperslab as hs

Read: TypeAlias = tuple[str, Any, int]
"""The name of an array, a selection (a list of points is itself), and how many threads."""

CALL = re.compile(r"pread(?:64|v)\W.*, (\d+)\) += (\d+)$")
MARK = re.compile(r"lseek\(\d+, (\d+), SEEK_SET")


def selection(asked: Any) -> Any:
    return hs.Points(asked) if isinstance(asked, list) else asked


def preads(path: Path, reads: Sequence[Read]) -> list[Counter[tuple[int, int]]]:
    """Offset and length of each request that a read makes, with empty caches, read by read."""
    trace = path.with_suffix(".trace")
    calls = "trace=pread64,preadv,preadv2,lseek"
    command = [
        "strace",
        "-f",
        "-s0",
        "-e",
        calls,
        "-P",
        str(path),
        "-o",
        str(trace),
        sys.executable,
        __file__,
        str(path),
    ]
    subprocess.run(command, input=pickle.dumps(reads), check=True)
    made: list[Counter[tuple[int, int]]] = [Counter() for _ in range(len(reads) + 1)]
    number = len(reads)  # what is read to open the file goes to the last one
    for line in trace.read_text().splitlines():
        if mark := MARK.search(line):
            number = int(mark[1])
        elif "pread" in line and "unfinished" not in line:
            call = CALL.search(line)
            assert call, line
            made[number][int(call[1]), int(call[2])] += 1
    assert number == len(reads), "a read failed"
    return made[:-1]


def main(path: Path) -> None:
    reads: list[Read] = pickle.loads(sys.stdin.buffer.read())
    file, marker = hs.open(path, chunk_cache_nbytes=0), os.open(path, os.O_RDONLY)
    for number, (name, asked, threads) in enumerate(reads):
        array = file[name]
        _ = array.shape, array.dtype, array.via  # what is looked up once
        os.lseek(marker, number, os.SEEK_SET)
        array.read(selection(asked), threads=threads)
    os.lseek(marker, len(reads), os.SEEK_SET)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
