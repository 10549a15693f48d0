"""The speed table: reading without the HDF5 library, against every named peer, in turn, on warm files.

    python benchmarks/read_speed.py [--only NAME ...] [--quick] [--files DIRECTORY] [--list]

NAME is a group of rows (`deflate`, `zarr`, `uncompressed`, `parts`, `index`, `tiny`, `collection`, `memory`). A row
times all of its sides in one run, in an order drawn anew each turn, after each was found to read the same; a peer that
is missing, wrong or fails is named. Results are kept in benchmarks/results/read_speed.json row by row, so that one row
can be measured again; rows of another machine or with other libraries are not mixed: a whole run replaces them.
`--quick` shows that everything works, on 64 MB; it keeps nothing.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import comparison
import kept
import peak_memory
import peers
import rows
import speed_table
from files import Files

from hyperslab.bench.environment import observe

RESULTS = Path(__file__).parent / "results" / "read_speed.json"
MEGABYTES, QUICK_MEGABYTES, QUICK_SHRINK = 512, 64, 10
Measured = Iterator[dict[str, Any]]


def groups(files: Files, quick: bool) -> dict[str, Callable[[], Measured]]:
    """Each group of rows, measured one after another when asked for."""
    shrink = QUICK_SHRINK if quick else 1

    def each(made: Callable[[], Iterator[comparison.Row]]) -> Callable[[], Measured]:
        return lambda: (comparison.measure(row, quick) for row in made())

    return {
        "deflate": each(lambda: rows.deflate(files)),
        "zarr": each(lambda: rows.zarr(files)),
        "uncompressed": each(lambda: rows.uncompressed(files)),
        "parts": each(lambda: rows.parts(files)),
        "index": each(lambda: rows.index(files, shrink)),
        "tiny": each(lambda: rows.tiny(files, shrink)),
        "collection": each(lambda: rows.collection(files, shrink)),
        "memory": lambda: iter([peak_memory.measure(files, 1 if quick else 3)]),
    }


def limit_processors() -> None:
    """Give every side the same two processors, before any of them starts threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: peers.THREADS])
    os.environ["RAYON_NUM_THREADS"] = str(peers.THREADS)


def main() -> None:
    """Measure, print a line for each comparison, keep the figures after each row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="groups of rows")
    parser.add_argument("--quick", action="store_true", help="64 MB and three turns; keeps nothing")
    parser.add_argument("--files", type=Path, help="make the files here, leave them, use those that are there")
    parser.add_argument("--list", action="store_true", help="names of the groups")
    said = parser.parse_args()
    limit_processors()
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as scratch:
        directory = (said.files or Path(scratch)).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        known = groups(Files(directory, QUICK_MEGABYTES if said.quick else MEGABYTES), said.quick)
        if said.list:
            print(*known, sep="\n")
            return
        unknown = set(said.only or ()) - set(known)
        if unknown:
            parser.error(f"no group {', '.join(sorted(unknown))}: there are {', '.join(known)}")
        environment = asdict(observe(directory, [])) | {"libraries": peers.versions()}
        results = {} if said.quick else kept.begun(RESULTS, environment, not said.only, megabytes=MEGABYTES)
        for name in said.only or known:
            print(f"{name}:", flush=True)
            for made in known[name]():
                print(speed_table.lines(made), flush=True)
                if results:
                    kept.keep(RESULTS, results, made | {"group": name}, list(known))


if __name__ == "__main__":
    main()
