"""The system calls of each case and access."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
from index_blocks import index_blocks

STEPS = 1000
WORKER = Path(__file__).with_name("library_accesses.py")
CALLS = "openat,pread64,preadv,preadv2,pwrite64,pwritev,read,write,lseek,rename,renameat,unlink"
MARK = re.compile(r"lseek\(\d+<[^>]*/marker>, (\d+), SEEK_SET")
CALL = re.compile(r"(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?")
POSITIONED = re.compile(r"\d+<([^>]*)>.*, (\d+), (\d+)$")
PLAIN = re.compile(r"\d+<([^>]*)>.*, (\d+)$")


@dataclass(frozen=True)
class Call:
    """One system call on a file. `offset` is None if the call uses the file's own position."""

    kind: str
    path: str
    offset: int | None
    length: int


@dataclass(frozen=True)
class Watched:
    """The findings of a case's worker, and its calls by step."""

    found: dict[str, Any]
    calls: dict[int, list[Call]]


def watch(library: str, cases: list[dict[str, Any]], folder: Path, python: str = sys.executable) -> list[Watched]:
    """Run cases in one process of `python`, under strace."""
    folder.mkdir(parents=True)
    trace = folder / "trace"
    command = [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-y",
        "-s0",
        "-e",
        f"trace={CALLS}",
        "-e",
        "signal=none",
        "-o",
        str(trace),
    ]
    command += [python, str(WORKER), library, str(folder)]
    done = subprocess.run(command, input=json.dumps(cases).encode(), stdout=subprocess.PIPE, check=True)
    by_mark = calls_by_mark(trace.read_text(errors="replace"), str(folder))
    found = json.loads(done.stdout)
    if library != "zarr":
        for number, each in enumerate(found):
            path = folder / str(number)
            each.update(before=places_in(Path(f"{path}.before")), after=places_in(path))
    by_case: list[dict[int, list[Call]]] = [{} for _ in cases]
    for mark, calls in by_mark.items():
        by_case[mark // STEPS][mark % STEPS] = calls
    return [Watched(*pair) for pair in zip(found, by_case, strict=True)]


def places_in(path: Path) -> dict[str, Any]:
    """The locations of chunks and index blocks, or of the array. `shown` has digests of the index blocks."""
    with h5py.File(path, "r") as file:
        array = file["x"]
        if array.chunks is None:
            return {"chunks": [], "offset": array.id.get_offset(), "shown": {}}
        chunks, ndim = chunk_places(array), array.ndim
    return {"chunks": chunks, "shown": index_blocks(path.read_bytes(), chunks, ndim)}


def chunk_places(array: Any) -> list[tuple[int, int, int]]:
    """The linear index, offset and stored length of each chunk."""
    lengths = array.chunks
    grid = [-(-length // chunk) for length, chunk in zip(array.shape, lengths, strict=True)]
    places = []

    def keep(info: Any) -> None:
        linear = 0
        for start, chunk, length in zip(info.chunk_offset, lengths, grid, strict=True):
            linear = linear * length + start // chunk
        places.append((linear, info.byte_offset, info.size))

    array.id.chunk_iter(keep)  # one pass: `get_chunk_info` starts from the first chunk for each
    return places


def calls_by_mark(text: str, folder: str) -> dict[int, list[Call]]:
    """The calls on files of a folder after each mark. A call that another thread interrupts has two lines."""
    by_mark: dict[int, list[Call]] = defaultdict(list)
    unfinished: dict[str, str] = {}
    mark = 0
    for line in text.splitlines():
        thread = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            unfinished[thread] = line.removesuffix("<unfinished ...>")
            continue
        if resumed := re.search(r"<\.\.\. \w+ resumed>(.*)", line):
            line = unfinished.pop(thread) + resumed[1]
        if marked := MARK.search(line):
            mark = int(marked[1])
        elif (call := parse(line)) and call.path.startswith(folder):
            by_mark[mark].append(call)
    return by_mark


def parse(line: str) -> Call | None:
    call = CALL.match(line)
    if not call:
        return None
    name, arguments, result = call[1], call[2].rstrip(), int(call[3])
    if name == "openat":
        asked = re.search(r'"([^"]*)"', arguments)
        kind = "absent" if result < 0 else "create" if "O_CREAT" in arguments else "open"
        return Call(kind, call[4] or (asked[1] if asked else ""), None, 0)
    if name in ("pread64", "pwrite64"):
        parts = POSITIONED.match(arguments)
        # At the end of a file there is one more read, which returns nothing.
        return Call(name[:-2], parts[1], int(parts[3]), int(parts[2])) if parts and result else None
    if name in ("preadv", "preadv2", "pwritev"):
        parts = re.match(r"\d+<([^>]*)>.*, (\d+)(?:, \w+)?$", arguments)
        return Call(name[: name.index("v")], parts[1], int(parts[2]), result) if parts else None
    if name in ("read", "write"):
        parts = PLAIN.match(arguments)
        return Call(name, parts[1], None, result) if parts and result > 0 else None
    return None
