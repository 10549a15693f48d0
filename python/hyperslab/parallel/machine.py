"""Fit the coefficients of parallel file systems to published cells, with priors for what the cells do not say.

Few cells are published of a machine, and some of its coefficients may not follow from them at all. So each coefficient
is a product of factors: what is usual anywhere, times one factor each for the direction, the file system, and the
partition whose nodes make the requests. A prior keeps each factor near 1 unless the cells say otherwise. What no cell
of a file system says is thus taken from the other file systems of the table, and else from the usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

import numpy as np
import numpy.typing as npt

from hyperslab.parallel.contended_storage import Coefficients, Load, Path, seconds_of
from hyperslab.parallel.published_cells import PublishedCell

# What is usual: round figures for disks behind a fast network. 100 MiB/s a process, 1 GiB/s a target, 10 ms to wait for
# a piece, 10,000 files created a second. Gathered requests cost the targets what others cost them.
USUAL = {"alpha": 1 / 100, "beta": 1 / 1024, "omega": 0.010, "mu": 1e-4, "kappa": 1.0}
# How far the logarithm of a factor lies from 0: between directions, file systems and partitions.
SPREADS = {
    "alpha": (0.5, 0.5, 0.35),
    "beta": (0.4, 1.0, 0.0),
    "omega": (1.0, 1.0, 0.5),
    "mu": (0.0, 0.5, 0.0),
    "kappa": (0.0, 0.4, 0.0),
}
CLOSE = 0.05  # how well the medians of the training are met, in natural logarithms
FORM = 0.35  # what the formulas leave out, for cells that are not in the training
USUAL_PROCESSES_PER_NODE = 16.0
USUAL_TARGETS = 32.0
USUAL_PIECE_MIB = 1.0
# A request larger than this many pieces was made by a process itself; collective buffering makes requests of one piece
# or of a few (its buffer).
MOST_PIECES_GATHERED = 8.0
STEPS = 60


@dataclass(frozen=True)
class Assumed:
    """What is assumed of a file system where its table says nothing."""

    targets: float
    piece_mib: float


class Machine:
    """Coefficients that were fitted to cells, and the seconds that they predict for others."""

    def __init__(self, training: Sequence[PublishedCell], cells: Sequence[PublishedCell] | None = None) -> None:
        self.training: list[PublishedCell] = list(training)
        known = list(cells if cells is not None else training)
        systems = sorted({cell.file_system for cell in known})
        self.assumed: dict[str, Assumed] = {name: _assumed(name, known, self.training) for name in systems}
        self._names = _factor_names(known)
        self._positions = {name: position for position, name in enumerate(self._names)}
        self._deviations = np.array([SPREADS[name[0]][len(name) - 2] for name in self._names])
        self._factors, self._covariance = self._fit()

    def load(self, cell: PublishedCell) -> Load:
        """What the processes of a cell do."""
        assumed = self.assumed[cell.file_system]
        per_node = cell.processes / cell.nodes if cell.nodes else USUAL_PROCESSES_PER_NODE
        return Load(
            path=_path(cell, assumed.piece_mib),
            direction=cell.direction,
            processes=cell.processes,
            processes_per_node=per_node,
            targets=cell.osts or assumed.targets,
            mib_per_process=cell.mib_per_process,
            piece_mib=assumed.piece_mib,
        )

    def coefficients(self, cell: PublishedCell) -> Coefficients:
        """The coefficients for the cell's direction, file system and partition."""
        return self._coefficients(cell, self._factors)

    def seconds(self, cell: PublishedCell) -> float:
        """The predicted time of the slowest process, in the median run."""
        return self._seconds(cell, self._factors)

    def mib_s(self, cell: PublishedCell) -> float:
        """The predicted median of the bandwidth."""
        return cell.mib_per_process * cell.processes / self.seconds(cell)

    def deviation_log10(self, cell: PublishedCell) -> float:
        """The standard deviation of the predicted median, as log10."""
        slope = self._slopes([cell], self._factors)[0]
        spread = float(slope @ self._covariance @ slope)
        trained = any(each == cell for each in self.training)
        return float(np.sqrt(spread + (CLOSE if trained else FORM) ** 2)) / log(10)

    def _coefficients(self, cell: PublishedCell, factors: npt.NDArray[np.float64]) -> Coefficients:
        keys = (cell.direction, cell.file_system, cell.partition)

        def value(name: str) -> float:
            logarithm = log(USUAL[name])
            for depth in (1, 2, 3):
                position = self._positions.get((name, *keys[:depth]))
                logarithm += 0.0 if position is None else float(factors[position])
            return exp(logarithm)

        return Coefficients(**{name: value(name) for name in USUAL})

    def _seconds(self, cell: PublishedCell, factors: npt.NDArray[np.float64]) -> float:
        return sum(seconds_of(self.load(cell), self._coefficients(cell, factors)).values())

    def _logarithms(self, cells: Sequence[PublishedCell], factors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.array([log(self._seconds(cell, factors)) for cell in cells])

    def _slopes(self, cells: Sequence[PublishedCell], factors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        step, slopes = 1e-5, np.zeros((len(cells), len(factors)))
        for row, cell in enumerate(cells):
            here = log(self._seconds(cell, factors))
            for position in self._factors_of(cell):
                moved = factors.copy()
                moved[position] += step
                slopes[row, position] = (log(self._seconds(cell, moved)) - here) / step
        return slopes

    def _factors_of(self, cell: PublishedCell) -> list[int]:
        """The positions of the factors that a cell depends on."""
        keys = (cell.direction, cell.file_system, cell.partition)
        names = [(name, *keys[:depth]) for name in USUAL for depth in (1, 2, 3)]
        return [self._positions[name] for name in names if name in self._positions]

    def _fit(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The most probable factors (Levenberg and Marquardt's method), and their covariance."""
        measured = np.array([log(cell.seconds) for cell in self.training])

        def residuals(at: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            return np.concatenate([(self._logarithms(self.training, at) - measured) / CLOSE, at / self._deviations])

        at, damping = np.zeros(len(self._names)), 1e-3
        rests = residuals(at)
        for _ in range(STEPS):
            slopes = np.concatenate([self._slopes(self.training, at) / CLOSE, np.diag(1 / self._deviations)])
            square = slopes.T @ slopes
            step = np.linalg.solve(square + damping * np.diag(np.diag(square)), -slopes.T @ rests)
            tried = residuals(at + step)
            if tried @ tried < rests @ rests:
                at, rests, damping = at + step, tried, damping / 5
                if np.abs(step).max() < 1e-8:
                    break
            else:
                damping *= 5
        slopes = np.concatenate([self._slopes(self.training, at) / CLOSE, np.diag(1 / self._deviations)])
        return at, np.linalg.inv(slopes.T @ slopes)


def _factor_names(cells: Sequence[PublishedCell]) -> list[tuple[str, ...]]:
    """The name of each factor: its coefficient, then the direction, the file system and the partition."""
    names: dict[tuple[str, ...], None] = {}
    for cell in cells:
        keys = (cell.direction, cell.file_system, cell.partition)
        for name, deviations in SPREADS.items():
            names |= {(name, *keys[: depth + 1]): None for depth, each in enumerate(deviations) if each > 0}
    return list(names)


def _assumed(file_system: str, cells: Sequence[PublishedCell], training: Sequence[PublishedCell]) -> Assumed:
    targets = [cell.osts for cell in cells if cell.file_system == file_system and cell.osts]
    pieces = [
        cell.request_mib
        for cell in training
        if cell.file_system == file_system and cell.mode == "shared" and cell.request_mib
    ]
    return Assumed(median(targets) if targets else USUAL_TARGETS, min(pieces, default=USUAL_PIECE_MIB))


def _path(cell: PublishedCell, piece_mib: float) -> Path:
    if cell.mode == "file-per-process":
        return "own file"
    request = cell.request_mib or piece_mib
    return "shared, collective" if request <= MOST_PIECES_GATHERED * piece_mib else "shared, direct"
