"""Read the same selections of HDF5 files with h5py and with hyperslab.

    python examples/side_by_side.py

Each side opens a warm file, reads and closes it, in turn with the other. First the script checks that both read the
same elements.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import iris_sample_data
import numpy as np
from rich.console import Console
from rich.table import Table

import hyperslab
from hyperslab.lab import cache
from hyperslab.lab.statistics import interval_of_median, interval_of_ratio

TURNS = 9
SHAPE, CHUNK = (8, 1024, 1024), (1, 512, 512)  # float32: 32 MiB in chunks of 1 MiB


class Selection(NamedTuple):
    """What both sides read."""

    path: Path
    array: str
    said: str
    key: Any


def by_h5py(selection: Selection) -> Any:
    """Read with the HDF5 library."""
    with h5py.File(selection.path) as file:
        return file[selection.array][selection.key]


def by_hyperslab(selection: Selection) -> Any:
    """Read with hyperslab."""
    with hyperslab.open(selection.path) as file:
        return file[selection.array][selection.key]


def write_waves(path: Path) -> None:
    """Smooth waves with noise, rounded to two decimals, deflated and shuffled."""
    t, y, x = np.ogrid[: SHAPE[0], : SHAPE[1], : SHAPE[2]]
    waves = np.sin(x / 37) * 20 + np.cos(y / 53) * 15 + np.sin(t / 5) * 5
    noise = np.random.default_rng(7).normal(0, 0.3, SHAPE)
    with h5py.File(path, "w") as file:
        rounded = np.round(waves + noise, 2).astype(np.float32)
        file.create_dataset("waves", data=rounded, chunks=CHUNK, compression="gzip", shuffle=True)


def selections(directory: Path) -> list[Selection]:
    """Selections of a real file as it was published, and of a larger one that is written here."""
    real, waves = Path(iris_sample_data.path, "ostia_monthly.nc"), directory / "waves.h5"
    write_waves(waves)
    return [
        Selection(real, "surface_temperature", "[...]", np.s_[...]),
        Selection(real, "surface_temperature", "[:, 9, 200]", np.s_[:, 9, 200]),
        Selection(waves, "waves", "[...]", np.s_[...]),
        Selection(waves, "waves", "[3]", np.s_[3]),
        Selection(waves, "waves", "[:4, 480:544, 480:544]", np.s_[:4, 480:544, 480:544]),
        Selection(waves, "waves", "[:, 100, 900]", np.s_[:, 100, 900]),
    ]


def in_turn(selection: Selection) -> tuple[list[float], list[float]]:
    """Milliseconds of h5py and of hyperslab. The first turn is a warm-up."""
    took: dict[Callable[[Selection], Any], list[float]] = {by_h5py: [], by_hyperslab: []}
    for _ in range(TURNS + 1):
        for read in random.sample(list(took), 2):
            start = time.perf_counter()
            read(selection)
            took[read].append((time.perf_counter() - start) * 1e3)
    return took[by_h5py][1:], took[by_hyperslab][1:]


def with_interval(median: float, interval: tuple[float, float] | None) -> str:
    """A figure with its 95 % interval."""
    return f"{median:.3g} [{interval[0]:.3g}, {interval[1]:.3g}]" if interval else f"{median:.3g}"


def show() -> None:
    """Read everything both ways, compare, and print the table."""
    table = Table(title="The same HDF5 files, read by h5py and by hyperslab (milliseconds: open, read, close)")
    for heading in ("file", "selection", "KiB read", "h5py", "hyperslab", "h5py / hyperslab"):
        table.add_column(heading, justify="left" if heading in ("file", "selection") else "right")
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as scratch:
        for selection in selections(Path(scratch)):
            cache.warm_up([selection.path])
            theirs, ours = by_h5py(selection), by_hyperslab(selection)
            if theirs.dtype != ours.dtype or not np.array_equal(theirs, ours):
                raise AssertionError(
                    f"{selection.path.name} {selection.said}: hyperslab and h5py read different elements"
                )
            h5py_ms, hyperslab_ms = in_turn(selection)
            medians = float(np.median(h5py_ms)), float(np.median(hyperslab_ms))
            table.add_row(
                selection.path.name,
                selection.said.replace("[", r"\["),
                f"{ours.nbytes / 1024:,.1f}",
                with_interval(medians[0], interval_of_median(h5py_ms)).replace("[", r"\["),
                with_interval(medians[1], interval_of_median(hyperslab_ms)).replace("[", r"\["),
                with_interval(medians[0] / medians[1], interval_of_ratio(hyperslab_ms, h5py_ms)).replace("[", r"\["),
            )
    table.caption = f"Medians of {TURNS} turns with 95 % intervals. Both readers returned equal elements."
    console = Console()
    (console if console.is_terminal else Console(width=130)).print(table)


if __name__ == "__main__":
    show()
