"""The speed table: reading without the HDF5 library, compared with every named peer in turn, on warm files.

    python benchmarks/read_speed.py [--only NAME ...] [--quick] [--files DIRECTORY] [--list]

NAME is a group of rows (`deflate`, `zarr`, `pipeline`, `pipelines`, `pipeline-writes`, `uncompressed`, `parts`,
`index`, `tiny`, `collection`, `memory`). First all sides of a row must read the same elements. Then they are timed in
one run, in a new random order each turn. A peer that is missing, wrong or fails is named. Results are saved in
benchmarks/results/read_speed.json row by row, so that you can measure one row again. Rows of other machines or
libraries are not mixed in: a whole run replaces them. `--quick` checks with 64 MB that everything works, and saves
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import command
import comparison
import peak_memory
import pipeline_rows
import rows
from files import Files

RESULTS = Path(__file__).parent / "results" / "read_speed.json"
MEGABYTES, QUICK_SHRINK = 512, 10


def groups(files: Files, quick: bool) -> command.Groups:
    """The groups of rows. Each row is measured when you ask for it."""
    shrink = QUICK_SHRINK if quick else 1

    def each(made: Callable[[], Iterator[comparison.Row]]) -> Callable[[], Iterator[dict[str, Any]]]:
        return lambda: (comparison.measure(row, quick) for row in made())

    return {
        "deflate": each(lambda: rows.deflate(files)),
        "zarr": each(lambda: rows.zarr(files)),
        "pipeline": each(lambda: rows.pipeline(files)),
        "pipelines": each(lambda: pipeline_rows.pipelines(files, "read")),
        "pipeline-writes": each(lambda: pipeline_rows.pipelines(files, "write")),
        "uncompressed": each(lambda: rows.uncompressed(files)),
        "parts": each(lambda: rows.parts(files)),
        "index": each(lambda: rows.index(files, shrink)),
        "tiny": each(lambda: rows.tiny(files, shrink)),
        "collection": each(lambda: rows.collection(files, shrink)),
        "memory": lambda: iter([peak_memory.measure(files, 1 if quick else 3)]),
    }


def main() -> None:
    """Measure, print a line for each comparison, and save the figures after each row."""
    command.run_locally(__doc__, groups, RESULTS, MEGABYTES)


if __name__ == "__main__":
    main()
