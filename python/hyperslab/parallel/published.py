"""Calibrate the parallel model on a part of a published table, and predict the rest of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log10, sqrt
from pathlib import Path
from typing import Any

from hyperslab.errors import UsageError
from hyperslab.parallel.bytes_only import fit_bytes
from hyperslab.parallel.contended_storage import shares
from hyperslab.parallel.machine import USUAL_PROCESSES_PER_NODE, Machine
from hyperslab.parallel.published_cells import PublishedCell, matching, read_cells

DEVIATIONS = 1.96
MOST_LEFT_OUT = 40  # calibrated cells, each of which takes a fit
SAME_MODE, BYTES_ONLY = "the calibrated cell most like it", "P2: bytes only"


@dataclass(frozen=True)
class PublishedPrediction:
    """A cell with the median that was predicted for it, and the interval that contains the measured one in 95 %."""

    cell: PublishedCell
    mib_s: float
    low_mib_s: float
    high_mib_s: float
    calibrated: bool

    @property
    def error_log10(self) -> float:
        """log10(predicted / measured)."""
        return log10(self.mib_s / self.cell.mib_s_median)


@dataclass(frozen=True)
class PublishedScores:
    """How good the predictions of cells are that were not calibrated on."""

    cells: int
    order_all: int
    order_right: int
    growth_all: int
    growth_right: int
    rmse_log10: float


@dataclass(frozen=True)
class PublishedEvaluation:
    """Everything that an evaluation on a published table says."""

    path: Path
    conditions: str
    predictions: list[PublishedPrediction]
    scores: PublishedScores
    baselines: dict[str, PublishedScores]
    left_out_rmse_log10: float | None
    machine: Machine

    @property
    def scatter_log10(self) -> float | None:
        """How far single runs lie from the median of their cell: no model of single runs can be better."""
        known = [each.cell.scatter_log10 for each in self.predictions if each.cell.scatter_log10 is not None]
        return sqrt(sum(each**2 for each in known) / len(known)) if known else None

    @property
    def assumptions(self) -> list[str]:
        """What the table does not say, and what is assumed instead."""
        sentences = [
            "A shared file is striped over all targets of its file system, and a file per process lies on one target.",
        ]
        if any(each.cell.nodes is None for each in self.predictions):
            sentences.append(f"{USUAL_PROCESSES_PER_NODE:g} processes run on a node; a column `nodes` says otherwise.")
        for name, assumed in self.machine.assumed.items():
            cells = [each.cell for each in self.predictions if each.cell.file_system == name]
            sentences.append(f"{name}: a shared file has pieces of {assumed.piece_mib:.3g} MiB.")
            if any(cell.osts is None for cell in cells):
                sentences.append(f"{name}: {assumed.targets:g} targets, where osts is empty or 0.")
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """The evaluation for `--json`."""
        inside = [
            p for p in self.predictions if not p.calibrated and p.low_mib_s <= p.cell.mib_s_median <= p.high_mib_s
        ]
        return {
            "published": {
                **vars(self.scores),
                "coverage": len(inside) / self.scores.cells,
                "scatter_log10": self.scatter_log10,
                "calibrated_on": self.conditions,
                "calibrated_cells": sum(each.calibrated for each in self.predictions),
                "left_out_rmse_log10": self.left_out_rmse_log10,
                "baselines": {name: vars(scores) for name, scores in self.baselines.items()},
                "assumptions": self.assumptions,
                "predictions": [_listed(each, self.machine) for each in self.predictions],
            }
        }


def evaluate_published(path: Path, conditions: str) -> PublishedEvaluation:
    """Calibrate on the cells of a table that satisfy `conditions`, and predict the others.

    Raises
    ------
    UsageError
        The table is not one, no cell satisfies the conditions, or all of them do.
    """
    cells = read_cells(path)
    training = matching(cells, conditions)
    trained = {cell.line for cell in training}
    if len(trained) == len(cells):
        raise UsageError(f"{path}: every cell satisfies {conditions!r}, so there is nothing left to predict")
    machine = Machine(training, cells)
    predictions = [_predicted(machine, cell, cell.line in trained) for cell in cells]
    ours = {each.cell.line: each.mib_s for each in predictions}
    baselines = {
        name: _scores(cells, trained, {cell.line: model(cell) for cell in cells})
        for name, model in ((SAME_MODE, _like_it(training)), (BYTES_ONLY, _bytes_only(training, machine)))
    }
    return PublishedEvaluation(
        path=path,
        conditions=conditions,
        predictions=predictions,
        scores=_scores(cells, trained, ours),
        baselines=baselines,
        left_out_rmse_log10=_left_out(training, cells),
        machine=machine,
    )


def _predicted(machine: Machine, cell: PublishedCell, calibrated: bool) -> PublishedPrediction:
    mib_s, reach = machine.mib_s(cell), 10 ** (DEVIATIONS * machine.deviation_log10(cell))
    return PublishedPrediction(cell, mib_s, mib_s / reach, mib_s * reach, calibrated)


def _scores(cells: Sequence[PublishedCell], trained: set[int], mib_s: dict[int, float]) -> PublishedScores:
    held = [cell for cell in cells if cell.line not in trained]
    errors = [log10(mib_s[cell.line] / cell.mib_s_median) for cell in held]
    order = [_same_sign(a, b, mib_s) for a, b in pairs_of_modes(cells, trained)]
    growth = [_same_sign(a, b, mib_s) for a, b in pairs_of_processes(cells, trained)]
    rmse = sqrt(sum(error**2 for error in errors) / len(errors))
    return PublishedScores(len(held), len(order), sum(order), len(growth), sum(growth), rmse)


def pairs_of_modes(cells: Sequence[PublishedCell], trained: set[int]) -> Iterator[tuple[PublishedCell, PublishedCell]]:
    """A shared file and a file per process, on the same nodes in the same direction; one of the two is predicted."""
    for a, b in combinations(cells, 2):
        same = all(
            getattr(a, name) == getattr(b, name) for name in ("file_system", "partition", "direction", "processes")
        )
        if same and a.mode != b.mode and not {a.line, b.line} <= trained and a.mib_s_median != b.mib_s_median:
            yield a, b


def pairs_of_processes(
    cells: Sequence[PublishedCell], trained: set[int]
) -> Iterator[tuple[PublishedCell, PublishedCell]]:
    """The same program with fewer and with more processes, on the same file system; one of the two is predicted."""
    for a, b in combinations(cells, 2):
        same = all(getattr(a, name) == getattr(b, name) for name in ("file_system", "app", "direction", "mode"))
        if same and a.processes != b.processes and not {a.line, b.line} <= trained and a.mib_s_median != b.mib_s_median:
            yield a, b


def _same_sign(a: PublishedCell, b: PublishedCell, mib_s: dict[int, float]) -> bool:
    return (mib_s[a.line] < mib_s[b.line]) == (a.mib_s_median < b.mib_s_median) and mib_s[a.line] != mib_s[b.line]


def _like_it(training: Sequence[PublishedCell]) -> Callable[[PublishedCell], float]:
    """The median of the calibrated cell that has most in common with a cell, and the closest number of processes."""

    def model(cell: PublishedCell) -> float:
        names = ("mode", "direction", "file_system", "partition")
        best = max(
            training,
            key=lambda each: (
                *(getattr(each, name) == getattr(cell, name) for name in names),
                -abs(log10(each.processes / cell.processes)),
            ),
        )
        return best.mib_s_median

    return model


def _bytes_only(training: Sequence[PublishedCell], machine: Machine) -> Callable[[PublishedCell], float]:
    def targets(cell: PublishedCell) -> float:
        return cell.osts or machine.assumed[cell.file_system].targets

    fitted = {}
    for direction in ("read", "write"):
        mine = [cell for cell in training if cell.direction == direction] or list(training)
        columns = zip(*((c.mib_per_process, c.processes, targets(c), c.seconds) for c in mine), strict=True)
        fitted[direction] = fit_bytes(*columns)

    def model(cell: PublishedCell) -> float:
        first, second = fitted[cell.direction]
        return cell.processes / (first + second * shares(cell.processes, targets(cell)))

    return model


def _left_out(training: Sequence[PublishedCell], cells: Sequence[PublishedCell]) -> float | None:
    """RMSE over the calibrated cells, each predicted from the others."""
    if not 2 <= len(training) <= MOST_LEFT_OUT:
        return None
    errors = []
    for cell in training:
        others = [each for each in training if each.line != cell.line]
        errors.append(log10(Machine(others, cells).mib_s(cell) / cell.mib_s_median))
    return sqrt(sum(error**2 for error in errors) / len(errors))


def _listed(each: PublishedPrediction, machine: Machine) -> dict[str, Any]:
    cell = each.cell
    return {
        "line": cell.line,
        "partition": cell.partition,
        "file_system": cell.file_system,
        "app": cell.app,
        "direction": cell.direction,
        "mode": cell.mode,
        "processes": cell.processes,
        "path": machine.load(cell).path,
        "mib_s_median": cell.mib_s_median,
        "predicted_mib_s": each.mib_s,
        "low_mib_s": each.low_mib_s,
        "high_mib_s": each.high_mib_s,
        "error_log10": each.error_log10,
        "scatter_log10": cell.scatter_log10,
        "calibrated": each.calibrated,
    }
