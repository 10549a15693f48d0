"""The experiments of the paper's figures 6 to 8 and 10, as small as a striped store on one machine needs them.

The paper's arrays are long tables (figures 6 and 7) and a box of VORPAL, which processes divide along its fastest axis
(figures 8 and 10). Its clusters have 4 to 248 data servers; the striped store has four. Figure 10 asks other clusters:
here one file system that puts a shared file on a single server, as GPFS may, and one whose metadata server is slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hyperslab.model.counting import Direction
from hyperslab.parallel.experiments import SERVERS, Experiment
from hyperslab.parallel.striped_store.store import StoreSpeeds

PROCESSES = (1, 2, 4, 8)
SLOW_METADATA = StoreSpeeds(metadata_seconds=0.03)


@dataclass(frozen=True)
class PaperFigure:
    """One panel: its number in the paper, what it shows, and its experiments.

    `elsewhere` are experiments on the store whose metadata server is slow.
    """

    number: str
    title: str
    experiments: tuple[Experiment, ...]
    along: Literal["processes", "servers"] = "processes"
    elsewhere: bool = False


def paper_figures() -> list[PaperFigure]:
    """The panels, in the paper's order."""
    return [
        PaperFigure("6a", "a table is read", _table("read", PROCESSES, (2,), (SERVERS,))),
        PaperFigure("6b", "a table is written", _table("write", PROCESSES, (2,), (SERVERS,))),
        PaperFigure("7", "8 processes read a table", _table("read", (8,), (1, 2, 3, 4), ()), along="servers"),
        PaperFigure("8", "VORPAL is read", _vorpal(3)),
        PaperFigure("10a", "VORPAL, a shared file on one server", _vorpal(1)),
        PaperFigure("10b", "VORPAL, a slow metadata server", _vorpal(3), elsewhere=True),
    ]


def figure_experiments(*, elsewhere: bool) -> list[Experiment]:
    """All experiments of the panels on one of the two stores, each once."""
    chosen = [each for each in paper_figures() if each.elsewhere == elsewhere]
    return list(dict.fromkeys(experiment for figure in chosen for experiment in figure.experiments))


def _table(
    direction: Direction, processes: tuple[int, ...], hdf5: tuple[int, ...], zarr: tuple[int, ...]
) -> tuple[Experiment, ...]:
    lines = [("hdf5", count) for count in hdf5] + [("zarr", count) for count in zarr]
    return tuple(
        Experiment(name, direction, (12288, 64), (384, 64), p, count) for name, count in lines for p in processes
    )


def _vorpal(stripe_count: int) -> tuple[Experiment, ...]:
    lines = [("hdf5", stripe_count), ("zarr", SERVERS)]
    return tuple(
        Experiment(name, "read", (48, 64, 256), (24, 32, 32), p, count, "columns")
        for name, count in lines
        for p in PROCESSES
    )
