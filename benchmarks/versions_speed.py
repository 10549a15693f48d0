"""The speed table of versioned files, compared with versioned-hdf5 and with h5py without versions.

    python benchmarks/versions_speed.py [--only NAME ...] [--quick] [--files DIRECTORY] [--list]

NAME is a group of rows (`write`, `read`, `version`, `delete`, `many`, `histories`, `long`, `rivals`). First each side
of a row must be right; then they are timed in turn in one run. Rows that write appear twice: without and with syncing.
`many` is one version of 200,000 chunks in its own process. `histories` are a thousand versions of each workload of
versioned-hdf5's article, with both sides taking turns at each version. `long` is the processor time of version 5,170 of
a file against that of version 50 of another, 200 times in turn. `rivals` are branches, merges, blame, expiry, import
and sizes, beside Icechunk where it can do it. Results are saved in benchmarks/results/versions_speed.json.
`--quick` checks within two minutes that everything works, and saves nothing.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import command
import comparison
import numpy as np
import peers
import rival_rows
import versions_rows
from comparison import OURS, compared, provenance, verdict
from peak_memory import status_nbytes
from versions_rows import THEIRS, Making, Updates

from hyperslab import VersionedFile
from hyperslab.bench.histories.contenders import HISTORY_FORMATS
from hyperslab.bench.histories.edits import EDIT_PATTERNS

RESULTS = Path(__file__).parent / "results" / "versions_speed.json"
PACKAGES = ("h5py", "versioned-hdf5", "numpy")
MEGABYTES, QUICK_MEGABYTES = 32, 4
MANY_CHUNKS, MANY_CHUNK_LENGTH = 200_000, 4
MOST_NBYTES, MOST_OF_THEIRS = 2 << 30, 0.3
HISTORY, EARLY, WINDOW = 1000, 20, 20
MOST_OF_A_VERSION, MOST_GROWTH = 0.4, 1.3
# The last chunk of the table of hashes is written again until it has 512 rows, so both files have as many rows in it.
LONG_EARLY, LONG_PAIRS, MOST_LONG_GROWTH = 50, 200, 1.2
LONG = LONG_EARLY + 10 * 512
UNSYNCED = "hyperslab, not synced"


def groups(where: Path, quick: bool) -> command.Groups:
    """The groups of rows. Each row is measured when you ask for it."""
    megabytes = QUICK_MEGABYTES if quick else MEGABYTES

    def each(rows: Callable[[], Iterator[comparison.Row]]) -> Callable[[], Iterator[dict[str, Any]]]:
        return lambda: (comparison.measure(row, quick) for row in rows())

    def written(rows: Callable[[Making], Iterator[comparison.Row]]) -> Callable[[], Iterator[dict[str, Any]]]:
        return each(lambda: versions_rows.both(rows, where))

    return {
        "write": written(lambda making: versions_rows.first_write(making, megabytes)),
        "read": each(lambda: versions_rows.reads(where, megabytes)),
        "version": written(lambda making: versions_rows.new_version(making, megabytes)),
        "delete": written(lambda making: versions_rows.deletion(making, 61 if quick else 601)),
        "many": lambda: iter([many(where, MANY_CHUNKS // 100 if quick else MANY_CHUNKS)]),
        "histories": lambda: (history(where, name, 60 if quick else HISTORY) for name in EDIT_PATTERNS),
        "long": lambda: iter([long(where, *((200, 20) if quick else (LONG, LONG_PAIRS)))]),
        "rivals": lambda: chain(
            each(lambda: rival_rows.rows(where, quick))(), (rival_rows.sizes(where, quick) for _ in range(1))
        ),
    }


def long(where: Path, count: int, pairs: int) -> dict[str, Any]:
    """Add versions to a file with few and one with many, in turn: the processor time of each."""
    itself = f"itself at version {LONG_EARLY}"
    took: dict[str, list[float]] = {OURS: [], itself: []}
    with ExitStack() as stack:
        files = {}
        for by, many in ((itself, LONG_EARLY), (OURS, count)):
            file = Making(where, synced=False).ours(where / f"long-{many}.h5", "w")
            files[by] = stack.enter_context(file), itertools.count()
            with file.stage_version("begin", branch="main") as version:
                version.create_dataset("x", data=np.arange(5120.0), chunks=(10,))
            for _ in range(many):
                edit(*files[by])
        for pair in range(pairs):
            for by in sorted(files, reverse=bool(pair % 2)):
                before = time.process_time()
                edit(*files[by])
                took[by].append(time.process_time() - before)
    return {
        "key": "long",
        "work": f"processor time of version {count:,}, one element of 512 chunks changed, none synced",
        "turns": pairs,
        "seconds": {by: float(np.median(some)) for by, some in took.items()},
        "comparisons": [
            {"peer": itself, "status": "measured", "target": MOST_LONG_GROWTH}
            | compared(took[OURS], took[itself], MOST_LONG_GROWTH)
        ],
        **provenance(),
    }


def edit(file: VersionedFile, numbers: Iterator[int]) -> None:
    """Add a version in which one element changes."""
    number = next(numbers)
    with file.stage_version(f"v{number}", message=f"edit {number}") as version:
        version["x"][number * 37 % 5120] = -1 - number


def many(where: Path, count: int) -> dict[str, Any]:
    """Change one element of very many chunks: seconds and peak memory, with a process for each library."""
    found: dict[str, Any] = {}
    for by in (OURS, THEIRS):
        done = subprocess.run(
            [sys.executable, __file__, "--one-of-many", by, str(where), str(count)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["killed"])[-1]
            found[by] = {"status": f"failed: {last}"}
        else:
            found[by] = {"status": "measured", **json.loads(done.stdout)}
    if found[OURS]["status"] != "measured":
        raise RuntimeError(f"many: hyperslab itself: {found[OURS]['status']}")
    ours, peer = found[OURS], found[THEIRS]
    comparisons = [{"peer": THEIRS, "status": peer["status"], "target": MOST_OF_THEIRS}]
    if peer["status"] == "measured":
        ratio = ours["seconds"] / peer["seconds"]
        said = verdict(ratio, ratio, ratio, MOST_OF_THEIRS)
        comparisons[0] |= {"ratio": ratio, "low": ratio, "high": ratio, "verdict": said}
    return {
        "key": "many",
        "work": f"new version, one element of {count:,} chunks changed; memory of the process that made both versions",
        "turns": 1,
        "seconds": {by: one["seconds"] for by, one in found.items() if "seconds" in one},
        "comparisons": comparisons,
        "limit": {
            "nbytes": ours["peak_nbytes"],
            "target": MOST_NBYTES,
            "verdict": verdict(ours["peak_nbytes"], 0, ours["peak_nbytes"], MOST_NBYTES),
        },
        "peak_nbytes": {by: one["peak_nbytes"] for by, one in found.items() if "peak_nbytes" in one},
        **provenance(),
    }


def one_of_many(by: str, where: Path, count: int) -> None:
    """Create a version with many chunks and change one of them, in this process. Print what the change took."""
    folder = where / "many"
    folder.mkdir(exist_ok=True)
    updates = Updates(Making(folder, synced=False), by, 1, count * MANY_CHUNK_LENGTH, MANY_CHUNK_LENGTH)
    start = time.perf_counter()
    updates.add()
    print(json.dumps({"seconds": time.perf_counter() - start, "peak_nbytes": status_nbytes("VmHWM")}))


def history(where: Path, name: str, count: int) -> dict[str, Any]:
    """A workload of versioned-hdf5's article: the time of its last versions, with both libraries by turns."""
    workload = EDIT_PATTERNS[name]
    chunk = 256 if workload.columns else 4096
    formats = {OURS: HISTORY_FORMATS[UNSYNCED], THEIRS: HISTORY_FORMATS[THEIRS]}
    paths = {by: where / f"{name}-{by}.h5" for by in formats}
    files = {by: kind(paths[by], chunk, "none") for by, kind in formats.items()}
    took: dict[str, list[float]] = {by: [] for by in files}
    for number, edits in enumerate(workload.edits(count)):
        for by in sorted(files, reverse=bool(number % 2)):
            start = time.perf_counter()
            files[by].add(number, edits)
            took[by].append(time.perf_counter() - start)
    for file in files.values():
        file.close()
    last = {by: all_took[-WINDOW:] for by, all_took in took.items()}
    early = took[OURS][EARLY - WINDOW // 2 : EARLY + WINDOW // 2]
    asked = [(THEIRS, last[THEIRS], MOST_OF_A_VERSION)]
    seconds = {by: float(np.median(some)) for by, some in last.items()}
    if not workload.grows:
        asked.append((itself := f"itself at version {EARLY}", early, MOST_GROWTH))
        seconds[itself] = float(np.median(early))
    comparisons = [
        {"peer": peer, "status": "measured", "target": target} | compared(last[OURS], took, target)
        for peer, took, target in asked
    ]
    return {
        "key": f"history-{name}",
        "work": f"version {count} of {name}, none synced",
        "turns": WINDOW,
        "seconds": seconds,
        "comparisons": comparisons,
        "stored_nbytes": {by: path.stat().st_size for by, path in paths.items()},
        **provenance(),
    }


def main() -> None:
    """Measure, print a line for each comparison, and save the figures after each row."""
    if sys.argv[1:2] == ["--one-of-many"]:
        one_of_many(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
        return
    said = command.arguments(__doc__)
    command.limit_processors()
    with command.directory(said) as where:
        command.run(said, groups(where, said.quick), RESULTS, peers.versions(PACKAGES), where, megabytes=MEGABYTES)


if __name__ == "__main__":
    main()
